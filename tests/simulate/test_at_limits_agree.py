"""What follows a limit, and a shadow, are the same on the kernel and on the virtual asyncio loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.analyze.shadow import shadow_report
from harness_lab.errors import InputError
from harness_lab.policies import AtLimit, Shadow, compose, hard_cap, shared_ledger, tree_limits
from harness_lab.simulate.config import read_policy
from harness_lab.simulate.rows import Rows

if TYPE_CHECKING:
    from harness_lab.policies import PolicySpec
    from harness_lab.simulate import Experiment


@pytest.mark.parametrize("then", ["stop", "wrap-up", "pause"])
def test_both_runtimes_agree_on_what_follows_a_limit(busy: Experiment, then: Any) -> None:
    spec, world, runs = compose(shared_ledger(5), at_limit=AtLimit(then=then)), busy.world(), range(20)
    one, mine = world.block(spec, runs, engine="kernel", keep_calls=True, keep_decisions=True)
    two, theirs = world.block(spec, runs, engine="asyncio", keep_calls=True, keep_decisions=True)
    assert (one.nodes, one.calls, mine) == (two.nodes, two.calls, theirs)
    plain, _ = world.block(shared_ledger(5), runs, engine="kernel", keep_calls=True, keep_decisions=False)
    assert (len(one.calls) > len(plain.calls)) == (then == "wrap-up")


@pytest.mark.parametrize("spec", [hard_cap(0.3), compose(shared_ledger(6), tree_limits(max_concurrent=1))])
def test_both_runtimes_agree_in_the_shadow_and_nothing_is_stopped(busy: Experiment, spec: PolicySpec) -> None:
    world, told = busy.world(), []
    free, _ = world.block(compose(name="none"), range(12), engine="kernel", keep_calls=True, keep_decisions=False)
    for engine in ("kernel", "asyncio"):
        rows, answers = Rows(), []
        for run in range(12):
            rows.run = run
            shadow = Shadow(spec.start(str(run)), run=str(run), sink=answers.append)
            one = world._on_kernel if engine == "kernel" else world._on_asyncio
            one(run, shadow, rows, True)
        assert rows.nodes == free.nodes
        told.append((answers, shadow_report(answers)))
    assert told[0] == told[1]
    assert told[0][1].stopped_runs > 0


@pytest.mark.parametrize("cap", [0.0, 0.1, 0.5])
def test_no_simulated_run_crosses_its_hard_cap(busy: Experiment, cap: float) -> None:
    world = busy.world()
    for run in range(25):
        policy: Any = hard_cap(cap).start(str(run))
        world._on_kernel(run, policy, Rows(), keep_calls=False)
        pot = policy.modules[0].pot
        assert pot.spent[4] <= round(cap * 1e9)
        assert (pot.held[4], pot.open, policy.modules[0].violations) == (0, 0, [])


def test_an_experiment_file_says_what_happens_at_a_limit() -> None:
    table = {"name": "x", "shared_ledger": {"max_steps": 5}, "at_limit": {"then": "wrap-up", "warn_at": 0.5}}
    assert read_policy(table).at_limit == AtLimit(then="wrap-up", warn_at=0.5)
    with pytest.raises(InputError, match="then: expected stop, wrap-up or pause"):
        read_policy(table | {"at_limit": {"then": "sleep"}})
