"""A fitted world, simulated without limits, gives back the settlements that it was fitted on: on every recorded set."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import recorded_sets

from harness_lab.errors import InputError
from harness_lab.settlements import Settlements
from harness_lab.simulate import check_fit

NAMES = tuple(recorded_sets.SETS)
pytestmark = pytest.mark.skipif(not recorded_sets.DATA.exists(), reason="the recorded sets are not here")

NOT_BY_FAMILY = {
    "trae-trajectory": {"calls"},
    "aider-analytics": {"input_total"},
    "azure-llm-2023 code": {"output"},
    "azure-llm-2023 conv": {"input_total"},
    "mooncake-trace": {"input_total", "output", "all together"},
}
"""What families, fitted apart, do not give back: heaps at caps and at small answers that no family of four has."""


@pytest.mark.parametrize("name", NAMES)
def test_whole_runs_give_back_each_quantity_and_all_together(name: str) -> None:
    make, clusters = recorded_sets.SETS[name]
    check = check_fit(make(), clusters=clusters, simulated=500, resamples=79)
    assert check.method == "empirical"
    assert check.given_back, check.summary()
    assert check.tests["n_held_out"].min() >= 100


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_where_families_fall_short_the_check_names_the_quantity(name: str) -> None:
    make, clusters = recorded_sets.SETS[name]
    check = check_fit(make(), clusters=clusters, method="family")
    assert set(check.failing) == NOT_BY_FAMILY.get(name, set()), check.summary()


def test_a_world_that_lost_what_hangs_together_is_found_out() -> None:
    rng = np.random.default_rng(3)
    size = rng.normal(0, 1, 500)
    nodes = pd.DataFrame({"run": [str(i) for i in range(500)], "node": "0", "agent": "a", "model": "m", "calls": 1})
    nodes = nodes.assign(
        outcome="completed",
        input_total=1_000,
        output=np.exp(6 + 0.6 * size).round(),
        duration_ns=np.exp(23 + 0.6 * size + 0.05 * rng.normal(0, 1, 500)).round(),
    )
    records = Settlements.from_columns(nodes)
    assert check_fit(records, method="family", simulated=500, resamples=79).failing == ["all together"]
    assert check_fit(records, method="empirical", simulated=500, resamples=79).given_back


def test_too_few_runs_or_no_such_column_is_refused() -> None:
    table = recorded_sets.mini_swe_agent()
    with pytest.raises(InputError, match=r"^runs: expected at least 30 on each side"):
        check_fit(table.where(run=table.nodes["run"].head(40).tolist()))
    with pytest.raises(InputError, match=r"^clusters: expected a column of the nodes"):
        check_fit(table, clusters="repository")
