from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harness_lab.analyze import against_truth
from harness_lab.errors import InputError

DATA = Path(__file__).parents[2] / "data"


def world(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Return nodes whose truth is known: log-normal cost with median 100, one in ten fails, caps at random."""
    rng = np.random.default_rng(seed)
    need, cap = rng.lognormal(np.log(100), 0.5, n), rng.choice([80.0, 1e9], n, p=[0.4, 0.6])
    outcome = np.where(need > cap, "exhausted", np.where(rng.random(n) < 0.1, "failed", "completed"))
    cost = np.minimum(need, cap).round().astype(np.int64)
    return pd.DataFrame({"run": range(n), "agent": "a", "outcome": outcome, "cost_nusd": cost, "calls": cost})


TRUTH = [
    {"agent": "a", "quantity": "quantile", "column": "cost_nusd", "q": 0.45, "among": "all", "value": 100},
    {"agent": "a", "quantity": "share", "outcome": "failed", "value": 0.1},
    {"agent": "a", "quantity": "share", "outcome": "completed", "value": 0.9},
    {"agent": "a", "quantity": "mean_calls", "value": 100 * np.exp(0.125)},
]


def test_honest_estimates_hold_the_truth() -> None:
    found = against_truth(world(), TRUTH)
    assert found.summary() == "4 of 4 intervals (95%) hold the truth; 0 question(s) declined."
    assert found.to_frame()["holds"].all()


def test_a_truth_that_is_missed_is_named() -> None:
    said = against_truth(world(), [{**TRUTH[0], "value": 500}]).summary()
    assert said.startswith("0 of 1 intervals")
    assert "- missed: cost_nusd quantile 0.45 (a): truth $0.0000005" in said


def test_a_question_the_data_cannot_answer_is_declined_and_no_miss() -> None:
    found = against_truth(world(n=40), [{**TRUTH[0], "q": 0.89}])
    assert found.checked[0].holds is None
    assert "1 question(s) declined" in found.summary()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"quantity": "median", "value": 1}, "quantity: expected quantile, share, startup_cost or mean_<column>"),
        (
            {"quantity": "share", "outcome": "failed", "agent": "z", "value": 1},
            "truth: expected a record of rows that exist",
        ),
        ({"quantity": "share", "outcome": "failed", "team": "z", "value": 1}, "team: expected a column of the table"),
    ],
)
def test_a_record_of_another_form_is_refused(record: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        against_truth(world(), [record])
    assert str(caught.value).startswith(message)


def test_intervals_hold_the_truth_at_their_rate_over_many_worlds() -> None:
    answers = [one.holds for seed in range(100, 220) for one in against_truth(world(seed=seed), TRUTH).checked]
    assert np.mean([held for held in answers if held is not None]) >= 0.92


def test_the_shipped_synthetic_data_hold_their_truth() -> None:
    settlements = pytest.importorskip("harness_lab.settlements")
    if not (DATA / "synthetic_truth.json").exists():
        pytest.skip("the synthetic data are not at hand")
    records = json.loads((DATA / "synthetic_truth.json").read_text())
    found = against_truth(settlements.Settlements.from_parquet(DATA / "synthetic_runs.parquet"), records)
    answers = [one.holds for one in found.checked if one.holds is not None]
    assert len(answers) >= 0.9 * len(records)
    assert np.mean(answers) >= 0.9
