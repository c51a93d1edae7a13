"""Commands that verify what delegation wrote: journal verify and audit verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from harness_lab.cli.output import Json, show

journal = typer.Typer(help="Run journals.", no_args_is_help=True, rich_markup_mode=None)
audit = typer.Typer(help="Audit logs.", no_args_is_help=True, rich_markup_mode=None)

SealFile = Annotated[Path | None, typer.Option("--seal", help="The journal's seal (JSON: head, count, sha256).")]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="The key's file (mode 0600); the environment's HARNESS_LAB_AUDIT_KEY if not given."
    ),
]
Journal = Annotated[Path | None, typer.Option("--journal", help="A run journal that the log must agree with.")]


@journal.command("verify")
def verify_run_journal(
    file: Annotated[Path, typer.Argument(help="The journal (JSONL).")],
    seal: SealFile = None,
    as_json: Json = False,
) -> int:
    """Verify a run journal: where does its chain first break? Exit code 1 if it does."""
    from harness_lab.delegation import verify_journal

    verdict = verify_journal(file, seal=None if seal is None else _seal(seal))
    text = f"{file.name}: {verdict.summary()}\n{verdict.explain()}"
    show(text, verdict.to_dict(), as_json=as_json)
    return 0 if verdict.intact else 1


@audit.command("verify")
def verify_audit_log(
    file: Annotated[Path, typer.Argument(help="The log's folder, or one of its daily files.")],
    key_file: KeyFile = None,
    journal: Journal = None,
    as_json: Json = False,
) -> int:
    """Verify an audit log: where does its chain first break? Exit code 1 if it does."""
    from harness_lab.delegation import load_key, verify_audit

    verdict = verify_audit(file, key=load_key(key_file))
    missing = _disagreements(file, journal) if verdict.intact and journal is not None else []
    text = "\n".join([verdict.summary(), verdict.explain(), *missing])
    data = {**verdict.to_dict(), "disagreements": missing}
    show(text, data, as_json=as_json)
    return 0 if verdict.intact and not missing else 1


def _disagreements(log: Path, journal: Path) -> list[str]:
    from harness_lab.delegation import missing_entries, read_entries, read_journal

    return missing_entries(read_journal(journal), read_entries(log), run_id=journal.resolve().parent.name)


def _seal(path: Path) -> Any:
    from harness_lab.delegation import Seal
    from harness_lab.errors import ReadError

    try:
        data = json.loads(path.read_text("utf-8"))
        return Seal(head=str(data["head"]), count=int(data["count"]), sha256=data.get("sha256"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReadError(str(path), expected="a seal: JSON with head, count and sha256", got=str(error)) from error
