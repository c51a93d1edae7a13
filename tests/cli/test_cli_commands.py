"""What a user may rely on at the command line: answers, JSON and nothing else, one line for misuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import SMALL, run

from harness_lab.datasets import data_dir

SIX = str(data_dir() / "six_settlements.csv")
EXPERIMENT = str(data_dir() / "experiment.toml")
PATH = ["--backend", "pi", "--model", "tangle-router/glm-5.2"]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "experiment.toml"
    file.write_text(SMALL)
    return file


def test_read_reports_what_was_kept_and_writes_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "six.parquet"
    assert run("read", SIX, "--out", str(out), "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["kept"], data["set_aside"], data["nodes"]) == (6, [], 6)
    assert run("floors", str(out), "--json") == 0


def test_floors_of_the_six_have_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("floors", SIX, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert set(row) == {
        "agent", "backend", "model", "context", "unit", "floor", "second_lowest", "startup_cost", "n", "clusters",
        "coverage_at_95", "p_next_below", "needs_n", "age", "stale", "evidence_id", "note",
    }  # fmt: skip
    assert (row["floor"], row["n"], row["needs_n"]) == (31_211, 6, 59)
    assert row["coverage_at_95"] == pytest.approx(0.607, abs=5e-4)
    assert row["p_next_below"] == pytest.approx(1 / 7)
    assert "without that row 32,296, n = 5" in row["note"]


@pytest.mark.parametrize(("asked", "shortfall"), [(2_000, 29_211), (8_000, 23_211), (12_000, 19_211), (20_000, 11_211)])
def test_preflight_refuses_what_parents_authored(
    asked: int, shortfall: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("preflight", "--evidence", SIX, *PATH, "--input-tokens", str(asked), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {
        "admitted", "reason", "floor", "unit", "n", "evidence_id", "stale", "age", "backend", "model", "context",
        "shortfall", "helps", "other_paths",
    }  # fmt: skip
    assert (answer["admitted"], answer["reason"], answer["shortfall"]) == (False, "below-runtime-floor", shortfall)
    assert answer["helps"] == "larger"


def test_preflight_admits_at_the_floor_and_where_nothing_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("preflight", "--evidence", SIX, *PATH, "--input-tokens", "31,211") == 0
    assert "this does not predict success" in capsys.readouterr().out
    assert (
        run("preflight", "--evidence", SIX, "--backend", "codex", "--model", "x", "--input-tokens", "1", "--json") == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert (answer["admitted"], answer["floor"]) == (True, None)


@pytest.mark.parametrize(
    ("backend", "model", "hint"),
    [
        ("pi", "tangle-router/glm-5.1", "Did you mean pi / tangle-router/glm-5.2"),
        ("pii", "tangle-router/glm-5.2", "Did you mean pi / tangle-router/glm-5.2"),
        ("codex", "gpt", "Measured: pi / tangle-router/glm-5.2"),
    ],
)
def test_a_strict_preflight_says_no_to_a_path_that_was_never_measured_and_what_was_meant(
    backend: str, model: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["preflight", "--evidence", SIX, "--backend", backend, "--model", model, "--input-tokens", "40000"]
    assert run(*asked, "--strict") == 1
    assert hint in capsys.readouterr().out
    assert run(*asked) == 0


def test_a_strict_preflight_says_no_with_exit_code_1() -> None:
    assert run("preflight", "--evidence", SIX, *PATH, "--input-tokens", "8000", "--strict") == 1
    assert run("preflight", "--evidence", SIX, *PATH, "--input-tokens", "31211", "--strict") == 0


def test_simulate_gives_the_same_digest_twice_and_writes_the_table(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.parquet"
    assert run("simulate", str(experiment), "--json", "--out", str(out)) == 0
    first = json.loads(capsys.readouterr().out)
    assert run("simulate", str(experiment), "--json", "--engine", "asyncio") == 0
    again = json.loads(capsys.readouterr().out)
    assert first["digest"] == again["digest"]
    assert first["policies"]["free"] == {"completed": 20}
    assert run("read", str(out), "--json") == 0


def test_compare_prints_differences_and_a_verdict(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", str(experiment), "--baseline", "tight", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["baseline"] == "tight"
    assert data["paired_runs"] == 20
    assert {row["policy"] for row in data["differences"]} == {"free"}
    assert run("compare", str(experiment)) == 0
    assert "free against" not in capsys.readouterr().out.replace("tight against free", "")


def _misuse(tmp_path: Path) -> list[tuple[str, list[str]]]:
    def file(name: str, content: str) -> str:
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    bad = SMALL.replace("max_steps = 3", "max_steps = -3")
    nan = SMALL.replace("max_steps = 3", "max_steps = 3\nmax_cost_usd = nan")
    return [
        ("wrong path", ["read", str(tmp_path / "nowhere"), "--out", "x"]),
        ("empty file", ["read", file("empty.csv", "")]),
        ("unknown column", ["read", SIX, "--map", "input_total=nothing_like_it"]),
        ("no map", ["read", SIX, "--map", "input_total"]),
        ("unknown format", ["read", SIX, "--format", "nope"]),
        ("negative budget", ["simulate", file("neg.toml", bad)]),
        ("nan", ["simulate", file("nan.toml", nan)]),
        ("no policy", ["simulate", file("pol.toml", SMALL.replace("shared_ledger", "shared_leger"))]),
        ("unknown key", ["simulate", file("key.toml", SMALL.replace("latency_s", "latency"))]),
        ("not toml", ["simulate", file("not.toml", "{")]),
        ("no baseline", ["compare", file("ok.toml", SMALL), "--baseline", "nobody"]),
        ("zero runs", ["simulate", str(tmp_path / "ok.toml"), "--runs", "0"]),
        ("engine", ["simulate", str(tmp_path / "ok.toml"), "--engine", "warp"]),
        ("negative ask", ["preflight", "--evidence", SIX, *PATH, "--input-tokens", "-5"]),
        ("nan ask", ["preflight", "--evidence", SIX, *PATH, "--input-tokens", "nan"]),
        ("unit", ["preflight", "--evidence", SIX, *PATH, "--input-tokens", "5", "--unit", "parsecs"]),
        ("missing option", ["preflight", "--evidence", SIX, "--input-tokens", "5"]),
        ("target", ["export", file("c.json", "{}"), "--target", "toml"]),
        ("command", ["fly"]),
    ]


def test_misuse_is_one_clear_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for what, arguments in _misuse(tmp_path):
        assert run(*arguments) == 2, what
        said = capsys.readouterr()
        assert said.out == "", what
        assert len(said.err.strip().splitlines()) == 1, (what, said.err)
        assert "Traceback" not in said.err, what


def test_reprice_takes_a_price_file_in_the_form_of_litellm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"m": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}}))
    assert run("reprice", SIX, "--model", "m", "--table", str(file), "--json") == 0
    assert json.loads(capsys.readouterr().out)["prices"] == "prices.json"
    file.write_text('["no", "prices"]')
    assert run("reprice", SIX, "--model", "m", "--table", str(file)) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
