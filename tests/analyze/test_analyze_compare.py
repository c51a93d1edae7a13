from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from harness_lab.analyze import compare
from harness_lab.errors import InputError

NEED = np.random.default_rng(0).lognormal(np.log(4e8), 0.6, 300).astype(np.int64)


def under(policy: str, cap: int, **columns: object) -> pd.DataFrame:
    """Return the same 300 runs as a cost cap would have left them."""
    over = cap < NEED
    base = {"run": [f"r{k}" for k in range(NEED.size)], "policy": policy, "node": "0", "calls": 5}
    ends = {"outcome": np.where(over, "exhausted", "completed"), "stopped_by": np.where(over, "cost-exhausted", None)}
    return pd.DataFrame({**base, **ends, "cost_nusd": pd.array(np.minimum(NEED, cap), dtype="Int64"), **columns})


def both(*frames: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)


FREE, CAPPED = under("free", 9 * 10**9), under("capped", 6 * 10**8)


def test_differences_are_taken_run_by_run_against_the_first_policy() -> None:
    found = compare(both(FREE, CAPPED))
    frame = found.differences().set_index("metric")
    assert found.baseline == "free"
    assert frame.loc["cost_nusd", "value"] == pytest.approx((np.minimum(NEED, 6e8) - NEED).mean() / 1e9)
    assert frame.loc["completed", "value"] == pytest.approx(-(NEED > 6e8).mean())
    assert frame.loc["cost_nusd", "variance_ratio"] < 0.5
    assert frame.loc["cost_nusd", "identical"] == (NEED <= 6e8).sum()


def test_the_verdict_says_what_is_less_and_what_is_more() -> None:
    said = compare(both(FREE, CAPPED)).verdict()
    assert said.startswith("capped against free: completes less often: ")
    assert "spends less: -$" in said
    assert "wastes more: $" in said
    assert compare(both(FREE, CAPPED), baseline="capped").verdict().startswith("free against capped: completes more")


def test_policies_that_do_the_same_are_called_identical_and_nothing_else() -> None:
    said = compare(both(FREE, FREE.assign(policy="twin"))).verdict()
    assert said == "twin against free: identical in all 300 runs in completion, spend, wasted spend."


def test_a_difference_that_luck_explains_cannot_be_told_apart() -> None:
    noise = np.random.default_rng(1).integers(-(10**7), 10**7, NEED.size)
    other = FREE.assign(policy="other", cost_nusd=pd.array(NEED + noise, dtype="Int64"))
    said = compare(both(FREE, other)).verdict()
    assert "cannot be told apart in spend" in said
    assert "spends" not in said


def test_a_handful_of_runs_that_differ_gives_no_answer() -> None:
    other = FREE.assign(policy="other")
    other.loc[:2, "cost_nusd"] += 5
    assert "no answer for spend (needs n >= 1000: only 3 of 300 pairs differ)" in compare(both(FREE, other)).verdict()


def test_unknown_costs_are_left_out_visibly() -> None:
    capped = CAPPED.copy()
    capped.loc[:6, "cost_nusd"] = pd.NA
    found = compare(both(FREE, capped))
    assert found.differences().set_index("metric").loc["cost_nusd", ["n", "left_out"]].tolist() == [293, 7]
    assert "spend unknown in 7 run(s), left out" in found.summary()


def test_runs_without_a_partner_are_left_out_and_counted() -> None:
    found = compare(both(FREE, CAPPED.iloc[20:]))
    assert found.differences()["left_out"].min() == 20
    assert found.paired == 280


def test_p_values_are_corrected_over_all_comparisons() -> None:
    frame = compare(both(FREE, CAPPED, FREE.assign(policy="twin"))).differences()
    assert (frame["p_adjusted"] >= frame["p_value"]).all()
    assert frame["p_adjusted"].notna().sum() == 6


def test_the_binding_limits_are_counted_for_roots_and_nodes() -> None:
    child = CAPPED.assign(node="1", parent="0", depth=1, outcome="exhausted", stopped_by="max-calls")
    nodes = both(FREE, CAPPED.assign(parent=None, depth=0), child)
    found = compare(nodes).binding.set_index(["level", "stopped_by"])
    stopped = int((NEED > 6e8).sum())
    assert found.loc[("root", "cost-exhausted"), ["count", "of"]].tolist() == [stopped, 300]
    assert found.loc[("node", "max-calls"), ["count", "of"]].tolist() == [300, 600]
    assert np.isnan(found.loc[("node", "max-calls"), "low"])


def test_each_policy_has_its_own_figures() -> None:
    frame = compare(both(FREE, CAPPED)).to_frame().set_index(["policy", "metric"])
    assert frame.loc[("free", "completed"), "value"] == 1
    assert frame.loc[("capped", "wasted"), "value"] == pytest.approx(0.6 * (NEED > 6e8).mean())
    assert frame["n"].min() >= 0


def test_runs_that_are_the_same_under_all_policies_are_counted() -> None:
    assert compare(both(FREE, CAPPED)).identical == int((NEED <= 6e8).sum())


def test_runs_of_unknown_outcome_are_no_failures() -> None:
    outcome = FREE["outcome"].mask(FREE.index < 10, "unknown")
    frame = compare(both(FREE, FREE.assign(policy="b", outcome=outcome))).differences().set_index("metric")
    assert frame.loc["completed", ["n", "left_out"]].tolist() == [290, 10]


def test_clusters_of_users_are_respected() -> None:
    user = [f"u{k % 3}" for k in range(NEED.size)]
    found = compare(both(FREE.assign(user=user), CAPPED.assign(user=user)))
    assert found.cluster == "user"
    assert "no answer for spend (needs clusters >= 5" in found.verdict()


def test_one_policy_has_nothing_to_be_compared_with() -> None:
    found = compare(FREE)
    assert found.verdict() == "Only one policy (free): nothing to compare."
    assert found.differences().empty
    assert "No limit stopped anything." in found.summary()


@pytest.mark.parametrize(
    ("frame", "baseline", "message"),
    [
        (FREE, "nobody", "baseline: expected one of free, got 'nobody'"),
        (FREE.drop(columns="policy"), None, "policy: expected rows that name a policy, got 'none'"),
    ],
)
def test_a_wrong_question_is_refused(frame: pd.DataFrame, baseline: str | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        compare(frame, baseline=baseline)
    assert str(caught.value) == message


def test_the_report_can_be_shown_and_explained() -> None:
    found = compare(both(FREE, CAPPED.assign(policy="<b>")))
    assert "&lt;b&gt;" in found._repr_html_()
    assert "no proof of equality" in found.explain()
    assert repr(found) == "Comparison(2 policies, 300 paired runs, baseline free)"


def test_a_run_that_waits_for_approval_has_not_completed() -> None:
    ends = ["completed", "awaiting_approval", "completed", "unknown"]
    nodes = pd.DataFrame({"run": list("abcd") * 2, "node": "0", "policy": ["p"] * 4 + ["q"] * 4, "outcome": ends * 2})
    figures = compare(nodes).policies[0].completed
    assert figures.n == 3
    assert figures.value == pytest.approx(2 / 3)
