"""``quality``: how good a table of settlements is, and what each flaw does to which analysis."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from harness_lab.errors import InputError
from harness_lab.settlements._findings import Finding, row_findings, table_findings
from harness_lab.settlements._shape import Pile, Shift, piles, shifts
from harness_lab.settlements.settlements import Settlements, unknown_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from harness_lab.settlements.costs import Recomputed
    from harness_lab.settlements.reconcile import Reconciled
    from harness_lab.settlements.report import ReadReport

_PRICES_AGREE: Final = 0.02
_UNITS: Final = {"cost_nusd": ("$", 1e-9), "duration_ns": ("s", 1e-9)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Quality:
    """How good a table is. Made by :func:`quality`.

    Parameters
    ----------
    report : ReadReport
        How reading went: rows read, kept, set aside with file, line and reason, duplicates.
    rows, runs : int
        Node rows and runs in the table.
    findings : tuple of Finding
        What was found, in the order of the checks; each says what it does to which analysis.
    by_outcome : DataFrame
        One row per outcome: ``outcome, rows, unknown_usage, unknown_cost, unknown_delivery, runs`` and the three as
        ``..._share``: usage and cost of the rows, delivery of the runs (their roots), NaN where there are none.
    shifts : tuple of Shift
        The later half of the rows against the earlier one; empty where fewer than 40 rows have a start.
    piles : tuple of Pile
        Values at which rows pile up: ceilings that can be seen in the figures.
    """

    report: ReadReport
    rows: int
    runs: int
    findings: tuple[Finding, ...]
    by_outcome: pd.DataFrame
    shifts: tuple[Shift, ...] = ()
    piles: tuple[Pile, ...] = ()
    costs: Recomputed | None = field(default=None)
    bill: Reconciled | None = field(default=None)

    def finding(self, code: str) -> Finding | None:
        """Return the finding of that name; None: it was not found."""
        return next((found for found in self.findings if found.code == code), None)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per finding: ``code, what, rows, of, share`` (NA: not counted in rows), ``effect, detail``."""
        columns = ("code", "what", "rows", "of", "share", "effect", "detail")
        data = {name: [getattr(found, name) for found in self.findings] for name in columns}
        return pd.DataFrame(data).astype({"share": "Float64"})

    def summary(self) -> str:
        """Return the report in plain text."""
        lines = [f"{self.rows:,} node(s) of {self.runs:,} run(s)", self._reading()]
        if self.findings:
            lines += ["", "what a reader of these figures should know:"]
            lines += [f"  - {found}" for found in self.findings]
        else:
            lines.append("nothing odd was found")
        lines += ["", "unknown by outcome (usage and cost of rows, delivery of runs):"]
        shares = ("unknown_usage_share", "unknown_cost_share", "unknown_delivery_share")
        rows: Any = self.by_outcome.itertuples(index=False)
        for row in rows:
            known = [getattr(row, name) for name in shares]
            said = ", ".join("-" if share != share else f"{share:.0%}" for share in known)
            lines.append(f"  {row.outcome}: {row.rows:,} row(s), {row.runs:,} run(s); {said}")
        if self.costs is not None:
            lines += ["", "recorded and recomputed cost:", self.costs.summary()]
        if self.bill is not None:
            lines += ["", "against the provider's own figures:", self.bill.summary()]
        return "\n".join(lines)

    def _reading(self) -> str:
        silent = self.rows > 0 and self.report.read == 0
        return (
            "how reading went is not known here (a store does not keep it)"
            if silent
            else self.report.summary(examples=3)
        )

    def explain(self) -> str:
        """Return what the report means, what it does not, and what to do next."""
        return (
            "Each finding counts rows (or records, paths, columns) and says which analysis it bends, and which way. A "
            "finding is no verdict: a table with unknown costs still gives floors in tokens. What the report cannot "
            "see: runs that were never recorded (hold the records against the provider's bill with reconcile()), and "
            "figures that are wrong and plausible.\n"
            "Unknown by outcome: where the share differs between outcomes, what is missing is missing for a reason, "
            "and leaving it out bends every figure.\n"
            "Drift compares the half that started later with the half that started earlier; its interval takes rows as "
            "independent, which runs of one session are not. Piles are values that many rows reach and few exceed: "
            "rows there were probably stopped, whatever their outcome says.\n"
            "Next: labels=FILE for delivery, recompute() for cost, where(record_unit=...) for mixed units."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "rows": self.rows,
            "runs": self.runs,
            "read": self.report.to_dict(),
            "findings": [
                {name: getattr(found, name) for name in ("code", "what", "rows", "of", "share", "effect", "detail")}
                for found in self.findings
            ],
            "by_outcome": self.by_outcome.to_dict("records"),
            "drift": [{**shift._asdict(), "moved": shift.moved} for shift in self.shifts],
            "piles": [pile._asdict() for pile in self.piles],
            "costs": None if self.costs is None else self.costs.to_frame(),
            "bill": None if self.bill is None else self.bill.to_dict(),
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the findings that are counted in rows as shares, largest on top; return the axes."""
        from harness_lab.plots.quality import plot_quality

        return plot_quality(self.to_frame(), ax=ax)

    def __repr__(self) -> str:
        return f"Quality({self.rows:,} rows, {len(self.findings)} finding(s))"

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(index=False, escape=True, na_rep="")
        outcomes = self.by_outcome.to_html(index=False, escape=True, float_format=lambda share: f"{share:.1%}")
        report = escape(self._reading())
        return f"<p><b>{escape(repr(self))}</b></p><pre>{report}</pre>{table}{outcomes}"


def quality(settlements: Settlements, *, costs: Recomputed | None = None, bill: Reconciled | None = None) -> Quality:
    """Say how good a table of settlements is.

    Parameters
    ----------
    settlements : Settlements
        The table, with the report of its reading.
    costs : Recomputed, optional
        Of :func:`recompute`: adds what could not be priced and where recorded and recomputed cost disagree.
    bill : Reconciled, optional
        Of :func:`reconcile`: adds what the records miss.

    Returns
    -------
    Quality
        With ``summary()``, ``to_frame()``, ``explain()`` and ``plot()``.

    Raises
    ------
    InputError
        If `settlements` is something else.

    Examples
    --------
    >>> table = Settlements.from_columns({"run": ["a", "b"], "node": "0", "outcome": "completed", "output": [0, 5],
    ...     "input_total": [90, 80]})
    >>> quality(table).finding("prompt-without-output").rows
    1
    """
    if not isinstance(settlements, Settlements):
        raise InputError("quality", expected="Settlements", got=type(settlements).__name__)
    nodes = settlements.nodes
    moved, piled = tuple(shifts(nodes)), tuple(piles(nodes))
    found = [*table_findings(settlements), *row_findings(nodes), *_of_shape(moved, piled)]
    found += [*_of_costs(costs), *_of_bill(bill)]
    return Quality(
        report=settlements.report,
        rows=len(nodes),
        runs=int(nodes["run"].nunique()),
        findings=tuple(found),
        by_outcome=_by_outcome(nodes),
        shifts=moved,
        piles=piled,
        costs=costs,
        bill=bill,
    )


def _by_outcome(nodes: pd.DataFrame) -> pd.DataFrame:
    flags = pd.DataFrame(
        {
            "outcome": nodes["outcome"],
            "unknown_usage": unknown_usage(nodes).astype(int),
            "unknown_cost": (nodes["cost_nusd"].isna() & (nodes["outcome"] != "denied")).astype(int),
            "unknown_delivery": (nodes["delivered"].isna() & nodes["parent"].isna()).astype(int),
            "runs": nodes["parent"].isna().astype(int),
        }
    )
    grouped = flags.groupby("outcome", sort=True)
    table = grouped.sum()
    table.insert(0, "rows", grouped.size())
    for name, of in (("unknown_usage", "rows"), ("unknown_cost", "rows"), ("unknown_delivery", "runs")):
        table[f"{name}_share"] = table[name] / table[of].replace(0, float("nan"))
    return table.reset_index()


def _of_shape(moved: tuple[Shift, ...], piled: tuple[Pile, ...]) -> Iterator[Finding]:
    drifting = [shift for shift in moved if shift.moved]
    if drifting:
        detail = "; ".join(
            f"{shift.column}: median {_amount(shift.column, shift.earlier)} to {_amount(shift.column, shift.later)}, "
            f"later is larger with chance {shift.later_is_larger:.2f} ({shift.low:.2f} to {shift.high:.2f}, "
            f"n {shift.n_earlier:,} + {shift.n_later:,})"
            for shift in drifting
        )
        yield Finding(
            code="drift",
            what="quantities that differ between the earlier and the later half",
            rows=len(drifting),
            of=len(moved),
            effect="A ceiling or floor of the whole period fits neither half: derive it from the later one, and say "
            "from when.",
            detail=detail,
        )
    for pile in piled:
        known = "a ceiling that the records name" if pile.declared else "a limit that the records do not name"
        yield Finding(
            code="visible-ceiling",
            what=f"rows pile up at {pile.column} {_amount(pile.column, pile.value)}",
            rows=pile.rows,
            of=pile.of,
            effect="They were probably stopped there: taken as completed they make quantiles, ceilings and means too "
            "low.",
            detail=f"{pile.above:,} above; {known}",
        )


def _of_costs(costs: Recomputed | None) -> Iterator[Finding]:
    if costs is None:
        return
    total = len(costs.rows)
    bare = int(costs.rows["reason"].notna().sum())
    if bare:
        models = ", ".join(costs.unpriced_models[:5])
        yield Finding(
            code="unpriced",
            what="rows that could not be priced",
            rows=bare,
            of=total,
            effect="Computed cost leaves them out; give a price table for the models named.",
            detail=f"no price for {models}" if models else "",
        )
    table = costs.to_frame()
    rows: Any = table[table["ratio"].notna()].itertuples(index=False)
    for row in rows:
        if abs(row.ratio - 1) > _PRICES_AGREE:
            yield Finding(
                code="prices-differ",
                what=f"{row.model}: recorded over recomputed cost {row.ratio:.3f}",
                rows=row.compared,
                of=total,
                effect="Ceilings in dollars hold for the recorded prices; for list prices they shift by this ratio.",
                detail=f"${row.recorded_usd:,.2f} recorded, ${row.recomputed_usd:,.2f} recomputed",
            )


def _of_bill(bill: Reconciled | None) -> Iterator[Finding]:
    if bill is None or not bill.missing_usd:
        return
    share = "" if bill.covered is None else f"; the records cover {bill.covered:.1%} of the bill"
    yield Finding(
        code="missing-spend",
        what="days and models for which the bill exceeds the records",
        rows=bill.days_missing,
        of=bill.days,
        effect="Spend without a record is in no floor, ceiling or mean: look for other clients, subagents, other keys.",
        detail=f"${bill.missing_usd:,.2f} of ${bill.billed_usd:,.2f} billed{share}",
    )


def _amount(column: str, value: float) -> str:
    unit, factor = _UNITS.get(column, ("", 1.0))
    shown = f"{value * factor:,.4g}" if factor != 1.0 else f"{value:,.0f}"
    return f"${shown}" if unit == "$" else f"{shown} {unit}".strip()


__all__ = ["Finding", "Pile", "Quality", "Shift", "quality"]
