"""Calendar windows follow one another without a gap or an overlap, whatever the clocks do."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.budget.windows import Calendar, Rolling, epoch_ns, instant_text
from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError

HOUR = 3600 * NS_PER_S
ODD_ZONES = [
    "Europe/Amsterdam",
    "America/New_York",
    "America/Sao_Paulo",  # clocks were put forward over midnight
    "America/Havana",  # and back over one in the morning
    "America/Goose_Bay",  # and back across midnight, at one minute past
    "Pacific/Apia",  # skipped a whole day
    "Australia/Lord_Howe",  # by half an hour
    "Asia/Kathmandu",
    "Asia/Shanghai",
    "UTC",
]


def at(text: str, zone: str = "UTC") -> int:
    return epoch_ns(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)))


def hours(every: str, zone: str, text: str, day: int = 1) -> float:
    return Calendar(every, zone, day).window(at(text, zone)).hours  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("day", "expected"), [("2026-03-28", 24), ("2026-03-29", 23), ("2026-03-30", 24), ("2026-10-25", 25)]
)
def test_days_on_which_clocks_change_have_23_and_25_hours(day: str, expected: int) -> None:
    assert hours("day", "Europe/Amsterdam", f"{day}T12:00") == expected


def test_half_an_hour_is_counted_too() -> None:
    assert hours("day", "Australia/Lord_Howe", "2026-10-04T12:00") == 23.5
    assert hours("day", "Australia/Lord_Howe", "2026-04-05T12:00") == 24.5


def test_a_day_whose_midnight_does_not_exist_begins_when_the_clocks_have_moved() -> None:
    window = Calendar("day", "America/Sao_Paulo").window(at("2018-11-04T12:00", "America/Sao_Paulo"))
    assert window.hours == 23
    assert instant_text(window.start_ns, "America/Sao_Paulo") == "2018-11-04T01:00:00-02:00"


def test_a_repeated_hour_across_midnight_belongs_to_the_day_that_had_begun() -> None:
    zone = "America/Goose_Bay"
    midnight = at("2010-11-07T00:00", zone)
    repeated = midnight + 30 * 60 * NS_PER_S
    assert instant_text(repeated, zone).startswith("2010-11-06T23:30")
    window = Calendar("day", zone).window(repeated)
    assert window.start_ns == midnight
    assert window.hours == 25


def test_a_day_that_a_country_skipped_has_no_window() -> None:
    calendar = Calendar("day", "Pacific/Apia")
    before = calendar.window(at("2011-12-29T12:00", "Pacific/Apia"))
    after = calendar.window(before.end_ns)
    assert (before.hours, after.hours, after.index - before.index) == (24, 24, 2)


def test_months_have_their_own_lengths_and_leap_years_count() -> None:
    days = [hours("month", "UTC", f"{year}-02-10T00:00") / 24 for year in (2023, 2024, 2000, 2100)]
    assert days == [28, 29, 29, 28]
    assert hours("month", "Europe/Amsterdam", "2026-03-10T00:00") == 31 * 24 - 1
    assert hours("month", "Europe/Amsterdam", "2026-10-10T00:00") == 31 * 24 + 1


def test_the_last_instant_of_a_month_is_in_it_and_the_next_one_is_not() -> None:
    month = Calendar("month", "Asia/Tokyo")
    turn = at("2024-03-01T00:00", "Asia/Tokyo")
    assert month.window(turn - 1).index + 1 == month.window(turn).index
    assert month.window(turn - 1).end_ns == turn == month.window(turn).start_ns


def test_a_month_that_begins_on_the_31st_begins_on_the_last_day_of_shorter_months() -> None:
    billing = Calendar("month", "UTC", day=31)
    starts = []
    now = at("2024-01-31T00:00")
    for _ in range(5):
        window = billing.window(now)
        starts.append(instant_text(window.start_ns)[:10])
        now = window.end_ns
    assert starts == ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30", "2024-05-31"]


def test_weeks_begin_on_monday() -> None:
    week = Calendar("week", "Europe/Amsterdam").window(at("2026-03-29T23:59", "Europe/Amsterdam"))
    assert instant_text(week.start_ns, "Europe/Amsterdam") == "2026-03-23T00:00:00+01:00"
    assert week.hours == 7 * 24 - 1


@given(
    st.sampled_from(ODD_ZONES),
    st.sampled_from(["day", "week", "month"]),
    st.integers(1, 31),
    st.datetimes(datetime(1950, 1, 1), datetime(2080, 1, 1)),
)
@settings(max_examples=400, deadline=None)
def test_every_instant_lies_in_one_window_and_windows_touch(zone: str, every: str, day: int, when: datetime) -> None:
    calendar = Calendar(every, zone, day if every == "month" else 1)  # type: ignore[arg-type]
    now = epoch_ns(when.replace(tzinfo=UTC))
    window = calendar.window(now)
    assert window.start_ns <= now < window.end_ns
    after, before = calendar.window(window.end_ns), calendar.window(window.start_ns - 1)
    assert (after.start_ns, before.end_ns) == (window.end_ns, window.start_ns)
    assert before.index < window.index < after.index
    assert calendar.window(window.start_ns) == calendar.window(window.end_ns - 1) == window


@given(st.sampled_from(ODD_ZONES), st.dates(date(1960, 1, 1), date(2060, 1, 1)))
@settings(max_examples=200, deadline=None)
def test_a_day_begins_at_the_first_second_that_shows_its_date(zone: str, day: date) -> None:
    tz = ZoneInfo(zone)
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=tz).astimezone(UTC)
    if noon.astimezone(tz).date() != day:
        return  # the day was skipped
    start = Calendar("day", zone).window(epoch_ns(noon)).start_ns
    seconds = [noon - timedelta(seconds=s) for s in range(36 * 3600, 0, -60)]
    shown = [s for s in seconds if s.astimezone(tz).date() == day]
    assert abs(epoch_ns(shown[0]) - start) <= 60 * NS_PER_S
    first = datetime.fromisoformat(instant_text(start, zone))
    assert first.date() == day
    assert (first.astimezone(UTC) - timedelta(microseconds=1)).astimezone(tz).date() < day


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Calendar("day", "Mars/Olympus"), r"^zone: expected a name of the IANA"),
        (lambda: Calendar("day", "../etc/passwd"), r"^zone: expected"),
        (lambda: Calendar("year", "UTC"), r"^every: expected one of day, week, month"),  # type: ignore[arg-type]
        (lambda: Calendar("day", "UTC", 2), r"^day: expected a day of the month"),
        (lambda: Calendar("month", "UTC", 32), r"^day: expected a day of the month"),
        (lambda: Calendar("day").window(10**21), r"^instant: expected epoch nanoseconds"),
        (lambda: Rolling(0), r"^rolling seconds: expected a number above 0"),
        (lambda: Rolling(float("nan")), r"^seconds: expected a finite number"),
        (lambda: epoch_ns(datetime(2026, 1, 1)), r"^instant: expected a datetime with a time zone"),
    ],
)
def test_what_is_no_window_is_said_in_one_line(build, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        build()
