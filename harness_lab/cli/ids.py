"""Ids on the command line: records hold digests, people know names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.cli.output import note
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def runs_of(table: Any, names: Iterable[str], *, what: str, id_key: Path | None = None) -> list[str]:
    """Return runs as the records have them: each by its own name, or by the digest that the local key makes of it.

    Parameters
    ----------
    table : Settlements
        The records.
    names : iterable of str
        Runs, as a person knows them or as the table shows them.
    what : str
        The argument, for the error.
    id_key : Path, optional
        The key file that the records were read with; the user's own if None.

    Raises
    ------
    InputError
        If one is not among the records either way.
    """
    from harness_lab.settlements.privacy import default_key_path, load_key

    known = set(table.nodes["run"].astype(str))
    hashed = any(name.startswith("h-") for name in known)
    key = load_key(id_key) if hashed and (id_key is not None or default_key_path().exists()) else None
    found = []
    for name in names:
        digest = name if name in known or key is None else key.digest(name)
        if digest not in known:
            some = ", ".join(sorted(known)[:3])
            hint = "Ids are hashed: give --id-key with the key that they were read with" if hashed else ""
            raise InputError(what, expected=f"a run of the records, such as {some}", got=name, hint=hint)
        if digest != name:
            note(f"{name} is {digest} in the records")
        found.append(digest)
    return found


def say_hashed(table: Any, by: Iterable[str] | None) -> None:
    """Say on standard error that groups are digests, and how to see names."""
    from harness_lab.settlements.privacy import HASHED

    for name in by or ():
        if name not in HASHED or name not in table.nodes:
            continue
        if table.nodes[name].astype("string").str.startswith("h-").fillna(value=False).any():
            note(f"groups of {name} are hashed ids; read the records with --keep-ids to see names")
