"""A value counted over another scope is derived again from records, with the same promise, or refused."""

from __future__ import annotations

import pandas as pd
import pytest

from harness_lab.analyze import ceiling
from harness_lab.errors import InputError
from harness_lab.export import Provenance, TunedConfig, export
from harness_lab.export.scopes import counted_over, from_records
from harness_lab.export.tuned import config_of
from harness_lab.policies import shared_ledger, tree_limits

PROVENANCE = Provenance(date="2026-01-31", harness_lab="0.1.0")


def records(runs: int = 100) -> pd.DataFrame:
    """A root of ten calls with two children of three each, in every run; the last run's root makes twelve."""
    rows = []
    for run in range(runs):
        rows.append({"run": str(run), "node": "0", "parent": None, "calls": 12 if run == runs - 1 else 10})
        rows += [{"run": str(run), "node": str(child), "parent": "0", "calls": 3} for child in (1, 2)]
    return pd.DataFrame(rows).assign(outcome="completed", cost_nusd=1_000)


def tuned() -> TunedConfig:
    choice = ceiling(records(), "calls", target=0.9)
    return config_of(choice, records(), policy=shared_ledger(1))


def test_the_tree_the_main_agent_and_its_children_have_ceilings_of_their_own() -> None:
    config = tuned()
    assert config.policy.module("shared_ledger").max_steps == 16
    written = export(config, "hermes", derive=from_records(records(), config))
    assert written.settings["agent.max_turns"] == 10
    assert written.settings["delegation.max_iterations"] == 3


def test_what_was_derived_again_says_on_what_and_what_it_no_longer_bounds() -> None:
    config = tuned()
    written = export(config, "openai-agents", derive=from_records(records(), config))
    (evidence,) = written.evidence
    assert (evidence.n, evidence.chosen, evidence.target) == (300, 10.0, "at least 90 % of agents complete")
    assert "derived again for each agent on its own, in place of shared_ledger.max_steps = 16" in evidence.note
    assert "the run's whole tree is not bounded" in str(written.losses[0])


def test_without_records_it_is_refused() -> None:
    written = export(tuned(), "openai-agents")
    assert written.settings == {"max_turns": None}
    assert "derive it again for that from records" in str(written.losses[0])


def test_without_a_promise_there_is_nothing_to_derive() -> None:
    config = TunedConfig(shared_ledger(16), provenance=PROVENANCE)
    written = export(config, "openai-agents", derive=from_records(records(), config))
    assert "its evidence promises no share of runs" in str(written.losses[0])
    stated = export(config, "openai-agents", derive=from_records(records(), config, target=0.9))
    assert stated.settings == {"max_turns": 10}


def test_too_few_records_are_refused_with_what_they_would_need() -> None:
    config = tuned()
    few = records(2)
    written = export(config, "claude-code", derive=from_records(few, config))
    assert "--max-turns" not in written.settings
    assert "needs n >=" in str(written.losses[0])


def test_children_at_once_cannot_be_derived_from_records() -> None:
    config = TunedConfig(tree_limits(2, 3), provenance=PROVENANCE)
    written = export(config, "hermes", derive=from_records(records(), config, target=0.9))
    assert "no record says it" in str(next(loss for loss in written.losses if "max_concurrent" in loss.value))


@pytest.mark.parametrize(("scope", "rows"), [("tree", 300), ("node", 300), ("root", 100), ("child", 200)])
def test_each_scope_counts_its_own_rows(scope: str, rows: int) -> None:
    assert len(counted_over(records(), scope)) == rows  # type: ignore[arg-type]


def test_a_share_is_a_share() -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        from_records(records(), tuned(), target=90)
