"""A provider fitted to records: per path (backend, model, context), by family or by the recorded calls themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError
from harness_lab.pricing import PriceTable
from harness_lab.providers.mock import MockProvider
from harness_lab.providers.profile import ModelProfile
from harness_lab.providers.recorded import RecordedModel
from harness_lab.stats.distributions import Distribution
from harness_lab.stats.fits import MIN_N, fit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from harness_lab.agents.ports import Call, Model, Reply, Runtime, WorldModel
    from harness_lab.settlements import Settlements
    from harness_lab.usage import Amounts

Method = Literal["family", "empirical"]
METHODS: tuple[Method, ...] = ("family", "empirical")
MAX_SAMPLE = 4_000
"""Values used for a fit; of more, evenly spaced order statistics are taken."""
FAR = 100
"""A family is clipped at so many times the largest recorded value."""
_COLUMNS = ["of", "quantity", "model", "n", "censored", "mean", "reason", "fell_back"]


class FitNotes:
    """Collects what was fitted, how, and where it fell back to something plainer.

    Parameters
    ----------
    method : {"family", "empirical"}
        Whether families are tried, or recorded values kept.
    """

    __slots__ = ("_method", "_rows")

    def __init__(self, method: Method = "family") -> None:
        self._method = method
        self._rows: list[tuple[Any, ...]] = []

    def fitted(
        self, of: str, quantity: str, values: NDArray[np.float64], censored: NDArray[np.bool_] | None = None
    ) -> Distribution:
        """Fit one quantity and note it."""
        if len(values) == 0:
            raise InputError(f"{quantity} of {of}", expected="at least one call with known usage", got="none")
        x, stopped = _thinned(values, censored)
        count = 0 if censored is None else int(censored.sum())
        if self._method == "empirical":
            kept = Distribution.empirical(x)
            self.note(of, quantity, kept, len(values), "recorded values", count, fell_back=False)
            return kept
        found = fit(x, censored=stopped, resamples=0)
        chosen = _within(found.distribution, found.largest)
        self.note(of, quantity, chosen, len(values), found.reason, count, fell_back=not found.candidates)
        return chosen

    def note(
        self, of: str, quantity: str, model: Distribution, n: int, why: str, censored: int = 0, *, fell_back: bool
    ) -> None:
        """Note what a quantity is drawn from."""
        self._rows.append((of, quantity, str(model), n, censored, model.mean(), why, fell_back))

    def frame(self) -> pd.DataFrame:
        """Return the notes."""
        return pd.DataFrame(self._rows, columns=_COLUMNS)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Provider(MockProvider):
    """A provider fitted to records; make it with :meth:`fit`.

    Parameters
    ----------
    fits : DataFrame
        One row a quantity: of (the path), quantity, model (what it is drawn from), n, censored, mean, reason,
        fell_back (too little data for what was asked).
    """

    fits: pd.DataFrame

    @classmethod
    def fit(cls, settlements: Settlements, *, method: Method = "empirical", prices: PriceTable | None = None) -> Self:
        """Fit how each path answers.

        Parameters
        ----------
        settlements : Settlements
            Records with call rows.
        method : {"empirical", "family"}
            The recorded answers with their times, drawn together (a long answer takes long); or a family for each
            quantity by held-out likelihood, drawn apart.
        prices : PriceTable, optional
            What the models cost; without it, calls that are not played from a record have unknown cost.

        Returns
        -------
        Provider
            A model for each path: under the model's own name, or ``model (backend, context)`` where a model was used
            on several. A path of fewer than 30 completed calls of known usage is given those of its model on all
            paths, if they are more; `fits` says so.

        Raises
        ------
        InputError
            If there are no call rows, a path has no call with known usage, or the method does not exist.
        """
        if method not in METHODS:
            raise InputError("method", expected=f"one of {', '.join(METHODS)}", got=method)
        if settlements.calls is None or settlements.calls.empty:
            raise InputError("records to fit", expected="call rows beside the nodes", got="none")
        return cls.of_calls(with_paths(settlements.calls, settlements.nodes), method=method, prices=prices)

    @classmethod
    def of_calls(cls, calls: pd.DataFrame, *, method: Method, prices: PriceTable | None) -> Self:
        """Fit call rows that name their path in the column ``path_model`` and have `sent_before` (see `with_paths`)."""
        notes = FitNotes()
        models = {}
        for name, part in calls.groupby("path_model"):
            used, why = _enough(part, calls[calls["model"] == part["model"].iloc[0]], calls)
            models[str(name)] = _profile(str(name), used, notes, method, why)
        table = PriceTable() if prices is None else _named_prices(prices, calls)
        return cls(models=models, prices=table, fits=notes.frame())

    def compile(self) -> WorldModel:
        """Make the draw tables; the result answers calls, those that carry a record from it."""
        ceilings = {name: profile.max_output_tokens for name, profile in self.models.items()}
        recorded = RecordedModel(self.prices, ceilings, reprice=True, keep_unpriced=True)
        return FittedModel(super().compile(), recorded)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: profiles and prices."""
        return {"models": dict(self.models), "prices": self.prices.to_dict()}

    def summary(self) -> str:
        """Return the fits, one line each."""
        return "\n".join(["fitted from the records:", *fit_lines(self.fits)])

    def explain(self) -> str:
        """Return what the fit leaves out."""
        return (
            "Answers are drawn for each path, independently of what the call before answered, of user, repository and "
            "task, and of the prompt's size. How many calls an agent makes is the workload's: fit_world fits both."
        )

    def __repr__(self) -> str:
        return f"Provider({', '.join(sorted(self.models))}; {len(self.fits)} fits)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


class FittedModel:
    """Answers from the record where a call carries one, and draws where it does not."""

    __slots__ = ("_drawing", "_mock", "_recorded")

    def __init__(self, drawing: WorldModel, recorded: RecordedModel) -> None:
        self._drawing = drawing
        self._mock = drawing.fresh()
        self._recorded = recorded

    def fresh(self) -> FittedModel:
        """Return the model for a world of its own."""
        return FittedModel(self._drawing, self._recorded)

    def bound(self, call: Call) -> Amounts:
        """Return the worst case by channel; None: cannot be bounded."""
        return self._for(call).bound(call)

    def abandoned(self, call: Call, elapsed_ns: int) -> int | None:
        """Return what is billed for a call that was dropped after `elapsed_ns`; None: nobody can know."""
        return self._for(call).abandoned(call, elapsed_ns)

    async def complete(self, runtime: Runtime, call: Call) -> Reply:
        """Make the call."""
        return await self._for(call).complete(runtime, call)

    def _for(self, call: Call) -> Model:
        return self._mock if call.answer is None else self._recorded


def with_paths(calls: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    """Return call rows in order with their agent, their path, and what the call before sent and answered.

    The column ``path_model`` names the path: the model alone where it was used on one path only.
    """
    places = nodes[["run", "node", "agent", "backend", "context"]]
    named = calls.merge(places, on=["run", "node"], how="inner")
    named = named.sort_values(["run", "node", "call", "attempt"], kind="stable").reset_index(drop=True)
    before = named.groupby(["run", "node"], sort=False)
    done = named["start_ns"] + named["duration_ns"]
    return named.assign(
        sent_before=before["input_total"].shift(),
        answered_before=before["output"].shift(),
        pause_ns=named["start_ns"] - done.groupby([named["run"], named["node"]], sort=False).shift(),
        path_model=path_models(named),
    )


def path_models(rows: pd.DataFrame) -> pd.Series[Any]:
    """Return the name of each row's path: its model, told apart by backend and context where it has several."""
    model, backend, context = (
        [str(value) for value in rows[name].fillna("unknown")] for name in ("model", "backend", "context")
    )
    places = pd.Series([f"({b}, {c})" for b, c in zip(backend, context, strict=True)], index=rows.index, dtype=object)
    several = places.groupby(pd.Series(model, index=rows.index)).transform("nunique") > 1
    named = [f"{m} {p}" if s else m for m, p, s in zip(model, places, several, strict=True)]
    return pd.Series(named, index=rows.index, dtype=object)


def fit_lines(fits: pd.DataFrame) -> list[str]:
    """Return one line a fit, and the reason where it fell back."""
    lines = []
    for row in fits.to_dict("records"):
        note = f"; fell back: {row['reason']}" if row["fell_back"] else ""
        cut = f"(n = {row['n']:,}, {row['censored']:,} cut short)"
        lines.append(f"  {row['of']} {row['quantity']}: {row['model']} {cut}{note}")
    return lines


def _enough(part: pd.DataFrame, of_model: pd.DataFrame, everything: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return a path's calls, or where they are too few, those of its model on all paths, or of all models."""
    known, more, most = (int(_known(calls).sum()) for calls in (part, of_model, everything))
    if known >= MIN_N or most <= known:
        return part, ""
    few = f"n = {known} on this path is too few ({MIN_N} needed)"
    if more > known:
        return of_model, f"{few}: the model's {more:,} on all paths"
    return (everything, f"{few}: the {most:,} of all models") if known == 0 else (part, few)


def _profile(name: str, calls: pd.DataFrame, notes: FitNotes, method: Method, pooled: str) -> ModelProfile:
    done = _completed(calls)
    known = calls[_known(calls)]
    if known.empty:
        raise InputError(f"answers of {name}", expected="at least one call with known usage", got="none")
    later = known[known["sent_before"].notna() & known["cache_read"].notna()]
    resent, read = float(later["sent_before"].sum()), float(later["cache_read"].sum())
    rest = float((known["input_fresh"] + known["cache_write"]).sum())
    return ModelProfile(
        **_answers(name, known, notes, method, pooled),
        error_rate=float(calls["status"].isin(["failed", "unsent"]).mean()),
        unreported_rate=float(done["input_total"].isna().mean()),
        cache_share=min(1.0, read / resent) if resent else 0.0,
        cache_write_share=min(1.0, float(known["cache_write"].sum()) / rest) if rest else 0.0,
        max_output_tokens=int(known["output"].max()),
    )


def _answers(name: str, known: pd.DataFrame, notes: FitNotes, method: Method, pooled: str) -> dict[str, Any]:
    """Return what a model's sizes and times are drawn from."""
    output = known["output"].to_numpy(dtype=np.float64)
    timed = known["duration_ns"].notna().to_numpy()
    took = np.where(timed, known["duration_ns"].fillna(0).to_numpy(dtype=np.float64) / NS_PER_S, 0.0)
    if method == "family":
        seconds = notes.fitted(name, "latency, s", took[timed]) if timed.any() else _no_times(name, notes, len(took))
        return {"output_tokens": notes.fitted(name, "output tokens", output), "latency_s": seconds}
    kept = _evenly(output, took)
    tokens, seconds = Distribution.empirical(output[kept]), Distribution.empirical(took[kept])
    why = pooled or "recorded answers and their times, drawn together"
    notes.note(name, "output tokens", tokens, len(output), why, fell_back=bool(pooled))
    if timed.any():
        notes.note(name, "latency, s", seconds, int(timed.sum()), why, fell_back=bool(pooled))
    else:
        seconds = _no_times(name, notes, len(took))
    pairs = tuple((int(o), round(s * NS_PER_S)) for o, s in zip(output[kept], took[kept], strict=True))
    return {"output_tokens": tokens, "latency_s": seconds, "recorded": pairs}


def _no_times(name: str, notes: FitNotes, n: int) -> Distribution:
    nothing = Distribution.constant(0)
    notes.note(name, "latency, s", nothing, n, "no call has a recorded duration: calls take no time", fell_back=True)
    return nothing


def _evenly(output: NDArray[np.float64], took: NDArray[np.float64]) -> NDArray[np.intp]:
    order = np.lexsort((took, output))
    kept: NDArray[np.intp] = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), MAX_SAMPLE)).astype(int))]
    return kept


def _within(distribution: Distribution, largest: float) -> Distribution:
    """Return a fit clipped to what can be: not below nothing, nor far beyond all that was seen."""
    if distribution.dist in ("constant", "empirical"):
        return distribution
    low, high = distribution.ppf([2.0**-40, 1 - 2.0**-40])
    most = FAR * max(largest, 1.0)
    return replace(distribution, low=0.0 if low < 0 else None, high=most if high > most else None)


def _known(calls: pd.DataFrame) -> pd.Series[bool]:
    completed = calls["status"].isna() | (calls["status"] == "completed")
    known: pd.Series[bool] = completed & calls["input_total"].notna() & calls["output"].notna()
    return known


def _completed(calls: pd.DataFrame) -> pd.DataFrame:
    return calls[calls["status"].isna() | (calls["status"] == "completed")]


def _named_prices(prices: PriceTable, calls: pd.DataFrame) -> PriceTable:
    """Return the prices with those of each model under the names of its paths too."""
    pairs: Mapping[str, str] = dict(zip(calls["path_model"], calls["model"].fillna("unknown"), strict=True))
    more = {path: prices.models[model] for path, model in pairs.items() if model in prices.models}
    return PriceTable({**prices.models, **more}, source=prices.source, date=prices.date)


def _thinned(
    values: NDArray[np.float64], censored: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    order = np.argsort(values, kind="stable")
    step = np.unique(np.linspace(0, len(values) - 1, min(len(values), MAX_SAMPLE)).astype(int))
    kept = order[step]
    if censored is None or not censored.any():
        return values[kept], None
    return values[kept], censored[kept]
