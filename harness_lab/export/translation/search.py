"""What a target cannot be told as it is meant: which of its settings comes closest in its place, by simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from harness_lab.export.carry import StandIn
from harness_lab.export.decisions import kind_of, runs_of
from harness_lab.export.targets.amounts import Unfit
from harness_lab.export.translation.result import Searched
from harness_lab.export.translation.usage import SUMMED, between, grid, used
from harness_lab.export.translation.worlds import alone
from harness_lab.export.turns import with_names, with_turns
from harness_lab.export.values import values_of
from harness_lab.export.writers import export

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from harness_lab.export.config import TunedConfig
    from harness_lab.export.decisions import Run
    from harness_lab.export.targets.base import Knob, Target
    from harness_lab.export.values import Value
    from harness_lab.policies import PolicySpec
    from harness_lab.simulate import Experiment
    from harness_lab.simulate.result import Result

USES: Final = (*SUMMED, "time")
"""Quantities that a run uses up, so that a limit of one may stand in for a limit of another."""
COARSE, FINE = 10, 6
"""Values tried over the whole range, and then around the best of them."""
_SCOPES: Final = ("tree", "node", "root", "child")

Score = tuple[int, int, int]
"""How far a target is from its source: runs in which any answer differs; runs that complete under one of the two only;
model calls by which runs are apart. The first counts most: a setting that stops runs which the source lets go on is not
closer, however alike the ends are."""

Tried = tuple[Score, "Knob", StandIn, int]
"""The closest amount of a knob, how close it is, and how many were tried."""


@dataclass(slots=True, kw_only=True)
class Search:
    """A search on draws of its own.

    Parameters
    ----------
    config : TunedConfig
        What the source enforces.
    place : Target
        Where it goes.
    origin : PolicySpec
        What the source enforces, agents and all, as it is simulated.
    experiment : Experiment
        Workload, provider, runs and seed of the search.
    """

    config: TunedConfig
    place: Target
    origin: PolicySpec
    experiment: Experiment

    def run(self) -> tuple[tuple[Searched, ...], tuple[str, ...]]:
        """Return a stand-in for each value that is lost, where one brings runs closer to how the source treats them.

        With them comes a line for each value for which there is none, though settings were tried.
        """
        written = export(self.config, self.place)
        told = {one.value for one in written.carried}
        lost = [v for v in values_of(self.config.policy) if v.quantity in USES and v.name not in told]
        free = [k for k in self.place.knobs if self._is_free(k) and written.settings.get(k.key) is None]
        if not lost or not free:
            return (), ()
        before, nodes = self._origin()
        chosen: dict[str, StandIn] = {}
        found: list[Searched] = []
        in_vain: list[str] = []
        (best,) = self._scores(before, [chosen])
        for value in lost:
            same = [knob for knob in free if knob.quantity == value.quantity]
            unused = [knob for knob in (same or free) if knob.key not in chosen]
            tried = [self._best(value, knob, before, nodes, chosen) for knob in unused]
            ranked = sorted((one for one in tried if one is not None), key=lambda one: one[0])
            if ranked and ranked[0][0] < best:
                found.append(self._found(ranked[0], without=best))
                chosen[found[-1].key] = found[-1].stand_in()
                best = ranked[0][0]
            elif ranked:
                keys, amounts = ", ".join(knob.key for _, knob, _, _ in ranked), sum(count for *_, count in ranked)
                runs = f"{self.experiment.runs:,} other runs"
                in_vain.append(f"{value.name}: none of {amounts} amounts of {keys} is closer on {runs}")
        return tuple(found), tuple(in_vain)

    def _found(self, one: Tried, *, without: Score) -> Searched:
        score, knob, stand_in, count = one
        return Searched(
            key=knob.key, value=stand_in.value, amount=stand_in.amount, tried=count, seed=self.experiment.seed,
            runs=self.experiment.runs, without=without[:2], differing=score[:2],
        )  # fmt: skip

    @staticmethod
    def _is_free(knob: Knob) -> bool:
        return knob.quantity in USES and knob.bounds[0] in _SCOPES

    def _best(
        self,
        value: Value,
        knob: Knob,
        before: Mapping[str, Run],
        nodes: pd.DataFrame,
        chosen: Mapping[str, StandIn],
    ) -> Tried | None:
        """Return the closest amount of one knob: over the whole range first, then between its neighbours there."""
        whole = knob.quantity not in ("cost", "time")
        amounts = grid(used(nodes, knob), points=COARSE, whole=whole)
        if value.quantity == knob.quantity and value.amount > 0:
            amounts = sorted({*amounts, value.amount})
        scored = self._tried(value, knob, before, chosen, amounts)
        if not scored:
            return None
        middle = min(scored, key=scored.__getitem__)
        place = sorted(scored).index(middle)
        near = [0.0, *sorted(scored)][place : place + 3]
        gaps = [between(low, high, points=FINE // 2, whole=whole) for low, high in pairwise(near)]
        scored |= self._tried(value, knob, before, chosen, [amount for gap in gaps for amount in gap])
        middle = min(scored, key=lambda amount: (scored[amount], amount))
        return scored[middle], knob, StandIn(value=value.name, amount=middle), len(scored)

    def _tried(
        self,
        value: Value,
        knob: Knob,
        before: Mapping[str, Run],
        chosen: Mapping[str, StandIn],
        amounts: Sequence[float],
    ) -> dict[float, Score]:
        fitting = [amount for amount in amounts if _fits(knob, amount)]
        told = [{**chosen, knob.key: StandIn(value=value.name, amount=amount)} for amount in fitting]
        return dict(zip(fitting, self._scores(before, told), strict=True))

    def _scores(self, before: Mapping[str, Run], told: Sequence[Mapping[str, StandIn]]) -> list[Score]:
        """Return how far each set of stand-ins is from the source, all on the same draws."""
        policies = [self._policy(one, f"{i}") for i, one in enumerate(told)]
        if not policies:
            return []
        result = self._run(*policies)
        return [_score(before, runs_of(result, policy.name)) for policy in policies]

    def _policy(self, stand_ins: Mapping[str, StandIn], name: str) -> PolicySpec:
        written = export(self.config, self.place, stand_ins=stand_ins)
        return replace(with_turns(written.read_back(), written.agents_back()), name=name)

    def _origin(self) -> tuple[dict[str, Run], pd.DataFrame]:
        result = self._run(self.origin)
        return runs_of(result, self.origin.name), result.settlements.nodes

    def _run(self, *policies: PolicySpec) -> Result:
        return with_names(alone(self.experiment, *policies).with_policies(*policies)).run(
            decisions=True, progress=False
        )


def _fits(knob: Knob, amount: float) -> bool:
    try:
        knob.amount.write(amount)
    except Unfit:
        return False
    return True


def _score(before: Mapping[str, Run], after: Mapping[str, Run]) -> Score:
    pairs = [(one, after[run]) for run, one in before.items()]
    return (
        sum(kind_of(one, two) is not None for one, two in pairs),
        sum(one.completed != two.completed for one, two in pairs),
        sum(abs(one.calls - two.calls) for one, two in pairs),
    )
