"""Public cases of usage records (A-42 to A-48): cached, cumulative, repeated and reasoning tokens.

Where one does not apply as it stands, its test says why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.outcome import CHANNELS, Refusal
from harness_lab.policies import Grant, SpawnAsk, StepAsk, Use, reservation_pool
from harness_lab.pricing import Price, PriceTable
from harness_lab.settlements import Settlements, read, recompute
from harness_lab.usage import TokenCounts, amounts


def priced(**usd: float) -> PriceTable:
    return PriceTable({"m": (Price.usd_per_million(**usd),)})


def table(path: Path, *records: dict[str, Any], columns: dict[str, str]) -> Settlements:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return read(path, columns={"model": "=m", **columns})


def usd(settlements: Settlements, prices: PriceTable) -> list[int]:
    return recompute(settlements, prices).nodes["recomputed_nusd"].tolist()


def test_a42_cached_tokens_that_the_input_count_holds_are_not_billed_twice(tmp_path: Path) -> None:
    columns = {"input_total": "input", "cache_read": "cached", "output": "output"}
    found = table(tmp_path / "u.jsonl", {"input": 70_838, "cached": 69_905, "output": 0}, columns=columns)
    assert found.nodes[["input_fresh", "cache_read"]].iloc[0].tolist() == [933, 69_905]
    assert usd(found, priced(input=2.0, output=0, cache_read=0.20)) == [1_866_000 + 13_981_000]


def test_a43_both_conventions_give_one_normalised_record(tmp_path: Path) -> None:
    inclusive = {"input_total": "input", "cache_read": "cached", "output": "output"}
    apart = {"input_fresh": "input", "cache_read": "cached", "cache_write": "written", "output": "output"}
    one = table(tmp_path / "p.jsonl", {"input": 10_000, "cached": 8_000, "output": 0}, columns=inclusive)
    two = table(tmp_path / "q.jsonl", {"input": 2_000, "cached": 8_000, "written": 0, "output": 0}, columns=apart)
    counts = ["input_fresh", "cache_read", "cache_write", "input_total"]
    for found in (one, two):
        assert found.nodes[counts].iloc[0].tolist() == [2_000, 8_000, 0, 10_000]
        assert usd(found, priced(input=1.0, output=0, cache_read=0.10)) == [2_800_000]


def test_a43_normalising_what_is_normalised_changes_nothing(tmp_path: Path) -> None:
    columns = {"input_total": "input", "cache_read": "cached", "output": "output"}
    once = table(tmp_path / "p.jsonl", {"input": 10_000, "cached": 8_000, "output": 0}, columns=columns)
    own = once.nodes.dropna(axis="columns", how="all").drop(columns="schema_version")
    own.to_json(tmp_path / "again.jsonl", orient="records", lines=True)
    pd.testing.assert_frame_equal(read(tmp_path / "again.jsonl").nodes, once.nodes)


def settled(limit: dict[str, int], use: TokenCounts) -> Grant | Refusal | Any:
    """Settle one step under a cap, and ask for the next."""
    policy = reservation_pool(**limit).start("run")
    root = policy.spawn(SpawnAsk(None, (), amounts()), now=0).ticket
    first = policy.admit(StepAsk(root, call=0, attempt=0, bound=amounts()), now=0)
    spent = amounts(calls=1, input=use.input_total, tokens=use.total, fresh=use.newly_presented)
    policy.settle(first.ticket, Use(spent), now=1)
    return policy.admit(StepAsk(root, call=1, attempt=0, bound=amounts()), now=1)


def test_a44_a_cap_names_the_tokens_that_it_counts() -> None:
    use = TokenCounts(input_fresh=3_000, cache_read=900_000, cache_write=90_000, output=8_000)
    assert use.total == 1_001_000
    assert "tokens" in CHANNELS
    refused = settled({"tokens": 1_000_000}, use)
    assert isinstance(refused, Refusal)
    assert refused.shortfalls[0].limit == 1_000_000
    assert isinstance(settled({"tokens": 1_001_001}, use), Grant)


def test_a44_a_cap_on_newly_presented_tokens_leaves_cache_reads_out_and_admits_the_next_step() -> None:
    """The case's narrower cap also leaves cache writes out (11,000).

    No channel here does: a cache write was new to the provider and is billed above the input price, so the channel
    ``fresh`` counts it (101,000). What lies outside is the cache reads, and the table has each class in one column.
    """
    use = TokenCounts(input_fresh=3_000, cache_read=900_000, cache_write=90_000, output=8_000)
    assert use.newly_presented == 101_000
    assert use.total - use.newly_presented == use.cache_read
    assert isinstance(settled({"fresh": 1_000_000}, use), Grant)
    row = Settlements.from_columns(
        {"run": ["r"], "node": "0", "input_fresh": 3_000, "cache_read": 900_000, "cache_write": 90_000, "output": 8_000}
    ).nodes.iloc[0]
    assert row["input_fresh"] + row["output"] == 11_000
    assert row["cache_read"] + row["cache_write"] == 990_000
    assert row["input_total"] + row["output"] == 1_001_000


def usage(total: int) -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": 500}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {"requests": 1, "input_tokens": 1_000, "output_tokens": 200, "total_tokens": total, **details}


@pytest.mark.parametrize(
    ("total", "parts"), [(1_200, [500, 500, 1_000]), (1_700, [1_000, 500, 1_500]), (1_450, [pd.NA, pd.NA, pd.NA])]
)
def test_a45_the_records_own_total_tells_the_convention(tmp_path: Path, total: int, parts: list[Any]) -> None:
    (tmp_path / "usage.jsonl").write_text(json.dumps({"run": "r", "model": "m", "usage": usage(total)}) + "\n")
    found = read(tmp_path / "usage.jsonl")
    assert found.nodes[["input_fresh", "cache_read", "input_total"]].iloc[0].tolist() == parts
    flagged = [note for note in found.report.notes if "whose total fits no reading" in note]
    assert len(flagged) == (total == 1_450)


def transcript(path: Path, *calls: tuple[str, dict[str, int]]) -> Settlements:
    """Write a session of Claude Code, a line for each (response id, usage), and read it."""
    lines = []
    for number, (ident, counts) in enumerate(calls):
        message = {"id": ident, "role": "assistant", "model": "claude-x", "content": [], "usage": counts}
        about = {"type": "assistant", "uuid": f"u{number}", "sessionId": "s", "version": "2.1.120"}
        about |= {"isSidechain": False, "parentUuid": None}  # by these a session is known
        stamp = f"2026-05-01T10:00:{number:02d}.000Z"
        lines.append({**about, "requestId": f"q-{ident}", "timestamp": stamp, "message": message})
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return read(path)


def test_a46_the_last_cumulative_count_of_a_stream_wins(tmp_path: Path) -> None:
    """As increments (25 and 16) it does not apply: in no format that is read are the counts of one response increments.

    The messages of a stream carry running totals, so a reader that added them would be wrong for every file there is.
    """
    events = [("r1", {"input_tokens": 25, "output_tokens": 1}), ("r1", {"input_tokens": 25, "output_tokens": 15})]
    found = transcript(tmp_path / "s.jsonl", *events)
    assert found.calls is not None
    assert found.calls[["input_total", "output"]].to_numpy().tolist() == [[25, 15]]


def test_a47_a_response_that_is_written_many_times_counts_once(tmp_path: Path) -> None:
    def counts(output: int) -> dict[str, int]:
        cache = {"cache_creation_input_tokens": 11_352, "cache_read_input_tokens": 22_076}
        return {"input_tokens": 6, "output_tokens": output, **cache}

    lines = [("r1", counts(384))] * 19 + [("r2", counts(384))] + [("r3", counts(output)) for output in (1, 120, 384)]
    found = transcript(tmp_path / "s.jsonl", *lines)
    assert found.calls is not None
    assert found.calls["output"].tolist() == [384, 384, 384]
    assert found.nodes["output"].sum() == 1_152
    assert found.nodes["calls"].sum() == 3
    (note,) = [note for note in found.report.notes if "repeated" in note]
    assert "23 line(s) with usage are 3 call(s): 20 repeated a call" in note


def test_a48_reasoning_that_is_part_of_the_output_is_not_added_to_it(tmp_path: Path) -> None:
    columns = {"input_total": "prompt", "cache_read": "cached", "output": "completion", "reasoning": "reasoning"}
    record = {"prompt": 2_008, "cached": 0, "completion": 266, "reasoning": 261}
    found = table(tmp_path / "u.jsonl", record, columns=columns)
    row = found.nodes.iloc[0]
    assert row["input_total"] + row["output"] == 2_274
    assert usd(found, priced(input=2.0, output=10.0)) == [4_016_000 + 2_660_000]


def test_a48_a_source_that_counts_reasoning_apart_gives_the_same_output(tmp_path: Path) -> None:
    tokens = {"input": 2_008, "output": 5, "cached": 0, "thoughts": 261, "tool": 0, "total": 2_274}
    message = {"id": "b", "timestamp": "2026-01-01T10:00:02.000Z", "type": "gemini", "tokens": tokens, "model": "m"}
    chat = {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T10:00:00.000Z", "messages": [message]}
    (tmp_path / "session-1.json").write_text(json.dumps(chat))
    found = read(tmp_path / "session-1.json")
    assert found.nodes[["output", "reasoning"]].iloc[0].tolist() == [266, 261]
    assert usd(found, priced(input=2.0, output=10.0)) == [6_676_000]
