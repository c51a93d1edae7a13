"""The page on experiment files: its file runs, and its table has every key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness_lab.settlements import formats
from harness_lab.simulate import load_experiment
from harness_lab.simulate.config_world import (
    FAULTS,
    AgentTable,
    ArrivalsTable,
    AskTable,
    LimitsTable,
    ModelTable,
    ReactionTable,
    RetryTable,
    SpawnTable,
    WorkloadTable,
)
from harness_lab.simulate.gallery import gallery
from harness_lab.stats import Distribution

if TYPE_CHECKING:
    from pydantic import BaseModel

TABLES = [
    AgentTable,
    ArrivalsTable,
    AskTable,
    LimitsTable,
    ModelTable,
    ReactionTable,
    RetryTable,
    SpawnTable,
    WorkloadTable,
]
PAGE = (Path(__file__).parents[2] / "docs" / "experiment.md").read_text("utf-8")


def test_the_file_of_the_page_is_read_and_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.toml").write_text(block)
    experiment = load_experiment(tmp_path / "mine.toml")
    nodes = replace(experiment, runs=20).run().settlements.nodes
    assert set(nodes["agent"]) == {"lead", "worker"}
    assert set(nodes["policy"]) == {"shared ledger", "pool and tree limits"}
    assert (nodes["outcome"] == "completed").any()


@pytest.mark.parametrize("table", TABLES)
def test_every_key_of_a_table_stands_on_the_page(table: type[BaseModel]) -> None:
    forms = ("`{}`", "`{} =", ".{}]", ".{}.")
    assert [key for key in table.model_fields if not any(form.format(key) in PAGE for form in forms)] == []


def test_every_form_of_a_distribution_on_the_page_is_accepted() -> None:
    forms = re.findall(r"^\| `(\{ dist.*? \}|\d+)` \|", PAGE, re.MULTILINE)
    assert len(forms) == 4
    for form in forms:
        assert Distribution.from_dict(tomllib.loads(f"x = {form}")["x"]).mean() > 0


def test_every_fault_workload_of_the_gallery_and_format_stands_on_the_page() -> None:
    assert [name for name in (*FAULTS, *gallery(), *formats()) if name not in PAGE] == []
