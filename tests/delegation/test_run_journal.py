"""The journal and the audit log as files: names, torn ends, two writers, days."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.delegation import (
    BERNSTEIN_3_23,
    AuditChainStore,
    ChainBroken,
    ChainKey,
    Charge,
    DispatchNode,
    JournalPathError,
    RunJournal,
    SpendLedger,
    dispatch_node,
    load_key,
    missing_entries,
    read_journal,
    record_subagent_delegation,
    resume,
    verify_journal,
)
from harness_lab.errors import InputError, ReadError

if TYPE_CHECKING:
    from pathlib import Path

KEY = b"k" * 32
DAY = 86_400.0


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "../x", "a b", "x" * 65, "ü", "a\n", 7, None])
def test_a_run_id_that_must_not_be_a_path_is_refused(run_id: Any, tmp_path: Path) -> None:
    with pytest.raises(JournalPathError, match="run id"):
        RunJournal(run_id, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("run_id", ["a", "...", "run-1.2_x", "x" * 64])
def test_other_run_ids_name_a_folder(run_id: str, tmp_path: Path) -> None:
    journal = RunJournal(run_id, tmp_path)
    journal.record("begun")
    assert journal.path == tmp_path / "runs" / run_id / "journal.jsonl"


def test_the_plain_constructor_does_not_break_a_chain(tmp_path: Path) -> None:
    RunJournal("r", tmp_path).record("begun")
    with pytest.raises(ChainBroken, match=r"RunJournal\.resume"):
        RunJournal("r", tmp_path)
    again = RunJournal.resume("r", tmp_path)
    again.record("ended")
    assert [row["index"] for row in read_journal(again.path)] == [0, 1]
    assert again.verify(seal=again.seal()).identity == "verified"


def test_a_torn_end_is_cut_off_and_kept_beside(tmp_path: Path) -> None:
    journal = RunJournal("r", tmp_path)
    journal.record("one")
    journal.record("two")
    data = journal.path.read_bytes()
    journal.path.write_bytes(data[:-9])
    verdict = verify_journal(journal.path)
    assert (verdict.chain_consistent, verdict.coverage, verdict.first_bad_line) == (True, "partial", 2)
    assert RunJournal.resume("r", tmp_path).event_count() == 1
    assert data == journal.path.read_bytes() + journal.path.with_suffix(".torn").read_bytes()[:-1] + data[-9:]


def test_a_chain_that_breaks_in_the_middle_is_not_continued(tmp_path: Path) -> None:
    journal = RunJournal("r", tmp_path)
    for name in ("one", "two", "three"):
        journal.record(name)
    journal.path.write_text(journal.path.read_text().replace('"two"', '"2"'))
    with pytest.raises(ChainBroken, match="step 1: event_hash mismatch"):
        RunJournal.resume("r", tmp_path)
    with pytest.raises(ChainBroken, match="step 1"):
        read_journal(journal.path)


def test_a_second_writer_is_noticed_and_his_rows_stay(tmp_path: Path) -> None:
    first = RunJournal("r", tmp_path)
    first.record("one")
    second = RunJournal.resume("r", tmp_path)
    second.record("two")
    with pytest.raises(ChainBroken, match="somebody else wrote"):
        first.record("three")
    with pytest.raises(ChainBroken, match="somebody else wrote"):
        dispatch_node(DispatchNode("n", "t", "m", "low", "p", {}), {}, journal=first)
    assert second.verify().intact
    assert second.event_count() == 2


def test_an_intent_that_no_dispatch_wrote_is_not_acted_on(tmp_path: Path) -> None:
    journal = RunJournal("r", tmp_path)
    journal.record("one")
    journal.intent.path.write_text('{"base": 0}\n')
    with pytest.raises(ChainBroken, match="not what a dispatch leaves"):
        resume("r", tmp_path)
    rows = [{"event": "forged", "event_hash": "x"}]
    journal.intent.path.write_text(json.dumps({"base": 0, "rows": rows, "charges": None, "entries": None}) + "\n")
    with pytest.raises(ChainBroken, match="not what the interrupted dispatch left"):
        resume("r", tmp_path)
    assert journal.verify().count == 1


def test_names_of_the_envelope_are_refused_in_a_payload(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="event_hash"):
        RunJournal("r", tmp_path).record("one", event_hash="evil")


@pytest.mark.parametrize(("field", "value"), [("index", 9), ("payload_hash", "0" * 64), ("hash_profile", "jcs-v2")])
def test_stored_positions_and_hashes_must_be_true(tmp_path: Path, field: str, value: Any) -> None:
    journal = RunJournal("r", tmp_path)
    journal.record("one")
    row = json.loads(journal.path.read_text())
    journal.path.write_text(json.dumps({**row, field: value}) + "\n")
    assert verify_journal(journal.path).divergent_index == 0


@pytest.mark.parametrize("levels", [100, 985, 990, 995, 100_000])
def test_a_journal_with_a_deeply_nested_row_is_broken_and_not_a_crash(tmp_path: Path, levels: int) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_bytes(b'{"event":"x","prev_hash":"","d":' + b"[" * levels + b"]" * levels + b"}\n")
    assert not verify_journal(file).intact


def test_journal_and_audit_log_are_held_against_each_other_row_by_row(tmp_path: Path) -> None:
    journal, chain = RunJournal("r", tmp_path), AuditChainStore(tmp_path / "audit", key=KEY)
    dispatch_node(DispatchNode("n", "t", "m", "low", "p", {}), {}, journal=journal, chain=chain)
    journal.record("subagent.delegation", note="by hand")
    rows, entries = read_journal(journal.path), chain.entries()
    assert missing_entries(rows[:1], entries, run_id="r") == []
    assert missing_entries(rows, entries, run_id="r") == ["step 1: None is in the journal and not in the audit log"]
    assert missing_entries([], entries, run_id="r") == ["'n' is in the audit log and not in the journal"]
    entries[0]["details"]["tier"] = "batch"
    assert missing_entries(rows[:1], entries, run_id="r") == ["step 0: journal and audit log disagree on 'n'"]


def test_a_chain_over_two_days_is_one_chain(tmp_path: Path) -> None:
    now = [DAY]
    chain = AuditChainStore(tmp_path, key=KEY, now=lambda: now[0])
    for moment in (DAY, 2 * DAY, DAY, 2 * DAY + 1):  # a clock that goes back does not reorder it
        now[0] = moment
        chain.log("event", "actor", "type", "id")
    assert sorted(file.name for file in tmp_path.glob("*.jsonl")) == ["1970-01-02.jsonl", "1970-01-03.jsonl"]
    assert (chain.verify().intact, chain.verify().entries) == (True, 4)
    (tmp_path / "1970-01-02.jsonl").unlink()
    assert chain.verify().errors[0].startswith("1970-01-03.jsonl:1: prev_hmac break")


def test_two_stores_on_one_folder_share_a_chain(tmp_path: Path) -> None:
    first, second = AuditChainStore(tmp_path, key=KEY), AuditChainStore(tmp_path, key=KEY)
    for store in (first, second, first, second):
        record_subagent_delegation(
            chain=store, run_id="r", node_name="n", target="t", node_hash="h", result_content_hash="c",
            journal_index=0, journal_event_hash="e",
        )  # fmt: skip
    assert first.verify().intact
    details = [entry["details"]["prev_chain_digest"] for entry in first.entries()]
    assert details == ["0" * 64, *(entry["hmac"] for entry in first.entries()[:-1])]


def test_another_key_continues_nothing(tmp_path: Path) -> None:
    AuditChainStore(tmp_path, key=KEY).log("event", "actor", "type", "id")
    with pytest.raises(ChainBroken, match="HMAC mismatch"):
        AuditChainStore(tmp_path, key=b"x" * 32).log("event", "actor", "type", "id")


def test_a_log_that_was_written_under_the_legacy_scheme_is_verified_and_continued(tmp_path: Path) -> None:
    entry = {
        "timestamp": "2026-01-01T00:00:00.000000Z", "event_type": "e", "actor": "a", "resource_type": "t",
        "resource_id": "i", "details": {}, "prev_hmac": "0" * 64,
    }  # fmt: skip
    line = json.dumps(ChainKey(KEY).sign(entry), sort_keys=True) + "\n"
    (tmp_path / "2026-01-01.jsonl").write_text(line)
    chain = AuditChainStore(tmp_path, key=KEY)
    chain.log("event", "actor", "type", "id")
    assert (chain.verify().intact, chain.verify().legacy, chain.verify().entries) == (True, 1, 2)


def test_a_torn_audit_log_or_ledger_is_not_written_behind(tmp_path: Path) -> None:
    chain = AuditChainStore(tmp_path / "audit", key=KEY)
    chain.log("event", "actor", "type", "id")
    (log,) = (tmp_path / "audit").glob("*.jsonl")
    ledger_file = tmp_path / "ledger.jsonl"
    for file in (log, ledger_file):
        with file.open("a") as out:
            out.write('{"half')
    chain, ledger = AuditChainStore(tmp_path / "audit", key=KEY), SpendLedger(file=ledger_file)
    node = DispatchNode("n", "t", "m", "low", "p", {})
    for sink in ({"chain": chain}, {"ledger": ledger}):
        with pytest.raises(ChainBroken, match="torn"):
            dispatch_node(node, {}, **sink)  # type: ignore[arg-type]
    done = resume("r", tmp_path, ledger=ledger, chain=chain)
    dispatch_node(node, {}, journal=done.journal, ledger=ledger, chain=chain)
    assert done.torn_bytes == 2 * len('{"half')
    assert chain.verify().intact


def test_a_ledger_counts_on_what_its_file_says_unless_the_preset_forgets(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    charge = Charge(
        node_name="n", target="t", model="m", tier="batch", undiscounted_nusd=2, cost_nusd=1, event_hash="e"
    )
    SpendLedger(file=file).charge([charge])
    assert SpendLedger(file=file).charges == (charge,)
    forgetful = SpendLedger(file=file, rules=BERNSTEIN_3_23)
    assert (forgetful.charges, forgetful.charged()) == ((), {"e"})
    file.write_text("{}\n")
    with pytest.raises(ChainBroken, match=r"ledger\.jsonl:1: not a charge"):
        SpendLedger(file=file)


def test_zero_is_a_real_limit_and_a_hard_limit_lowers_a_soft_one() -> None:
    assert not SpendLedger(soft_limit_usd=0).admits()
    assert SpendLedger(soft_limit_usd=0, rules=BERNSTEIN_3_23).admits()
    assert SpendLedger(soft_limit_usd=3, hard_limit_usd=2).status().soft_limit_nusd == 2_000_000_000
    with pytest.raises(InputError, match="soft_limit_usd"):
        SpendLedger(soft_limit_usd=-1)


def test_a_key_comes_from_the_environment_or_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(KEY + b"\n")
    file.chmod(0o600)
    assert load_key(environ={"HARNESS_LAB_AUDIT_KEY": KEY.decode()}) == KEY
    assert load_key(environ={"HARNESS_LAB_AUDIT_KEY_FILE": str(file)}) == load_key(file, environ={}) == KEY
    file.chmod(0o640)
    bad: list[dict[str, Any]] = [{}, {"HARNESS_LAB_AUDIT_KEY": "short"}]
    for environ in [*bad, *([{"HARNESS_LAB_AUDIT_KEY_FILE": str(file)}] if os.name == "posix" else [])]:
        with pytest.raises(InputError, match="audit key") as caught:
            load_key(environ=environ)
        assert "short" not in str(caught.value)
    with pytest.raises(ReadError):
        load_key(tmp_path / "none")


def test_delegation_loads_nothing_outside_the_standard_library() -> None:
    code = (
        "import sys, harness_lab.delegation\n"
        "own = {'harness_lab'} | set(sys.stdlib_module_names)\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} - own - {'__main__'}))"
    )
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {os.getcwd()!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "[]"
