"""Hold sizes where nothing was used, and how well a family fits: a reason instead of a fault."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from harness_lab.analyze import distribution, hold_sizes
from harness_lab.errors import InputError


def runs(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"run": range(100), "outcome": "completed", **columns})


def test_uses_of_nothing_have_no_hold_size() -> None:
    with pytest.raises(InputError, match=r"^calls: expected uses above 0, got '0 in all 100 nodes'"):
        hold_sizes(runs(calls=0), "calls", pool=10, at_once=4)


def test_a_few_uses_among_none_have_one() -> None:
    found = hold_sizes(runs(calls=np.arange(100) % 2), "calls", pool=10, at_once=4)
    assert found.frame["hold"].tolist() == [1.0]


def test_the_text_of_a_fit_has_the_p_value_or_says_why_there_is_none() -> None:
    calls = np.random.default_rng(0).lognormal(3, 0.5, 100).astype(int)
    whole = distribution(runs(calls=calls), "calls").fit()
    assert f"p = {whole.candidates[0].p_value:.2g}" in whole.goodness()
    assert whole.goodness() in whole.summary()
    stopped = runs(calls=calls, outcome=np.where(np.arange(100) < 20, "exhausted", "completed"))
    assert "not tested, since 20 of the values are only lower bounds" in distribution(stopped, "calls").fit().summary()
