"""Preflight: hold an ask against what its path was seen to need.

Source: the preflight of tangle-network/agent-runtime; what stale evidence does is our own choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.clock import instant
from harness_lab.errors import InputError, UnitMismatch
from harness_lab.floors import _rules
from harness_lab.outcome import UNITS, Code, Helps, Shortfall, Unit
from harness_lab.usage import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.floors.table import FloorKey, FloorRow, FloorTable

Stale = Literal["warn", "enforce", "ignore"]
ADMITTED = "not below the observed floor; this does not predict success"
STALE = "only stale evidence, so no floor is enforced; a fresh run confirms it"
UNMEASURED = "no evidence for this path, so no floor is enforced; run it and record its settlement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The answer to one ask.

    Parameters
    ----------
    key : FloorKey
        The path that was asked about.
    asked : int
        Tokens asked for, in the key's unit.
    row : FloorRow or None
        The evidence that applied; None when there is none.
    admitted : bool
        Whether the ask may start.
    reason : str
        ``below-runtime-floor``, or words that say what the admission means.
    helps : str
        ``larger``, ``other-path``, or ``nothing`` when nothing is needed. A smaller ask never helps.
    other_paths : tuple of str
        Measured paths that this ask would meet.
    stale : str
        Why the evidence is stale: its age, or the fields of the starting context that changed; empty: it is not.
    """

    key: FloorKey
    asked: int
    row: FloorRow | None
    admitted: bool
    reason: str
    helps: Helps
    other_paths: tuple[str, ...] = ()
    stale: str = ""

    @property
    def floor(self) -> int | None:
        """The floor that applied, tokens; None when unmeasured."""
        return self.row.floor if self.row else None

    @property
    def shortfall(self) -> int:
        """Tokens missing to the floor, 0 when admitted."""
        return 0 if self.floor is None else _rules.shortfall(self.asked, self.floor)

    def as_shortfall(self) -> Shortfall:
        """Return the refusal in the form that a policy reports."""
        return Shortfall(
            Code.BELOW_RUNTIME_FLOOR, self.floor, self.asked, self.asked, self.helps, UNITS[self.key.unit], str(self)
        )

    def to_dict(self, now_ns: int | None = None) -> dict[str, Any]:
        """Return plain values; ages are relative to `now_ns` (epoch nanoseconds) and None without it."""
        row = self.row
        return {
            "admitted": self.admitted,
            "reason": self.reason,
            "floor": self.floor,
            "unit": self.key.unit,
            "n": row.n if row else 0,
            "evidence_id": row.evidence_id if row else None,
            "stale": True if self.stale else row.is_stale(now_ns) if row and now_ns is not None else None,
            "age": _days(row.age_ns(now_ns)) if row and now_ns is not None else None,
            "backend": self.key.backend,
            "model": self.key.model,
            "context": self.key.context,
            "shortfall": self.shortfall,
            "helps": self.helps,
            "other_paths": list(self.other_paths),
        } | ({"stale_because": self.stale} if self.stale else {})

    def __str__(self) -> str:
        if self.admitted:
            return f"{self.key}: {self.asked:,} tokens admitted: {self.reason}{self._stale_words()}"
        paths = f", or another path that this ask would meet: {', '.join(self.other_paths)}" if self.other_paths else ""
        evidence = f"n = {self.row.n}" if self.row else "n = 0"
        return (
            f"{self.key}: {self.asked:,} tokens refused as {self.reason}: the floor is {self.floor:,} ({evidence}), "
            f"{self.shortfall:,} are missing. A larger ask helps{paths}; a smaller one never does{self._stale_words()}"
        )

    def _stale_words(self) -> str:
        return f". Stale: {self.stale}" if self.stale else ""


def preflight(
    table: FloorTable,
    key: FloorKey,
    asked: int,
    *,
    unit: Unit | None = None,
    stale: Stale = "warn",
    now_ns: int | None = None,
    context_fields: Mapping[str, object] | None = None,
) -> Preflight:
    """Hold one ask against the floor of its path, before anything starts.

    Parameters
    ----------
    table : FloorTable
        The evidence.
    key : FloorKey
        The path; its unit says what `asked` counts.
    asked : int
        Tokens that the parent declares for the child.
    unit : str, optional
        The unit of `asked` when it is not the key's: always an error, since two units are never compared.
    stale : {"warn", "enforce", "ignore"}
        What evidence does that is past its date, or was measured under another starting context than the key's: it
        admits, saying so; it refuses like any other; or it counts as none.
    now_ns : int or None
        Epoch nanoseconds, for its date; None: no evidence is too old.
    context_fields : mapping or None
        What the key's starting context is made of, to name what changed.

    Returns
    -------
    Preflight
        Refused below the floor; admitted at it, above it, and where nothing was measured.

    Raises
    ------
    UnitMismatch
        If the path was measured only in another unit than the ask's.
    InputError
        If `asked` is not a count, or `now_ns` no whole number.

    Notes
    -----
    A floor is a lower bound seen so far, not a promise: meeting it predicts no success.
    """
    asked = count("asked tokens", asked)
    if unit is not None and unit != key.unit:
        raise UnitMismatch("unit of the ask", expected=f"the floor's unit {key.unit}", got=unit)
    if stale not in ("warn", "enforce", "ignore"):
        raise InputError("stale", expected="warn, enforce or ignore", got=stale)
    now_ns = None if now_ns is None else instant("now_ns", now_ns)
    row, why = _evidence(table, key, now_ns, context_fields or {})
    if row is None or (why and stale == "ignore"):
        if row is None:
            _check_unmeasured(table, key)
        return Preflight(key=key, asked=asked, row=None, admitted=True, reason=UNMEASURED, helps="nothing")
    if why and stale == "warn":
        return Preflight(key=key, asked=asked, row=row, admitted=True, reason=STALE, helps="nothing", stale=why)
    if not _rules.below(asked, row.floor if row.floor is not None else -1):
        return Preflight(key=key, asked=asked, row=row, admitted=True, reason=ADMITTED, helps="nothing", stale=why)
    others = tuple(str(other.key) for other in table.met_by(asked, unit=key.unit) if other.key != row.key)
    code = str(Code.BELOW_RUNTIME_FLOOR)
    return Preflight(
        key=key, asked=asked, row=row, admitted=False, reason=code, helps="larger", other_paths=others, stale=why
    )


def _evidence(
    table: FloorTable, key: FloorKey, now_ns: int | None, fields: Mapping[str, object]
) -> tuple[FloorRow | None, str]:
    """Return the row that speaks for a path, and why it is stale; empty when it is not."""
    row = table.lookup(key)
    if row is not None:
        late = now_ns is not None and row.is_stale(now_ns)
        return row, f"measured {_days(row.age_ns(now_ns or 0))} days ago" if late else ""
    old = table.before_change(key)
    return old, "" if old is None else _changed(old, key, fields)


def _changed(old: FloorRow, key: FloorKey, fields: Mapping[str, object]) -> str:
    """Say what changed since a floor was measured: the fields, or the digests where no fields are known."""
    known = old.context_fields if fields else {}
    names = [name for name in sorted({*known, *fields}) if known.get(name) != fields.get(name)] if known else []
    if not names:
        return f"the starting context is {key.context}, the floor was measured under {old.key.context}"
    said = [f"{name} {known.get(name)!r} -> {fields.get(name)!r}" for name in names]
    return f"the starting context changed in {', '.join(said)}"


def _check_unmeasured(table: FloorTable, key: FloorKey) -> None:
    other = table.units(key)
    if other:
        raise UnitMismatch(
            "unit of the ask",
            expected=f"the unit in which {key.backend} / {key.model} was measured ({', '.join(other)})",
            got=key.unit,
        )


def _days(age_ns: int | None) -> float | None:
    return None if age_ns is None else round(age_ns / 86_400e9, 2)
