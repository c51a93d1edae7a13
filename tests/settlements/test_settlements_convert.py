from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.settlements.convert import TARGETS, Unfit, converted, instant, is_naive, money, span


@given(st.integers(0, 10**15))
def test_dollars_as_text_become_nano_dollars_exactly(nusd: int) -> None:
    assert money(str(Decimal(nusd) / 10**9)) == nusd


def test_floats_of_recorded_sums_come_back_to_their_nano_dollar() -> None:
    assert money(0.3012558000000001) == 301_255_800
    assert money("$1.25") == 1_250_000_000


@pytest.mark.parametrize("value", ["NaN", "inf", -0.01, "", "free", True, None, [1]])
def test_what_is_no_amount_of_dollars_is_unfit(value: object) -> None:
    with pytest.raises(Unfit, match=r"^should be a finite number of dollars"):
        money(value)


def test_an_instant_may_be_seconds_or_an_iso_time_in_any_zone() -> None:
    wanted = 1_763_508_908_000_000_000
    east = timezone(timedelta(hours=2))
    for value in (1763508908, "1763508908", "2025-11-18T23:35:08Z", "2025-11-19T01:35:08+02:00"):
        assert instant(value) == wanted
    assert instant(datetime(2025, 11, 19, 1, 35, 8, tzinfo=east)) == wanted
    assert instant(pd.Timestamp(wanted + 7, tz="UTC")) == wanted + 7
    assert instant("1763508908.000000001") == wanted + 1


def test_a_time_without_a_zone_is_utc_and_known_as_naive() -> None:
    assert instant("2025-11-18 23:35:08") == instant("2025-11-18T23:35:08Z")
    assert is_naive("2025-11-18")
    assert not is_naive("2025-11-18T00:00:00Z")
    assert not is_naive(1763508908)


def test_milliseconds_are_recognised_and_not_taken_for_seconds() -> None:
    with pytest.raises(Unfit, match=r"milliseconds\?"):
        instant(1_763_508_908_000)


@pytest.mark.parametrize("value", ["yesterday", "2025-13-01", "NaN", True, {}])
def test_what_is_no_time_is_unfit(value: object) -> None:
    with pytest.raises(Unfit, match=r"^should be"):
        instant(value)


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)))
def test_iso_text_and_datetime_agree_to_the_microsecond(moment: datetime) -> None:
    aware = moment.replace(tzinfo=UTC)
    assert instant(aware.isoformat()) == instant(aware)


def test_every_money_and_time_column_can_be_given_in_dollars_and_seconds() -> None:
    assert {"cost_usd", "billed_usd", "ceiling_cost_usd", "ask_cost_usd", "duration_s", "ceiling_time_s"} <= set(
        TARGETS
    )
    row = converted({"cost_usd": "0.1", "start": 10, "end": 12.5, "ceiling_time_s": "2"})
    assert row == {
        "cost_nusd": 100_000_000,
        "start_ns": 10**10,
        "duration_ns": 2_500_000_000,
        "ceiling_time_ns": 2 * 10**9,
    }


def test_an_end_before_its_start_is_unfit() -> None:
    with pytest.raises(Unfit, match=r"^end: should not be before start"):
        converted({"start": 10, "end": 9})


def test_a_reason_names_the_field() -> None:
    with pytest.raises(Unfit, match=r"^duration_s: should be a finite number of seconds, at least 0, got -1"):
        converted({"duration_s": -1})
    assert span("1.5") == 1_500_000_000
