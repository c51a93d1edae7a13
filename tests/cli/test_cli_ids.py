"""Runs that a person names as their source does, in records that hold digests."""

from __future__ import annotations

import json

import pytest
from command_line import SMALL, run

from harness_lab.settlements import read


@pytest.fixture
def hashed(tmp_path, monkeypatch):
    """Make records whose ids were hashed with the user's own key, and a file of policies."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    rows = [f"T-{k:03},t{k % 3},{1 + k / 100},completed" for k in range(80)]
    (tmp_path / "runs.csv").write_text("\n".join(["run,team,cost_usd,outcome", *rows]) + "\n")
    (tmp_path / "small.toml").write_text(SMALL)
    read(tmp_path / "runs.csv").to_parquet(tmp_path / "runs.parquet")
    return tmp_path / "runs.parquet"


def test_a_run_is_found_by_the_name_that_its_source_gives_it(hashed, capsys) -> None:
    assert run("replay", hashed, "T-003", "--policies", hashed.with_name("small.toml"), "--json") == 0
    found = capsys.readouterr()
    digest = json.loads(found.out)["run"]
    assert f"T-003 is {digest} in the records" in found.err
    assert run("replay", hashed, digest, "--policies", hashed.with_name("small.toml")) == 0


def test_an_unknown_run_is_told_with_some_that_exist_and_what_to_give(hashed, capsys) -> None:
    assert run("replay", hashed, "T-999", "--policies", hashed.with_name("small.toml")) == 2
    said = capsys.readouterr().err
    assert "such as h-" in said
    assert "give --id-key" in said


def test_runs_under_another_key_are_found_with_it(hashed, tmp_path, capsys) -> None:
    key = tmp_path / "shared.key"
    read(tmp_path / "runs.csv", id_key=key).to_parquet(hashed)
    ask = ["replay", hashed, "T-003", "--policies", tmp_path / "small.toml"]
    assert run(*ask) == 2
    assert run(*ask, "--id-key", key) == 0


def test_labelled_runaways_may_be_named_as_the_source_does(hashed, tmp_path, capsys) -> None:
    (tmp_path / "labels.txt").write_text("T-079\nT-078\n")
    ask = ["ceiling", hashed, "--target", "0.5", "--runaways", tmp_path / "labels.txt"]
    assert run(*ask, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["runaways"], row["runaways_caught"]) == (2, 2)
    (tmp_path / "labels.txt").write_text("T-999\n")
    assert run(*ask) == 2
    assert "--runaways: expected a run of the records" in capsys.readouterr().err


def test_groups_that_are_digests_are_said_to_be(hashed, capsys) -> None:
    run("ceiling", hashed, "--target", "0.5", "--by", "team")
    assert "groups of team are hashed ids" in capsys.readouterr().err
    run("ceiling", hashed, "--target", "0.5", "--by", "outcome")
    assert "hashed ids" not in capsys.readouterr().err
