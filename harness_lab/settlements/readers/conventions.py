"""Does a prompt count hold the cached part? Told by a file's own rows, so that the counts kept are always disjoint.

A source documents one convention, and emitters, versions and gateways follow others. Per row the record's own total
tells (``input + output == total``: cached inside; ``input + cached + output == total``: beside it). A row with more
cached than input shows for all rows of its group (one emitter in one file) that the cached part is beside. A total that
fits no reading is a contradiction: the row's tokens are left unknown and counted, not guessed. Where more is cached
than the input counts and the total is input and output alone, the emitter leaves cached tokens out of its totals, which
then tell nothing for its group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from harness_lab.settlements.readers.base import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """Token counts as a record has them, whatever they include; None: not there."""

    input: int | None = None
    read: int | None = None
    write: int | None = None
    write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None

    @property
    def cached(self) -> int:
        """Tokens read from and written to a cache, as far as known."""
        return (self.read or 0) + (self.write or 0)


_READINGS: Final = ((True, True), (False, True), (True, False), (False, False))


class Conventions:
    """The reading of each group of rows: whether cached tokens are inside the input, and reasoning inside the output.

    Parameters
    ----------
    cached_inside, reasoning_inside : bool
        What the format says; holds where the rows say nothing.

    Examples
    --------
    >>> rules = Conventions(cached_inside=True)
    >>> raw = Raw(input=1_000, read=500, output=200, total=1_700)
    >>> rules.see("f", raw)
    >>> counts = rules.disjoint("f", raw)
    >>> counts["input_total"], counts["input_fresh"]
    (1500, 1000)
    """

    def __init__(self, *, cached_inside: bool, reasoning_inside: bool = True) -> None:
        self._default = (cached_inside, reasoning_inside)
        self._shown: dict[tuple[Hashable, int], bool] = {}
        self._bare: set[Hashable] = set()
        self.contradictions = 0
        self.deviating = 0

    def see(self, group: Hashable, raw: Raw) -> None:
        """Take a row as evidence for its group; all rows are seen before the first is made disjoint."""
        if _bare(raw) and _beside(raw):
            self._bare.add(group)
        shown = self._by_total(raw)
        for part in (0, 1):
            if not self._tells(raw, part):
                continue
            if shown is not None:
                self._shown.setdefault((group, part), shown[part])
            elif (_beside(raw), _apart(raw))[part]:
                self._shown[group, part] = False

    def disjoint(self, group: Hashable, raw: Raw) -> Record:
        """Return a row's counts as columns of the table: parts that do not overlap."""
        reading = None if _bare(raw) and (group in self._bare or _beside(raw)) else self._by_total(raw)
        if reading is None and raw.total is not None and None not in (raw.input, raw.output) and not _bare(raw):
            self.contradictions += 1
            return {}
        if reading is None:
            reading = self._by_group(group, raw)
        differs = [part for part in (0, 1) if reading[part] != self._default[part]]
        self.deviating += any(self._tells(raw, part) for part in differs)
        return _columns(raw, *reading)

    def _by_group(self, group: Hashable, raw: Raw) -> tuple[bool, bool]:
        """Return how a row is read that does not tell itself: as its sizes show, its group, or what the format says."""
        beside = _beside(raw) or group in self._bare
        cached = not beside and self._shown.get((group, 0), self._default[0])
        reasoning = not _apart(raw) and self._shown.get((group, 1), self._default[1])
        return cached, reasoning

    @staticmethod
    def _tells(raw: Raw, part: int) -> bool:
        """Whether a row distinguishes the readings at all: with nothing cached, both are the same."""
        return raw.cached > 0 if part == 0 else bool(raw.reasoning)

    def _by_total(self, raw: Raw) -> tuple[bool, bool] | None:
        """Return the reading under which the row's own total is met, nearest to what the format says; None: none."""
        if raw.total is None or raw.input is None or raw.output is None:
            return None
        for reading in sorted(_READINGS, key=self._distance):
            inside, within = reading
            beside = (0 if inside else raw.cached) + (0 if within else raw.reasoning or 0)
            fits = not inside or raw.cached <= raw.input
            fits = fits and (not within or (raw.reasoning or 0) <= raw.output)
            if fits and raw.input + raw.output + beside == raw.total:
                return reading
        return None

    def _distance(self, reading: tuple[bool, bool]) -> int:
        return sum(got != said for got, said in zip(reading, self._default, strict=True))

    def note(self, name: str, notes: list[str]) -> None:
        """Add notes on rows that follow another convention than the format's, and on contradictions."""
        if self.deviating:
            notes.append(
                f"{name}: {self.deviating:,} row(s) count cached or reasoning tokens otherwise than the format says; "
                "read as their own totals and sizes show"
            )
        if self.contradictions:
            fits_none = "row(s) whose total fits no reading; their tokens are unknown"
            notes.append(f"{name}: {self.contradictions:,} {fits_none}")


def _beside(raw: Raw) -> bool:
    """Whether more is cached than the input counts, so that the cached part cannot be inside."""
    return raw.input is not None and raw.cached > raw.input


def _apart(raw: Raw) -> bool:
    """Whether there is more reasoning than output, so that it cannot be inside."""
    return raw.output is not None and (raw.reasoning or 0) > raw.output


def _bare(raw: Raw) -> bool:
    """Whether the total is input and output alone: with cached tokens beside, some emitters leave them out of it."""
    return raw.total is not None and None not in (raw.input, raw.output) and raw.total == raw.input + raw.output  # type: ignore[operator]


def _columns(raw: Raw, inside: bool, within: bool) -> Record:
    read, write = raw.read, raw.write
    nothing = raw.total is not None and None not in (raw.input, raw.output) and raw.cached == 0
    if read is None and write is None and nothing and not inside:
        read = write = 0  # a total that leaves no room for cached tokens beside the input
    elif read is not None or write is not None:
        read, write = read or 0, write or 0  # a source that tells of one kind has none of the other
    row: Record = {"cache_read": read, "cache_write": write, "cache_write_1h": raw.write_1h}
    row["input_total" if inside else "input_fresh"] = raw.input
    row["reasoning"] = raw.reasoning
    row["output"] = raw.output
    if not within and raw.output is not None:
        row["output"] = raw.output + (raw.reasoning or 0)
    if raw.input is not None and read is not None and write is not None:
        row["input_total"] = raw.input + (0 if inside else read + write)
        row["input_fresh"] = raw.input - (read + write if inside else 0)
    return row


class Parts(NamedTuple):
    """Prompt tokens, disjoint, and their sum. All None: the source contradicts itself."""

    fresh: int | None
    read: int | None
    write: int | None
    total: int | None


CONTRADICTION = Parts(None, None, None, None)


def disjoint(
    *,
    given: int | None,
    read: int | None,
    write: int | None,
    output: int | None,
    total: int | None,
    usual: Literal["inside", "beside"],
) -> Parts:
    """Return disjoint prompt counts, whatever the source's convention.

    Parameters
    ----------
    given, read, write : int or None
        The source's input count, and its cache reads and writes.
    output : int or None
        All that was generated.
    total : int or None
        The source's own sum of all, which tells where the cached tokens are counted; None: it has none.
    usual : {"inside", "beside"}
        Where the format counts cached tokens as documented: used where the total does not tell.

    Returns
    -------
    Parts
        ``CONTRADICTION`` where the total fits neither way: flagged, not guessed.

    Examples
    --------
    >>> disjoint(given=1_000, read=500, write=0, output=200, total=1_200, usual="beside")
    Parts(fresh=500, read=500, write=0, total=1000)
    >>> disjoint(given=1_000, read=500, write=0, output=200, total=1_700, usual="inside")
    Parts(fresh=1000, read=500, write=0, total=1500)
    >>> disjoint(given=1_000, read=500, write=0, output=200, total=1_450, usual="inside") == CONTRADICTION
    True
    """
    if given is None:
        return CONTRADICTION
    cached = (read or 0) + (write or 0)
    inside = usual == "inside"
    if total is not None and output is not None:
        fits_inside, fits_beside = total == given + output, total == given + cached + output
        if not (fits_inside or fits_beside):
            return CONTRADICTION
        inside = fits_inside if fits_inside != fits_beside else inside
    if inside and cached > given:
        return CONTRADICTION
    whole = given if inside else given + cached
    if read is None:
        return Parts(None, None, None, whole)
    return Parts(whole - cached, read, write or 0, whole)
