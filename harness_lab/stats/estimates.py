"""What every statistical answer looks like: a figure, its interval, how many runs it rests on, and how it was got.

An answer that the data cannot support is a value too: :class:`NotEstimable`, which says what would be needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness_lab.errors import InputError
from harness_lab.writing import dollars
from harness_lab.writing import figure as figure
from harness_lab.writing import percent as percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval, ends included.

    Parameters
    ----------
    low, high : float
        Ends, in the unit of the estimate; ``-inf`` or ``inf`` where a one-sided interval has no end.
    confidence : float
        Stated confidence in (0, 1): of the whole interval, however many ends it has.
    method : str
        Name of the method in a few words.
    """

    low: float
    high: float
    confidence: float
    method: str

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if not self.low <= self.high:
            raise InputError("low", expected=f"at most high = {self.high:g}", got=self.low)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        """Distance between the ends; ``inf`` for a one-sided interval."""
        return self.high - self.low

    def scaled(self, factor: float) -> Interval:
        """Return the interval in another unit: both ends times `factor` (> 0)."""
        return replace(self, low=self.low * factor, high=self.high * factor)

    def __str__(self) -> str:
        return f"[{figure(self.low)}, {figure(self.high)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEstimable:
    """The answer "the data cannot support this", with what would be needed.

    Parameters
    ----------
    reason : str
        Why, in one sentence without a full stop.
    needs_n : int or None
        Smallest number of runs (or of clusters, see `of`) that could support an answer; None where more of the same
        data would not help or the number is not known.
    of : str
        What `needs_n` counts: ``"n"`` for runs, else ``"clusters"``.
    above : float or None
        What can be said all the same: the quantity lies above this, in the unit of the estimate.
    supported : float or None
        For a quantile: the largest one that the data support; 0 if they support none.
    unit : str
        Unit of `above`, for display.

    Examples
    --------
    >>> print(NotEstimable(reason="the 0.5 quantile lies beyond the stops", above=0.3, supported=0.254, unit="$"))
    not estimable: the 0.5 quantile lies beyond the stops; it lies above $0.30; the largest quantile supported is 0.254
    """

    reason: str
    needs_n: int | None = None
    of: str = "n"
    above: float | None = None
    supported: float | None = None
    unit: str = ""

    def scaled(self, factor: float, *, unit: str) -> NotEstimable:
        """Return the answer in another unit."""
        return replace(self, above=None if self.above is None else self.above * factor, unit=unit)

    def __str__(self) -> str:
        start = "not estimable" if self.needs_n is None else f"needs {self.of} >= {self.needs_n}"
        above = "" if self.above is None else f"; it lies above {with_unit(self.above, self.unit)}"
        largest = "" if self.supported is None else "; no quantile is supported"
        if self.supported:
            largest = f"; the largest quantile supported is {self.supported:.3f}"
        return f"{start}: {self.reason}{above}{largest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with everything that a reader needs to judge it.

    Parameters
    ----------
    value : float or None
        The point estimate; None where the data support none.
    interval : Interval or NotEstimable
        Its interval, or why there is none.
    n : int
        Runs (or nodes, or pairs) that it rests on.
    method : str
        How the value was got.
    clusters : int or None
        Independent groups (users, repositories, sessions) among them; None where no groups are known.
    effective_n : float or None
        Independent runs that would tell as much; None where no groups are known.
    unit : str
        Unit of the value, for display; empty for a share or a count.
    note : str
        What else has to be said beside the figure.

    Examples
    --------
    >>> interval = Interval(low=0.38, high=0.47, confidence=0.95, method="Wilson")
    >>> print(Estimate(value=0.42, interval=interval, n=240, method="share"))
    0.42 [0.38, 0.47] (95 %, n = 240, Wilson)
    >>> print(Estimate(value=None, interval=NotEstimable(reason="n = 6", needs_n=59), n=6, method="order statistic"))
    needs n >= 59: n = 6
    """

    value: float | None
    interval: Interval | NotEstimable
    n: int
    method: str
    clusters: int | None = None
    effective_n: float | None = None
    unit: str = ""
    note: str = ""

    @property
    def estimable(self) -> bool:
        """Whether there is an interval."""
        return isinstance(self.interval, Interval)

    @property
    def low(self) -> float | None:
        """Lower end of the interval, None if there is none."""
        return self.interval.low if isinstance(self.interval, Interval) else None

    @property
    def high(self) -> float | None:
        """Upper end of the interval, None if there is none."""
        return self.interval.high if isinstance(self.interval, Interval) else None

    @property
    def confidence(self) -> float | None:
        """Confidence of the interval, None if there is none."""
        return self.interval.confidence if isinstance(self.interval, Interval) else None

    @property
    def needs_n(self) -> int | None:
        """How many runs or clusters would be needed; None if there is an interval or it is not known."""
        return self.interval.needs_n if isinstance(self.interval, NotEstimable) else None

    def holds(self, truth: float) -> bool | None:
        """Whether the interval contains `truth`; None if there is no interval."""
        return truth in self.interval if isinstance(self.interval, Interval) else None

    def scaled(self, factor: float, *, unit: str) -> Estimate:
        """Return the estimate in another unit: value and ends times `factor` (> 0)."""
        value = None if self.value is None else self.value * factor
        if isinstance(self.interval, Interval):
            return replace(self, value=value, interval=self.interval.scaled(factor), unit=unit)
        return replace(self, value=value, interval=self.interval.scaled(factor, unit=unit), unit=unit)

    def record(self) -> dict[str, object]:
        """Return a flat row for a table: value, ends, confidence, n, clusters, effective_n, method, needs_n, note."""
        missing = str(self.interval) if isinstance(self.interval, NotEstimable) else ""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "n": self.n,
            "clusters": self.clusters,
            "effective_n": self.effective_n,
            "method": self.interval.method if isinstance(self.interval, Interval) else self.method,
            "needs_n": self.needs_n,
            "note": "; ".join(part for part in (missing, self.note) if part),
        }

    def __str__(self) -> str:
        size = f"n = {self.n:,}{self._size()}"
        value = "unknown" if self.value is None else with_unit(self.value, self.unit)
        if isinstance(self.interval, Interval):
            mark = "$" if self.unit == "$" else ""
            ends = ", ".join(with_unit(end, mark) for end in (self.interval.low, self.interval.high))
            return f"{value} [{ends}] ({percent(self.interval.confidence)}, {size}, {self.interval.method})"
        if self.value is None:
            return str(self.interval)
        return f"{value}, no interval ({size}); {self.interval}"

    def _size(self) -> str:
        clusters = "" if self.clusters is None else f", {self.clusters:,} clusters"
        return clusters + ("" if self.effective_n is None else f", effective n {self.effective_n:,.0f}")


def with_unit(value: float, unit: str) -> str:
    """Write a number with its unit; dollars go before it.

    Examples
    --------
    >>> with_unit(-0.25, "$"), with_unit(31211, "tokens")
    ('-$0.25', '31,211 tokens')
    """
    return dollars(value) if unit == "$" else f"{figure(value)} {unit}".strip()


def p_value(p: float) -> str:
    """Write a p-value; below a thousandth its size says nothing more.

    Examples
    --------
    >>> p_value(0.0027), p_value(6.4e-28)
    ('p = 0.0027', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def check_confidence(confidence: float, *, what: str = "confidence") -> float:
    """Return `confidence` if it lies in (0, 1).

    Raises
    ------
    InputError
        If it does not.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise InputError(what, expected="a number in (0, 1), such as 0.95", got=confidence)
    return float(confidence)
