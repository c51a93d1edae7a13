"""From one's own ceiling to a config: the exact figure, with everything that stands behind it."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from harness_lab.analyze import ceiling, check_config
from harness_lab.errors import InputError
from harness_lab.export import TunedConfig
from harness_lab.export.tuned import config_of, digest_of
from harness_lab.policies import compose, reservation_pool, shared_ledger, tree_limits

if TYPE_CHECKING:
    from pathlib import Path

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


def trees(n: int = 100) -> pd.DataFrame:
    """Runs of one to four children, of which the last starts a child of its own; all children run at once."""
    rows: list[tuple[int, str, str | None, int]] = []
    for run in range(n):
        rows.append((run, "0", None, 0))
        rows += [(run, f"0.{k}", "0", 1) for k in range(1 + run % 4)]
        rows += [(run, "0.0.0", "0.0", 2)]
    frame = pd.DataFrame(rows, columns=["run", "node", "parent", "depth"])
    return frame.assign(
        outcome="completed", start_ns=0, duration_ns=10**9, calls=3, input_total=9, output=1, cost_nusd=5
    )


@pytest.mark.parametrize(
    ("channel", "parameter", "amount"),
    [
        ("cost", "reservation_pool.cost_usd", 30 / 1e9), ("calls", "reservation_pool.calls", 18),
        ("input", "reservation_pool.input", 54), ("tokens", "reservation_pool.tokens", 60),
        ("time", "shared_ledger.max_seconds", 1), ("depth", "tree_limits.max_depth", 2),
        ("starts", "tree_limits.max_calls", 5), ("concurrency", "tree_limits.max_concurrent", 5),
    ],
)  # fmt: skip
def test_a_ceiling_of_every_channel_is_a_config_of_its_own_that_holds_and_is_read_back(
    channel: str, parameter: str, amount: float, tmp_path: Path
) -> None:
    choice = ceiling(trees(), channel, target=0.9, cluster=None)  # type: ignore[arg-type]
    config = config_of(choice, trees(), today=DAY)
    kind, _, name = parameter.partition(".")
    assert getattr(config.policy.module(kind), name) == amount
    assert (config.evidence[0].value, config.evidence[0].chosen) == (parameter, amount)
    assert [one.status for one in check_config(config, trees()).checked if parameter in one.what] == ["holds"]
    assert TunedConfig.read(config.write(tmp_path / "config.json")).to_json() == config.to_json()


@pytest.mark.parametrize("channel", ["depth", "starts", "concurrency"])
def test_a_ceiling_on_a_tree_is_stale_once_the_trees_have_grown(channel: str) -> None:
    small = trees().query("depth == 0 or node == '0.0'")
    config = config_of(ceiling(small, channel, target=0.9, cluster=None), small, today=DAY)  # type: ignore[arg-type]
    (found,) = [one for one in check_config(config, trees()).checked if "tree_limits" in one.what]
    assert found.status == "stale"
    assert "the newer runs give" in found.suggestion


def test_children_at_once_in_a_tree_are_no_limit_for_each_parent() -> None:
    choice = ceiling(trees(), "concurrency", target=0.9, cluster=None)
    with pytest.raises(InputError, match=r'^policy: expected tree_limits\.concurrency = "tree"'):
        config_of(choice, trees(), policy=tree_limits(2, 3, concurrency="parent"))


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
