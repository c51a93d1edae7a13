"""No text of a record, and no id as it was, gets into the table, the report, the notes or an error."""

from __future__ import annotations

import copy
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from harness_lab.errors import HarnessLabError, InputError
from harness_lab.settlements import SettlementStore, read
from harness_lab.settlements.privacy import HASHED, load_key
from harness_lab.settlements.readers import READERS

if TYPE_CHECKING:
    from collections.abc import Iterator

PLANTED = Path(__file__).parent / "planted"
SECRETS = (
    "xyzzy my cat is called Tom and he likes fish",
    "ann.xyzzy@corp.example",
    "sk-ant-api03-XYZZYSECRETKEY",
    "/home/ann/xyzzy/notes.txt",
)


def leaks(text: str) -> bool:
    return "xyzzy" in text.lower()


def said(folder: Path, reader: str) -> str:
    """Return everything that reading a folder says, in the table and beside it."""
    try:
        table = read(folder, format=reader, ids="hashed")
    except HarnessLabError as error:
        return f"{error} {error!r}"
    frames = [table.nodes] if table.calls is None else [table.nodes, table.calls]
    texts = [str(value) for frame in frames for name in frame.select_dtypes("string") for value in frame[name].dropna()]
    shown = f"{table.summary()} {table!r} {table._repr_html_()} {table.report!r}"
    stored = json.dumps(table.report.to_dict())
    return "\n".join((*texts, shown, stored))


def documents(text: str) -> tuple[list[Any], bool]:
    """Return a file's JSON values, and whether it holds one a line."""
    try:
        return [json.loads(text)], False
    except ValueError:
        return [json.loads(line) for line in text.splitlines()], True


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the leaves of a JSON value are."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        if isinstance(item, (dict, list)) and item:
            yield from places(item, (*path, key))
        else:
            yield (*path, key)


def put(value: Any, path: tuple[Any, ...], secret: str) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = secret
    return changed


def with_keys(value: Any, secret: str) -> Any:
    """Return a JSON value in which every object has one more entry, under a secret name."""
    if isinstance(value, list):
        return [with_keys(item, secret) for item in value]
    if not isinstance(value, dict) or not value:
        return value
    changed = {key: with_keys(item, secret) for key, item in value.items()}
    return {**changed, secret: copy.deepcopy(next(reversed(changed.values()))), "note": secret}


def planted(text: str, *, rounds: int) -> Iterator[str]:
    """Yield a record with secrets in its leaves, each leaf in one of so many rounds, and with secrets as names."""
    try:
        values, lines = documents(text)
    except ValueError:  # a text log: each line in turn
        rows = text.splitlines()
        for number in range(len(rows)):
            yield "\n".join([*rows[:number], f"{rows[number].partition(':')[0]}: {SECRETS[0]}", *rows[number + 1 :]])
        return
    whole = values if lines else values[0]
    leaves = list(places(whole))
    for first in range(min(rounds, len(leaves))):
        changed = whole
        for number in range(first, len(leaves), rounds):
            changed = put(changed, leaves[number], SECRETS[number % len(SECRETS)])
        yield "\n".join(map(compact, changed)) if lines else json.dumps(changed, indent=1)
    for secret in SECRETS:
        changed = with_keys(whole, secret)
        yield "\n".join(map(compact, changed)) if lines else json.dumps(changed, indent=1)


@pytest.mark.parametrize("rounds", [13, pytest.param(10_000, marks=pytest.mark.slow)])  # 10,000: one leaf at a time
@pytest.mark.parametrize("reader", [reader.name for reader in READERS])
def test_what_is_planted_in_a_record_is_found_nowhere(tmp_path, reader: str, rounds: int) -> None:
    assert (PLANTED / reader).is_dir(), f"no record to plant secrets in: add tests/settlements/planted/{reader}/"
    for file in sorted((PLANTED / reader).iterdir()):
        for text in planted(file.read_text(encoding="utf-8"), rounds=rounds):
            (tmp_path / file.name).write_text(text, encoding="utf-8")
            found = said(tmp_path, reader)
            assert not leaks(found), f"{next(line for line in found.splitlines() if leaks(line))[:500]}\n{text[:3000]}"
            (tmp_path / file.name).unlink()


@pytest.mark.parametrize("reader", [reader.name for reader in READERS])
def test_the_records_to_plant_in_are_known_and_read_by_their_reader(reader: str) -> None:
    table = read(PLANTED / reader, format=reader, ids="kept")
    pd.testing.assert_frame_equal(read(PLANTED / reader, ids="kept").nodes, table.nodes)
    assert len(table.nodes) > 0
    assert not table.report.set_aside
    assert "text" not in table.nodes.to_csv().split(",")


@pytest.mark.parametrize("reader", [reader.name for reader in READERS])
def test_no_id_is_in_the_table_as_it_was(reader: str) -> None:
    kept, hashed = (read(PLANTED / reader, ids=ids) for ids in ("kept", "hashed"))
    for name in (*HASHED, "source"):
        before, after = kept.nodes[name], hashed.nodes[name]
        assert (before.isna() == after.isna()).all()
        changed = before[before.notna() & ~before.str.fullmatch(r"\d{1,6}").fillna(value=False)]
        assert not set(changed) & set(after.dropna())
    assert kept.nodes["run"].nunique() == hashed.nodes["run"].nunique()


def runs(folder: Path, *rows: str, header: str = "run,node,parent,user,output") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "runs.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder


def test_ids_are_hashed_unless_they_are_asked_to_be_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.undo()  # the default itself
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = runs(tmp_path / "r", "s-1,0,,ann,5", "s-1,kid,0,ann,6")
    nodes = read(folder).nodes
    assert nodes["run"].str.fullmatch("h-[0-9a-f]{16}").all()
    assert nodes["node"].iloc[0] == "0" == nodes["parent"].iloc[1]
    assert read(folder, ids="kept").nodes["run"].tolist() == ["s-1", "s-1"]


def test_two_machines_with_one_key_have_the_same_ids_and_count_once(tmp_path) -> None:
    key = tmp_path / "key"
    first = read(runs(tmp_path / "one", "a,0,,u,5", "b,0,,u,6"), ids="hashed", id_key=key)
    second = read(runs(tmp_path / "two", "b,0,,u,6", "c,0,,u,7"), ids="hashed", id_key=key)
    store = SettlementStore(tmp_path / "store")
    assert store.append(first).added == 2
    done = store.append(second)
    assert (done.added, done.unchanged) == (1, 1)
    other = read(tmp_path / "one", ids="hashed", id_key=tmp_path / "other")
    assert not set(other.nodes["run"]) & set(first.nodes["run"])


def test_a_key_is_made_for_its_owner_only_and_used_again(tmp_path) -> None:
    place = tmp_path / "new" / "ids.key"
    made = load_key(place)
    assert load_key(place).secret == made.secret
    assert len(made.secret) == 32
    if os.name == "posix":
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert made.secret.hex() not in repr(made)
    assert [path.name for path in place.parent.iterdir()] == ["ids.key"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are told otherwise there")
def test_a_key_that_others_can_read_is_used_with_a_warning(tmp_path) -> None:
    load_key(tmp_path / "key")
    (tmp_path / "key").chmod(0o644)
    assert "others on this computer can read" in load_key(tmp_path / "key").note


@pytest.mark.parametrize("content", ["", "short", "zz" * 32, "ab" * 8 + "\n" + "x", "ab" * 4, "ab" * 100])
def test_a_file_that_holds_no_key_is_refused_without_showing_it(tmp_path, content: str) -> None:
    (tmp_path / "key").write_text(content)
    with pytest.raises(InputError, match=r"key: expected a key file: 64 hex digits") as error:
        load_key(tmp_path / "key")
    assert content.strip() == "" or content.strip() not in str(error.value)


def test_a_key_that_cannot_be_made_where_it_was_asked_for_is_an_error(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"expected a key file that can be read or made"):
        load_key(tmp_path / "file" / "key")


def test_where_no_key_can_be_kept_reading_goes_on_and_says_so(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    notes = read(runs(tmp_path / "r", "a,0,,u,5"), ids="hashed").report.notes
    assert notes[-1].startswith("ids are hashed with a key for this reading alone")


def test_labels_are_joined_before_ids_are_hashed(tmp_path) -> None:
    (tmp_path / "labels.csv").write_text("run,delivered,team\na,yes,core\n")
    folder = runs(tmp_path / "r", "a,0,,u,5", "b,0,,u,6")
    table = read(folder, ids="hashed", labels=tmp_path / "labels.csv")
    assert table.nodes["delivered"].tolist() == [True, pd.NA]
    table.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "labels.csv").write_text("run,delivered\nb,no\n")
    again = read(tmp_path / "t.parquet", ids="hashed", labels=tmp_path / "labels.csv")
    assert again.nodes["delivered"].tolist() == [True, False]
    assert again.nodes["run"].tolist() == table.nodes["run"].tolist()


def test_runs_that_share_a_name_stay_apart_and_recognisable(tmp_path) -> None:
    runs(tmp_path / "r" / "x", "a,0,,u,5")
    runs(tmp_path / "r" / "y", "a,0,,u,6")
    one, two = read(tmp_path / "r", ids="hashed").nodes["run"]
    assert two == f"{one}~2"


def test_the_reader_sees_file_names_and_what_is_stored_holds_their_digests(tmp_path) -> None:
    folder = runs(tmp_path / "xyzzy-folder", "a,0,,u,5", "b,0,,u,-6")
    table = read(folder, ids="hashed")
    assert table.report.set_aside[0].file == "xyzzy-folder/runs.csv"
    assert "xyzzy-folder/runs.csv:3" in table.summary()
    assert table.nodes["source"].str.fullmatch(r"h-[0-9a-f]{16}/h-[0-9a-f]{16}\.csv").all()
    assert not leaks(json.dumps(table.report.to_dict()))


def test_simulated_runs_have_no_ids_of_persons(tmp_path) -> None:
    folder = runs(tmp_path / "r", "0,0,,,5,pool", header="run,node,parent,user,output,policy")
    assert read(folder, ids="hashed").nodes["run"].tolist() == ["0"]


def test_a_name_that_looks_like_text_is_replaced_and_said_also_where_ids_are_kept(tmp_path) -> None:
    rows = ["a,0,gpt-5", "b,0,ann.xyzzy@corp.example", f"c,0,{SECRETS[0]}"]
    table = read(runs(tmp_path / "r", *rows, header="run,node,model"), ids="kept")
    assert table.nodes["model"].iloc[0] == "gpt-5"
    assert table.nodes["model"].iloc[1:].str.fullmatch("hidden-[0-9a-f]{8}").all()
    assert "2 value(s) of model looked like text or a secret and were replaced" in table.report.notes


@pytest.mark.parametrize(
    "name",
    ["openrouter/google/gemini-3-pro-preview", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-x@20250929",
     "submitted (exit_cost)", "a + b", "<synthetic>", "@google/gemini-3-pro", "claude-opus-4-5[1m]", "héllo"],
)  # fmt: skip
def test_names_as_they_are_in_records_stay(tmp_path, name: str) -> None:
    (tmp_path / "runs.jsonl").write_text(json.dumps({"run": "a", "model": name, "source_status": name}))
    nodes = read(tmp_path / "runs.jsonl", ids="hashed").nodes
    assert nodes[["model", "source_status"]].iloc[0].tolist() == [name, name]


def test_choices_that_do_not_go_together_are_refused(tmp_path) -> None:
    folder = runs(tmp_path / "r", "a,0,,u,5")
    with pytest.raises(InputError, match=r"^ids: expected hashed or kept, got 'salted'"):
        read(folder, ids="salted")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^id_key: expected no key where ids are kept"):
        read(folder, ids="kept", id_key=tmp_path / "key")
