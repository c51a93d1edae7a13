from __future__ import annotations

from pathlib import Path

import pytest

from harness_lab import datasets
from harness_lab.errors import ReadError


def test_the_six_settlements_are_the_published_ones() -> None:
    nodes = datasets.load_six_settlements().nodes
    assert nodes["input_total"].tolist() == [31_211, 32_296, 47_365, 47_965, 48_253, 62_616]
    assert set(nodes["backend"]) == {"pi"}
    assert set(nodes["model"]) == {"tangle-router/glm-5.2"}
    assert set(nodes["outcome"]) == {"unknown"}
    assert nodes["eligible"].all()
    assert set(nodes["eligible_reason"]) == {"published as floor evidence"}


def test_only_the_lowest_of_the_six_has_more_than_its_prompt_tokens() -> None:
    nodes = datasets.load_six_settlements().nodes
    first = nodes.iloc[0]
    assert first[["source_status", "output", "iterations", "ask_tokens"]].tolist() == ["down", 990, 2, 8_000]
    assert nodes.iloc[1:][["source_status", "output", "iterations", "ask_tokens", "start_ns"]].isna().all(axis=None)
    assert nodes["source"].str.contains("tangle-network/agent-runtime").all()


def test_the_authored_budgets_are_the_published_ones() -> None:
    assert datasets.load_authored_budgets() == (2_000, 8_000, 12_000, 20_000)


def test_the_messy_file_shows_every_way_of_being_set_aside() -> None:
    report = datasets.load_synthetic_messy().report
    assert (report.read, report.kept, len(report.set_aside), report.duplicates) == (60, 54, 5, 1)
    assert len(report.reasons()) == 5
    assert [note for note in report.notes if "outcome that is not understood and are kept as unknown: maybe" in note]


def test_data_are_looked_for_in_the_package_first_and_missing_data_are_an_error(tmp_path, monkeypatch) -> None:
    package = tmp_path / "top" / "harness_lab"
    for folder in (package / "_data", tmp_path / "top" / "data"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(datasets, "__file__", str(package / "datasets.py"))
    with pytest.raises(ReadError, match=r"^data: expected a folder with six_settlements\.csv"):
        datasets.data_dir()
    (tmp_path / "top" / "data" / "six_settlements.csv").touch()
    assert datasets.data_dir() == tmp_path / "top" / "data"
    (package / "_data" / "six_settlements.csv").touch()
    assert datasets.data_dir() == package / "_data"


def test_the_readme_says_what_every_report_has_to_repeat() -> None:
    text = (Path(datasets.data_dir()) / "README.md").read_text(encoding="utf-8")
    assert "without that row 32,296, n = 5" in text
    assert "synthetic" in text


@pytest.mark.parametrize(
    ("name", "size"), [("six_settlements", "Six"), ("synthetic_runs", "2,400"), ("synthetic_truth", "30")]
)
def test_a_loader_gives_its_size(name: str, size: str) -> None:
    assert size in getattr(datasets, f"load_{name}").__doc__
