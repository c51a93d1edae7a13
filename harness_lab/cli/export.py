"""Commands about tuned configs: writing one for a target, saying what changed, the schema of the file."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_lab import files
from harness_lab.cli.output import Json, note, show
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.export import Export, TunedConfig
    from harness_lab.export.carry import Derive

Config = Annotated[Path, typer.Argument(help="Tuned config (JSON).")]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="Write files that limit nothing, too.")]
NOTHING = "nothing was written: the file would limit nothing there (--allow-empty writes it all the same)"
Key = Annotated[Path | None, typer.Option("--key-file", help="The config must be signed with this key.")]


def export(
    config: Config,
    target: Annotated[str, typer.Option(help="Where it goes: docs/targets has a page for each.")],
    form: Annotated[str | None, typer.Option(help="Language of the file; the target's first if not given.")] = None,
    out: Annotated[str | None, typer.Option("--out", help="File, or folder; standard output if not given.")] = None,
    mode: Annotated[str | None, typer.Option(help="enforce, warn or shadow; the config's if not given.")] = None,
    records: Annotated[
        Path | None, typer.Option("--records", help="Derive values again where the target counts over another scope.")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="Share that shall complete, for --records; the evidence's if not given.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Experiment (TOML): simulate what the target would do otherwise.")
    ] = None,
    allow_empty: AllowEmpty = False,
    key_file: Key = None,
    as_json: Json = False,
) -> None:
    """Write a tuned config in the form of a target, and say what cannot be expressed; if all of it, exit with 1."""
    from harness_lab.export import TunedConfig
    from harness_lab.export import export as write

    tuned = TunedConfig.read(config, key=read_key(key_file))
    written = write(tuned, target, form=form, mode=mode, derive=_derive(records, tuned, share))  # type: ignore[arg-type]
    empty = written.carries_nothing and not allow_empty
    places = [] if out is None or empty else write_files(written, out)
    for line in written.summary().splitlines()[1:]:
        note(line.strip())
    checked = None if check is None else _check(written, tuned, check)
    if checked is not None:
        note(checked.summary())
    if as_json or not (places or empty):
        show(written.text.rstrip("\n"), _data(written, tuned, places, checked), as_json=as_json)
    if empty:
        note(NOTHING)
        sys.exit(1)


def diff(
    before: Annotated[Path, typer.Argument(help="Tuned config (JSON).")],
    after: Annotated[Path, typer.Argument(help="Another.")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 when they differ.")] = False,
    as_json: Json = False,
) -> None:
    """Say in words what changes from one tuned config to another."""
    from harness_lab.export import TunedConfig

    found = TunedConfig.read(before).diff(TunedConfig.read(after))
    data = [{"what": one.what, "words": one.words} for one in found.changes]
    show(found.summary(), data, as_json=as_json)
    if exit_code and found.changes:
        sys.exit(1)


def targets(
    name: Annotated[str | None, typer.Argument(help="One of them: its settings, unit and scope.")] = None,
) -> None:
    """List where a config can be exported to, and what each place can be told."""
    from harness_lab.export.pages import knob_table, target_list
    from harness_lab.export.writers import target_of

    if name is None:
        print(target_list())
        return
    one = target_of(name)
    version = f" {one.version}" if one.version else ""
    print(f"{one.title}{version}; forms: {', '.join(one.forms)}; modes: {', '.join(one.modes)}")
    print(knob_table(one) if one.knobs else "Everything in a config.")


def schema() -> None:
    """Print the JSON Schema of a tuned config."""
    from harness_lab.export.schema import FILE
    from harness_lab.export.schema import schema as shipped

    show(FILE, shipped(), as_json=True)


def read_key(path: Path | None) -> bytes | None:
    """Read a key; its bytes count, less a line end at the end."""
    if path is None:
        return None
    try:
        return path.read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise InputError(str(path), expected="a file with a key", got=os.strerror(error.errno or 0)) from None


def _derive(records: Path | None, tuned: TunedConfig, share: float | None) -> Derive | None:
    if records is None:
        return None
    from harness_lab.export.scopes import from_records
    from harness_lab.settlements import read

    return from_records(read(records), tuned, target=share)


def write_files(written: Export, out: str) -> list[Path]:
    """Write the files: into a folder where `out` is or looks like one, or there are several; else to `out` itself."""
    place = Path(out)
    plain = not place.suffix and not place.name.startswith(".") and not place.exists()
    folder = place.is_dir() or out.endswith(("/", os.sep)) or plain
    if not folder and len(written.files) > 1:
        raise InputError("--out", expected=f"a folder, for {len(written.files)} files", got=out)
    places = []
    for path, text in written.files.items():
        target = place / path if folder else place
        _make(target.parent)
        files.write_text(target, text)
        note(f"wrote {target}")
        places.append(target)
    return places


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(folder), expected="a folder", got=os.strerror(error.errno or 0)) from None


def _check(written: Export, tuned: TunedConfig, file: Path) -> Any:
    from harness_lab.export.check import check_export
    from harness_lab.simulate import load_experiment

    return check_export(replace(written, losses=()), tuned, load_experiment(file))


def _data(written: Export, tuned: TunedConfig, places: list[Path], checked: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "target": written.target.name,
        "form": written.form,
        "files": dict(zip(places or written.files, written.files.values(), strict=True)),
        "carried": written.carried,
        "losses": written.losses,
        "defaults": written.defaults,
        "derived": [one.model_dump(mode="json") for one in written.evidence],
        "same_policy_when_read_back": written.read_back() == tuned.policy,
    }
    if checked is not None:
        found = checked.decisions
        data["check"] = {"decisions": found.compared, "differing": found.differing, "runs": checked.runs}
        data["check"] |= {"differing_runs": checked.differing_runs, "differences": checked.to_frame()}
    return data
