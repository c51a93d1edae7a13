"""The cases put to somebody else's limiter: what it answers as ours do, where it differs, what it cannot be asked.

A case applies to any limiter if it gives limits by name and tells a story in steps. Of its answers those are compared
that can be seen from outside, for a limiter shows no books: what was let through, and what was billed for it. Where a
package is the very subject of an area, its adapter answers that area's cases itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness_lab.adapters import (
    Adapter,
    NotApplicable,
    address,
    found_version,
    installed,
    limits_of,
    policy,
    recorded,
)
from harness_lab.conformance.areas import AREAS
from harness_lab.conformance.areas.public_book import Book
from harness_lab.conformance.limits import limits_by_name
from harness_lab.conformance.report import Report, Result
from harness_lab.conformance.runner import shipped
from harness_lab.conformance.shapes import NOTES, differences
from harness_lab.errors import HarnessLabError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness_lab.conformance.shapes import Answer, Case

SEEN: Final = ("admitted", "refused", "answers", "billed", "raises")
"""What can be seen of a limiter from outside."""
ANY: Final = ("ruler", "public-cases")
"""Areas whose cases are put to every limiter."""
REFUSED: Final = "such a limit is refused where it is built"
_SHOWN: Final = 240
_BLOCK: Final = 8
"""Lines that are told once where they repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterReport(Report):
    """What came of the cases under one adapter.

    Parameters
    ----------
    adapter : str
        Its name.
    package : str
        The distribution that it is about; empty: none.
    version : str or None
        The version that was found; None: it needs none.
    limits : mapping of str to str
        The limits that it takes, and what the package calls them.
    """

    adapter: str
    package: str = ""
    version: str | None = None
    limits: Mapping[str, str]

    @property
    def not_asked(self) -> dict[str, int]:
        """Areas whose cases were not put to it, and how many those are: the parts of systems that are another's."""
        asked = {result.area for result in self.results}
        return {} if not asked.issuperset(ANY) else {a: len(shipped(a)) for a in AREAS if a not in asked}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a case: area, id, word, reason and the scenario that shows it."""
        names = ("area", "id", "word", "reason", "scenario")
        return [{name: getattr(result, name) for name in names} for result in self.results]

    def to_data(self) -> dict[str, Any]:
        """Return all of it as plain values; :func:`harness_lab.conformance.answers.from_data` reads them back."""
        named = {"adapter": self.adapter, "package": self.package, "version": self.version}
        return named | {"limits": dict(self.limits), "counts": self.to_dict(), "rows": self.rows()}

    def summary(self) -> str:
        """Return the counts as a plain table, under the name and version."""
        which = f"{self.package} {self.version}" if self.package else "no package"
        takes = "; ".join(f"{limit} ({knob})" if knob else limit for limit, knob in self.limits.items())
        rest = ", ".join(f"{area} ({many})" for area, many in self.not_asked.items())
        told = f"\nnot asked, for they are about parts of other systems: {rest}" if rest else ""
        return f"{self.adapter}: {which}\nlimits: {takes}\n{Report.summary(self)}{told}"

    def explain(self) -> str:
        """Say what the words mean and what to do next."""
        return (
            "passed: the limiter answers as ours does. deviating: it was asked and answers otherwise; that is no "
            "judgement, the reason says how and the scenario lets anyone see it. not_applicable: it has no such limit, "
            "or the case asks for more than a limiter's answer. failed: it broke off with an error of its own. Only "
            "what can be seen from outside is compared: what was let through, and what was billed for it. Next: read "
            "the deviating rows; simulate it beside ours to see whether they matter in your world."
        )


def run_adapter(adapter: type[Adapter], cases: Iterable[Any] | None = None) -> AdapterReport:
    """Put cases to a foreign limiter and report what came of each.

    Parameters
    ----------
    adapter : type of Adapter
        From :func:`harness_lab.adapters.named`, or one of your own.
    cases : iterable of mapping, optional
        The cases; if None those of the ruler, the public ones, and those of the areas that are about its package.

    Returns
    -------
    AdapterReport
        One result a case.

    Raises
    ------
    InputError
        If its package is not there.

    Examples
    --------
    >>> from harness_lab.adapters import named
    >>> report = run_adapter(named("check-then-add"), [c for c in shipped("ruler") if c["id"] == "cost-last-call"])
    >>> print(report.results[0].word, "-", report.results[0].reason)
    deviating - admitted: 2 instead of 1; refused: 0 instead of 1; billed: 1.4 instead of 0.9
    """
    installed(adapter)
    areas = dict.fromkeys((*ANY, *adapter.areas))
    given = [case for area in areas for case in shipped(area)] if cases is None else list(cases)
    return AdapterReport(
        results=tuple(_result(adapter, case) for case in given),
        adapter=adapter.name or adapter.__name__,
        package=adapter.package,
        version=found_version(adapter),
        limits={limit: adapter.knobs.get(limit, "") for limit in limits_of(adapter)},
    )


def _result(adapter: type[Adapter], case: Any) -> Result:
    area = next((area for area in AREAS.values() if case.get("area") in area.parts), None)
    name = str(case.get("id", "?"))
    if area is None:
        return Result(area="unknown", id=name, word="failed", reason="unknown shape: no area of that name")
    with recorded() as lines:
        try:
            if area.name in adapter.areas:
                found = area.compare(case, adapter.answer(case))
                wanted = case["then"]
            else:
                wanted = _visible(case)
                found = differences({**case, "then": wanted}, _told(adapter, case))
        except NotApplicable as why:
            return Result(area=area.name, id=name, word="not_applicable", reason=str(why))
        except Exception as error:  # whatever a foreign package does is its answer, not our failure
            return Result(area=area.name, id=name, word="failed", reason=f"{type(error).__name__}: {error}"[:_SHOWN])
    if not found:
        return Result(area=area.name, id=name, word="passed")
    reason = _how(found, wanted)
    return Result(
        area=area.name, id=name, word="deviating", reason=reason[:_SHOWN], scenario=_scenario(adapter, case, lines)
    )


def _how(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    if "raises" in found and "raises" not in wanted:
        return f"{REFUSED}: {found['raises']}"
    return "; ".join(f"{key}: {_said(value)} instead of {_said(wanted.get(key))}" for key, value in found.items())


def _visible(case: Case) -> Answer:
    """Return what of a case's answer can be seen from outside.

    Raises
    ------
    NotApplicable
        If that is nothing.
    """
    wanted = {name: value for name, value in case["then"].items() if name in SEEN and name not in NOTES}
    if "steps" not in case["when"]:
        raise NotApplicable(f"the case is about {case['when'].get('op', 'something else')}: no question to a limiter")
    if case["given"].get("shadow"):
        raise NotApplicable("the case is about a policy that only watches")
    if not wanted:
        raise NotApplicable(f"the case asks for books that a limiter does not show ({', '.join(case['then'])})")
    return wanted


def _told(adapter: type[Adapter], case: Case) -> Answer:
    """Play a case's story on a limiter."""
    limits, steps = limits_by_name(case), case["when"]["steps"]
    takes = limits_of(adapter)
    missing = [limit for limit in limits if limit not in takes]
    if missing:
        raise NotApplicable(f"it has no limit of {', '.join(missing)} (it has {', '.join(takes)})")
    try:
        spec = policy(adapter, **limits)
    except InputError as error:
        if error.__cause__ is None or isinstance(error.__cause__, HarnessLabError):
            raise
        cause = error.__cause__  # the package refuses such a limit where it is built
        return {"raises": f"{type(cause).__name__}: {cause}"}
    return Book(case["given"], spec).played(steps)


def _said(value: Any) -> str:
    """Write an answer short: a list of answers as what was let through (+) and refused (-)."""
    if isinstance(value, list) and value and set(value) <= {"admitted", "refused"}:
        return "".join("+" if one == "admitted" else "-" for one in value)
    return "none" if value is None else str(value)


def _scenario(adapter: type[Adapter], case: Case, lines: list[str]) -> str:
    """Return what shows a deviation: the package's own calls where they were written down, else the command."""
    if lines:
        return "\n".join([f"# {case.get('about', case['id'])}", *_folded(adapter.shows(lines))])
    return f"harness-lab conformance --adapter {address(adapter)} --case {case['id']} --list"


def _folded(lines: list[str]) -> list[str]:
    """Return lines with those that repeat at once told once, and how often."""
    told: list[str] = []
    place = 0
    while place < len(lines):
        block, many = max(
            (_repeats(lines, place, size) for size in range(1, _BLOCK + 1)),
            key=lambda one: (len(one[0]) * one[1] if one[1] > 1 else 0, -len(one[0])),
        )
        if many == 1:
            told += block[0].splitlines()
            place += 1
            continue
        inner = [line for entry in block for line in entry.splitlines()]
        told += [f"for _ in range({many}):", *(f"    {line}" for line in inner)]
        place += many * len(block)
    return told


def _repeats(lines: list[str], place: int, size: int) -> tuple[list[str], int]:
    """Return a block of lines from a place on, and how often it stands there one after another."""
    block, many = lines[place : place + size], 1
    while lines[place + many * size : place + (many + 1) * size] == block:
        many += 1
    return block, many if len(block) == size else 1


def picked(ids: str) -> list[Any]:
    """Return the shipped cases with an id.

    Raises
    ------
    InputError
        If there is none.
    """
    found = [case for case in shipped() if case["id"] == ids]
    if not found:
        raise InputError("case", expected="the id of a case (harness-lab conformance --list)", got=ids)
    return found
