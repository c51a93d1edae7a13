"""Running behaviour cases through the public API, and saying of each what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from harness_lab.conformance.areas import AREAS
from harness_lab.conformance.deviations import DEVIATIONS, Deviation
from harness_lab.conformance.report import Report, Result
from harness_lab.conformance.shapes import NOTES, Answer, Area, Case, Differences, UnknownShape
from harness_lab.errors import HarnessLabError, InputError, ReadError

if TYPE_CHECKING:
    from pathlib import Path

Adapter = Callable[[Case], Answer]
"""Carries a case out somewhere else, and answers in the words of its ``then``."""

UNNAMED = "unknown"
_SHOWN = 160


@cache
def _text(name: str) -> str:
    return files("harness_lab.conformance").joinpath("cases", f"{name}.json").read_text("utf-8")


def shipped(name: str | None = None) -> list[dict[str, Any]]:
    """Return the cases that come with the package, of one area or of all.

    Parameters
    ----------
    name : str, optional
        An area (a file's name without ``.json``).

    Raises
    ------
    InputError
        If there is no such area.
    """
    if name is not None and name not in AREAS:
        raise InputError("area", expected=f"one of {', '.join(AREAS)}", got=name)
    return [case for area in ([name] if name is not None else AREAS) for case in json.loads(_text(area))]


def read_cases(path: Path) -> list[Any]:
    """Read a file of cases: a JSON list.

    Raises
    ------
    ReadError
        If the file cannot be read, or holds no list.
    """
    try:
        cases = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ReadError(str(path), expected="a file of cases", got=error.strerror) from error
    except (ValueError, RecursionError) as error:
        raise ReadError(str(path), expected="a JSON list of cases", got=str(error)) from error
    if not isinstance(cases, list):
        raise ReadError(str(path), expected="a JSON list of cases", got=type(cases).__name__)
    return cases


def run(cases: Iterable[Any] | None = None, adapter: Adapter | None = None, *, area: str = UNNAMED) -> Report:
    """Run cases and report what came of each.

    Parameters
    ----------
    cases : iterable of mapping, optional
        The cases; those that come with the package if None.
    adapter : callable, optional
        Answers a case in place of our public API.
    area : str
        Area under which a case is counted that belongs to none.

    Returns
    -------
    Report
        A case whose shape nothing here knows is counted as failed.

    Examples
    --------
    >>> given = {"id": "x", "area": "iteration-budget", "given": {"max_total": 1}}
    >>> case = given | {"when": {"ops": ["consume"]}, "then": {"results": [True], "used": 1, "remaining": 0}}
    >>> run([case]).to_dict()
    {'iteration-budget': {'passed': 1, 'deviating': 0, 'not_applicable': 0, 'failed': 0}}
    """
    given = shipped() if cases is None else cases
    return Report(results=tuple(_result(case, adapter, area) for case in given))


def _result(case: Any, adapter: Adapter | None, unnamed: str) -> Result:
    name = str(case.get("id", "?")) if isinstance(case, Mapping) else "?"
    area = _area(case)
    if area is None:
        what = "no area of that name" if _has_parts(case) else "a case has given and then, each by name"
        return Result(area=unnamed, id=name, word="failed", reason=f"unknown shape: {what}")
    listed = _listed(area, case)
    if listed is not None and listed.kind == "not_applicable":
        return Result(area=area.name, id=name, word="not_applicable", reason=listed.reason)
    found, preset = differing(case, adapter)
    if isinstance(found, str):
        return Result(area=area.name, id=name, word="failed", reason=found, preset=preset)
    if not found:
        return Result(area=area.name, id=name, word="passed", preset=preset)
    if listed is not None and found.keys() <= listed.differs and listed.how(found):
        return Result(area=area.name, id=name, word="deviating", reason=listed.reason, preset=preset)
    return Result(area=area.name, id=name, word="failed", reason=_shown(case, found), preset=preset)


def differing(case: Case, adapter: Adapter | None = None) -> tuple[Differences | str, str | None]:
    """Return where ours differs from a case, or why it could not be carried out; and the preset that was used last.

    Raises
    ------
    InputError
        If the case belongs to no area.
    """
    area = _area(case)
    if area is None:
        raise InputError("case", expected=f"an area of {', '.join(AREAS)}", got=case.get("area"))
    if case["then"].keys() <= NOTES:
        return "unknown shape: the case expects nothing", None
    try:
        presets = area.presets(case) if adapter is None else (None,)
    except Exception as error:  # what it says of its preset is as foreign as the rest of it
        return _stumbled(error), None
    found: Differences | str = {}
    for preset in presets:  # one that cannot be carried out as our defaults are may be under the preset that it names
        found = _once(area, case, preset, adapter)
        if not found:
            return found, preset
    return found, presets[-1]


def _once(area: Area, case: Case, preset: str | None, adapter: Adapter | None) -> Differences | str:
    try:
        answer = area.answer(case, preset) if adapter is None else adapter(case)
        return area.compare(case, answer)
    except HarnessLabError as error:
        return _raised(area, case, error)
    except Exception as error:  # whatever a foreign file makes a mapping stumble over is that case's failure, not ours
        return _stumbled(error)


def _raised(area: Area, case: Case, error: HarnessLabError) -> Differences | str:
    """Return where a case differs that ours answered with an error."""
    if isinstance(error, UnknownShape):
        return _stumbled(error)
    try:
        return area.compare(case, {"raises": f"{type(error).__name__}: {error}"})
    except Exception as odd:  # what a case expects may be as odd as what it gives
        return _stumbled(odd)


def _stumbled(error: Exception) -> str:
    told = str(error) if isinstance(error, UnknownShape) else f"{type(error).__name__}: {error}"
    return f"unknown shape: {told}"[:_SHOWN]


def _has_parts(case: Any) -> bool:
    return isinstance(case, Mapping) and all(isinstance(case.get(key), Mapping) for key in ("given", "then"))


def _area(case: Any) -> Area | None:
    if not _has_parts(case):
        return None
    part = case.get("area")
    return next((area for area in AREAS.values() if part in area.parts), None) if isinstance(part, str) else None


def _listed(area: Area, case: Case) -> Deviation | None:
    """Return the row of the table that covers a case, by what the case says and not by what it is called."""
    for row in DEVIATIONS:
        if row.area == area.name and _covers(row, case):
            return row
    return None


def _covers(row: Deviation, case: Case) -> bool:
    try:
        return row.applies(case)
    except Exception:  # not of the shape that the row is about, whatever is odd about it
        return False


def _shown(case: Case, found: Differences) -> str:
    told = "; ".join(f"{name}: {value!r}, expected {case['then'].get(name)!r}" for name, value in found.items())
    return told if len(told) <= 2 * _SHOWN else f"{told[: 2 * _SHOWN - 3]}..."
