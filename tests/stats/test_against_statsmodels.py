"""Where statsmodels has a second implementation, both say the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from harness_lab.stats import cumulative_incidence, holm, kaplan_meier, mean, share

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("statsmodels")
    from statsmodels.duration.survfunc import CumIncidenceRight, SurvfuncRight
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint
    from statsmodels.stats.weightstats import DescrStatsW


def test_holm_is_statsmodels_holm() -> None:
    p = np.random.default_rng(0).random(20) ** 3
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


@pytest.mark.parametrize(("hits", "n"), [(3, 10), (49, 225), (199, 200)])
def test_a_share_has_wilsons_interval(hits: int, n: int) -> None:
    found = share([True] * hits + [False] * (n - hits))
    assert (found.low, found.high) == pytest.approx(proportion_confint(hits, n, method="wilson"))


def test_a_mean_without_skewness_has_students_interval() -> None:
    x = np.concatenate([np.arange(30.0), -np.arange(30.0)])
    found = mean(x)
    assert (found.low, found.high) == pytest.approx(DescrStatsW(x).tconfint_mean())


@pytest.mark.parametrize("seed", range(5))
def test_survival_and_incidence_with_many_ties_are_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, causes = rng.integers(1, 9, 60).astype(float), rng.integers(0, 3, 60)
    curve, theirs = kaplan_meier(values, causes > 0), SurvfuncRight(values, (causes > 0).astype(int))
    ended = curve.events > 0
    assert curve.time[ended].tolist() == theirs.surv_times.tolist()
    assert curve.survival[ended] == pytest.approx(theirs.surv_prob)
    for cause in (1, 2):
        ours, all_causes = cumulative_incidence(values, causes, of=cause), CumIncidenceRight(values, causes)
        assert ours.time.tolist() == all_causes.times.tolist()
        assert ours.incidence == pytest.approx(all_causes.cinc[cause - 1])
        assert ours.se == pytest.approx(all_causes.cinc_se[cause - 1])
