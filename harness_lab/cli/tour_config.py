"""The tuned config of the tour: which value was chosen, on what evidence."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING

import pandas as pd

from harness_lab.export import Evidence, Provenance, TunedConfig

if TYPE_CHECKING:
    from harness_lab.analyze import CeilingChoice
    from harness_lab.settlements import Settlements
    from harness_lab.simulate import Experiment

_CENT = 10_000_000
_FRESH = timedelta(days=90)


def tuned_config(experiment: Experiment, records: Settlements, choice: CeilingChoice) -> TunedConfig:
    """Put the chosen ceiling into the experiment's last policy, with its evidence and provenance.

    The ceiling is rounded up to a whole cent.
    """
    cents = -(-(choice.ceiling or 0) // _CENT)
    policy = experiment.policies[-1].with_module("reservation_pool", cost_usd=cents / 100)
    bound = choice.bound
    evidence = Evidence(
        value="reservation_pool.cost_usd",
        chosen=cents / 100,
        unit="USD per run (the whole tree)",
        target=f"at least {choice.target:.0%} of runs complete",
        method=f"smallest ceiling whose lower confidence bound of completion reaches the target; {bound.method}",
        n=bound.n,
        confidence=choice.confidence,
        note=f"rounded up to a cent; runs in {bound.clusters} clusters" if bound.clusters else "rounded up to a cent",
    )
    today = datetime.now(UTC).date()
    provenance = Provenance(
        date=today.isoformat(),
        harness_lab=version("harness-lab"),
        seed=experiment.seed,
        experiment_sha256=experiment.digest(),
        data_sha256=_digest(records.nodes),
        stale_after=(today + _FRESH).isoformat(),
    )
    return TunedConfig(policy, provenance=provenance, evidence=(evidence,))


def _digest(frame: pd.DataFrame) -> str:
    hashes = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    return hashlib.sha256(hashes.tobytes()).hexdigest()
