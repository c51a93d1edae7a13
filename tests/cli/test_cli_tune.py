"""What `tune` exits with: confirmed, no, misuse, stopped; each says what to do."""

from __future__ import annotations

import json
import sys

import pytest
from command_line import SMALL, run

pytest.importorskip("optuna")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def ask(file, *more: str) -> list:
    return ["tune", file, "--knob", "shared_ledger.max_steps=1:30", "--trials", "3", "--runs", "30", *more]


def test_a_confirmed_winner_exits_with_0_and_says_what_had_to_hold(file, capsys) -> None:
    assert run(*ask(file, "--at-least", "completed=0.1")) == 0
    assert "Had to hold: completion >= 0.1." in capsys.readouterr().out
    assert run(*ask(file, "--json")) in (0, 1)
    assert json.loads(capsys.readouterr().out)["implied"] is True


def test_help_tells_the_rule_for_completion_and_every_exit_code(capsys) -> None:
    assert run("tune", "--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Completion stays within 0.05 of the policy's as it stands" in text
    assert "Exits with 1 when" in text
    assert "with 130 when it is stopped" in text


def test_no_finalist_that_is_safe_is_a_no(file, capsys) -> None:
    assert run(*ask(file, "--at-least", "completed=0.999")) == 1
    assert "no finalist is safe" in capsys.readouterr().out
    assert run(*ask(file, "--at-least", "completed=0.999", "--json")) == 1
    assert json.loads(capsys.readouterr().out)["safe"] is False


def test_no_trial_that_meets_the_constraints_is_a_no(file, capsys) -> None:
    few = ["tune", file, "--knob", "shared_ledger.max_steps=1:3", "--trials", "2", "--runs", "30", "--at-least",
           "completed=0.99"]  # fmt: skip
    assert run(*few) == 1
    assert "expected a trial that meets them (completion >= 0.99), got 'none of 2'" in capsys.readouterr().out
    assert run(*few, "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["trials"]) == 2


def test_a_winner_under_which_nothing_completes_is_a_no(file, capsys) -> None:
    none = ["tune", file, "--knob", "shared_ledger.max_steps=0:1", "--trials", "2", "--runs", "20", "--at-least",
            "completed=0"]  # fmt: skip
    assert run(*none) == 1
    assert "no run completes under it: ask for completion" in capsys.readouterr().err


def test_an_interrupted_search_says_how_it_goes_on_and_exits_with_130(file, tmp_path, monkeypatch, capsys) -> None:
    module = sys.modules["harness_lab.tune.search"]
    real, seen = module.simulate, []

    def cut(*given: object) -> object:
        seen.append(1)
        if len(seen) == 8:
            raise KeyboardInterrupt
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(module, "simulate", cut)
        kept = ["--storage", tmp_path / "study.log", "--json"]
        assert run(*ask(file, *kept, "--at-least", "completed=0.1")) == 130
    found = capsys.readouterr()
    assert "the same search goes on from there" in json.loads(found.out)["stopped"]
    assert "Traceback" not in found.err
    assert run(*ask(file, *kept, "--at-least", "completed=0.1")) == 0
    assert len(json.loads(capsys.readouterr().out)["trials"]) == 3
