"""From one's own ceiling to a config: the exact figure, with everything that stands behind it."""

from __future__ import annotations

from datetime import date

import pandas as pd
import pytest

from harness_lab.analyze import ceiling, check_config
from harness_lab.errors import InputError
from harness_lab.export.tuned import config_of, digest_of
from harness_lab.policies import compose, reservation_pool, shared_ledger, tree_limits

DAY = date(2026, 1, 31)


def records(n: int = 100) -> pd.DataFrame:
    values = range(1, n + 1)
    return pd.DataFrame(
        {"run": [str(i) for i in values], "node": "0", "outcome": "completed", "cost_nusd": [i * 7 for i in values]}
    ).assign(calls=list(values), duration_ns=[i * 10**9 for i in values], user="u", parent=None)


def test_the_figure_in_the_file_is_the_ceiling_itself() -> None:
    choice = ceiling(records(), target=0.9, cluster=None)
    config = config_of(choice, records(), today=DAY)
    module = config.policy.module("reservation_pool")
    assert module.limits()[-1] == choice.ceiling
    assert config.evidence[0].chosen == module.cost_usd


def test_each_value_carries_what_stands_behind_it() -> None:
    choice = ceiling(records(), target=0.9, cluster=None)
    found = config_of(choice, records(), seed=3, today=DAY).evidence_of("reservation_pool.cost_usd")
    assert found is not None
    assert (found.n, found.confidence, found.seed, found.date) == (100, 0.95, 3, "2026-01-31")
    assert found.stale_after == "2026-05-01"
    assert found.data_sha256 == digest_of(records())
    assert found.interval is not None
    assert found.interval[0] < found.interval[1] == found.chosen
    assert "another model" in found.stale_when


@pytest.mark.parametrize(
    ("channel", "parameter"), [("calls", "max_steps"), ("cost", "max_cost_usd"), ("time", "max_seconds")]
)
def test_a_ceiling_goes_where_the_policy_has_its_channel(channel: str, parameter: str) -> None:
    choice = ceiling(records(), channel, target=0.9, cluster=None)  # type: ignore[arg-type]
    policy = compose(tree_limits(2), shared_ledger(10**6))
    config = config_of(choice, records(), policy=policy, today=DAY)
    assert getattr(config.policy.module("shared_ledger"), parameter) is not None
    assert config.evidence[0].value == f"shared_ledger.{parameter}"


def test_a_policy_without_the_channel_says_which_would_have_it() -> None:
    choice = ceiling(records(), "time", target=0.9, cluster=None)
    with pytest.raises(InputError, match=r"shared_ledger\.max_seconds"):
        config_of(choice, records(), policy=reservation_pool(tokens=5))


def test_a_declined_choice_makes_no_config() -> None:
    with pytest.raises(InputError, match="expected a ceiling"):
        config_of(ceiling(records(5), target=0.99), records(5))


def test_ceilings_by_group_are_not_one_ceiling() -> None:
    with pytest.raises(InputError, match="one ceiling"):
        config_of(ceiling(records(), target=0.9, by="user", cluster=None), records())


def test_the_config_holds_against_its_own_records() -> None:
    config = config_of(ceiling(records(), target=0.9, cluster=None), records(), today=DAY)
    assert not check_config(config, records()).stale


def test_the_digest_of_records_moves_with_a_value_an_order_and_a_column() -> None:
    whole = records()
    others = (whole.assign(calls=0), whole.iloc[::-1], whole.rename(columns={"user": "team"}))
    assert len({digest_of(frame) for frame in (whole, *others)}) == 4
    assert digest_of(whole) == digest_of(records())
