"""What the commands share: printing text or JSON, and reading arguments."""

from __future__ import annotations

import json
import math
import shlex
import sys
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output, and nothing else.")]


def show(text: str, data: Any, *, as_json: bool) -> None:
    """Print a result: its text, or its data as JSON (unknown is null)."""
    if as_json:
        print(json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(text)


def end(*, stopped: bool) -> None:
    """End a command that a person may have stopped: then with 130, as a shell expects, after what was done is told."""
    if stopped:
        note("stopped before all runs were done; what is told is of the runs that were")
        raise typer.Exit(130)


_IN_DISPLAY_UNIT: Final = {"cost_nusd": "cost_usd", "wasted_nusd": "wasted_usd", "duration_ns": "duration_s"}


def named_by_unit(data: Any) -> Any:
    """Rename metrics that stand in dollars and seconds, unlike the columns of the tables whose names they have.

    Parameters
    ----------
    data : DataFrame or mapping
        Columns or keys such as ``cost_nusd`` or ``cost_nusd_low``; the values stay.

    Examples
    --------
    >>> named_by_unit({"completed": 0.9, "cost_nusd": 0.05, "cost_nusd_low": 0.04})
    {'completed': 0.9, 'cost_usd': 0.05, 'cost_usd_low': 0.04}
    """

    def name(old: str) -> str:
        found = next((one for one in _IN_DISPLAY_UNIT if old == one or old.startswith(f"{one}_")), None)
        return old if found is None else old.replace(found, _IN_DISPLAY_UNIT[found], 1)

    if hasattr(data, "columns"):
        return data.rename(columns=name)
    return {name(key): value for key, value in data.items()}


def by_group(found: Any, **more: Any) -> list[dict[str, Any]]:
    """Return the rows of a result as JSON has them; groups without an answer follow, each with its reason.

    Parameters
    ----------
    found : result
        With ``to_frame()`` and perhaps ``parts``.
    more
        Fields that every row gets, such as the unit.
    """
    rows: list[dict[str, Any]] = [{**row, **more} for row in plain(found.to_frame())]
    declined = getattr(getattr(found, "parts", None), "declined", None) or {}
    if not declined:
        return rows
    from harness_lab.analyze.frames import label

    return [*rows, *({"group": label(key), "declined": why} for key, why in declined.items())]


def with_next(text: str, *command: object, why: str) -> str:
    r"""Put a command that can be run as it is printed where a text names the next step in Python.

    Parameters
    ----------
    text : str
        What a result explains; its last line begins with "Next: ".
    command : object
        The words after ``harness-lab``.
    why : str
        What the command is for; it stands behind the command as a comment.

    Examples
    --------
    >>> print(with_next("It is so.\nNext: ceiling(...) for more.", "ceiling", "my runs.parquet", why="the ceiling"))
    It is so.
    Next: harness-lab ceiling 'my runs.parquet'  # the ceiling
    """
    before = text.rpartition("Next: ")[0]
    return f"{before}Next: {shlex.join(['harness-lab', *map(str, command)])}  # {why}"


def note(text: str) -> None:
    """Say something on the way, on standard error."""
    print(text, file=sys.stderr)


def plain(value: Any) -> Any:
    """Turn a value into what JSON knows; NaN and NA become null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return plain(value.to_dict(orient="records"))
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Path):
        return str(value)
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool)):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if type(value).__name__ in ("NAType", "NaTType") else str(value)


def pairs(given: list[str], *, what: str) -> Mapping[str, str]:
    """Read ``FIELD=COLUMN`` arguments.

    Raises
    ------
    InputError
        If one has no ``=`` or a name comes twice.
    """
    found: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name or not value or name in found:
            raise InputError(what, expected="FIELD=COLUMN, each field once", got=item)
        found[name] = value
    return found


def whole_number(text: str, *, what: str) -> int:
    """Read a whole number; thousands may be separated by ``_`` or ``,``.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return int(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise InputError(what, expected="a whole number", got=text) from None
