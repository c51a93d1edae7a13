from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness_lab.settlements.readers.conventions import Conventions, Raw

counts = st.integers(0, 10**6)


def disjoint(raw: Raw, *, inside: bool = True, before: tuple[Raw, ...] = ()) -> dict[str, object]:
    rules = Conventions(cached_inside=inside)
    for one in (*before, raw):
        rules.see("g", one)
    return rules.disjoint("g", raw)


def test_both_conventions_give_the_same_record() -> None:
    inclusive = disjoint(Raw(input=10_000, read=8_000, output=1), inside=True)
    beside = disjoint(Raw(input=2_000, read=8_000, output=1), inside=False)
    assert inclusive == beside
    assert (inclusive["input_fresh"], inclusive["cache_read"], inclusive["input_total"]) == (2_000, 8_000, 10_000)


def test_the_total_of_a_record_tells_which_convention_holds() -> None:
    within = disjoint(Raw(input=1_000, read=500, output=200, total=1_200))
    assert (within["input_fresh"], within["cache_read"]) == (500, 500)
    beside = disjoint(Raw(input=1_000, read=500, output=200, total=1_700))
    assert (beside["input_fresh"], beside["cache_read"]) == (1_000, 500)
    assert disjoint(Raw(input=1_000, read=500, output=200, total=1_450)) == {}


def test_reasoning_that_is_inside_the_completion_is_not_added_to_it() -> None:
    inside = disjoint(Raw(input=2_008, output=266, reasoning=261, total=2_274))
    assert (inside["output"], inside["reasoning"]) == (266, 261)
    apart = disjoint(Raw(input=2_008, output=5, reasoning=261, total=2_274))
    assert (apart["output"], apart["reasoning"]) == (266, 261)


def test_one_row_with_more_cached_than_input_tells_for_its_whole_group() -> None:
    proof = Raw(input=10, read=500, output=1)
    row = disjoint(Raw(input=900, read=500, output=1), before=(proof,))
    assert row["input_total"] == 1_400
    assert disjoint(Raw(input=900, read=500, output=1))["input_total"] == 900


def test_totals_that_leave_cached_tokens_out_tell_nothing_for_their_group() -> None:
    proof = Raw(input=10, read=500, output=1, total=11)
    assert disjoint(proof)["input_total"] == 510
    assert disjoint(Raw(input=900, read=500, output=1, total=901), before=(proof,))["input_total"] == 1_400
    assert disjoint(Raw(input=900, read=500, output=1, total=901))["input_total"] == 900


def test_rows_without_a_total_follow_those_of_their_group_that_have_one() -> None:
    telling = Raw(input=1_000, read=500, output=200, total=1_200)
    assert disjoint(Raw(input=900, read=500, output=1), inside=False, before=(telling,))["input_total"] == 900


def test_another_group_keeps_its_own_convention() -> None:
    rules = Conventions(cached_inside=True)
    rules.see("a", Raw(input=10, read=500, output=1))
    assert rules.disjoint("b", Raw(input=900, read=500, output=1))["input_total"] == 900


def test_what_is_not_recorded_stays_unknown() -> None:
    row = disjoint(Raw(input=100, output=5))
    assert (row["input_total"], row["cache_read"], row.get("input_fresh")) == (100, None, None)
    row = disjoint(Raw(input=100, output=5), inside=False)
    assert (row["input_fresh"], row.get("input_total")) == (100, None)
    assert disjoint(Raw(input=100, output=5, total=105), inside=False)["cache_read"] == 0


@given(counts, counts, counts, counts, counts, st.booleans(), st.booleans())
def test_a_record_with_a_total_comes_out_the_same_in_every_convention(
    fresh, read, write, out, thought, inside, within
) -> None:
    raw = Raw(
        input=fresh + (read + write if inside else 0),
        read=read,
        write=write,
        output=out + (thought if within else 0),
        reasoning=thought,
        total=fresh + read + write + out + thought,
    )
    row = Conventions(cached_inside=inside, reasoning_inside=within).disjoint("g", raw)
    found = [row[name] for name in ("input_fresh", "cache_read", "cache_write", "output", "reasoning")]
    assert found == [fresh, read, write, out + thought, thought]
