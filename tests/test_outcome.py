"""The vocabulary: stable words, and a refusal that explains itself."""

from __future__ import annotations

from harness_lab.outcome import CHANNELS, COST, UNITS, Code, Outcome, Purpose, Refusal, Shortfall

POOL = Shortfall(Code.BUDGET_EXHAUSTED, 10_000, 8_000, 2_000, "smaller", "tokens")
FLOOR = Shortfall(Code.BELOW_RUNTIME_FLOOR, 31_211, 8_000, None, "larger", "input", "Take another path")


def test_the_outcomes_are_the_words_of_the_table() -> None:
    assert [outcome.value for outcome in Outcome] == [
        "completed",
        "exhausted",
        "timed_out",
        "cancelled",
        "failed",
        "denied",
        "awaiting_approval",
        "unknown",
    ]


def test_reason_codes_are_kebab_case_and_appended_only() -> None:
    assert all(code.value == code.value.lower() and "_" not in code.value for code in Code)
    assert [code.value for code in Code][:5] == [
        "steps-exhausted",
        "cost-exhausted",
        "time-exhausted",
        "spend-unknown",
        "cancelled",
    ]


def test_channels_and_units_fit_together() -> None:
    assert CHANNELS == ("calls", "input", "tokens", "fresh", "cost")
    assert CHANNELS[COST] == "cost"
    assert UNITS == {"input-total": "input", "total": "tokens", "newly-presented": "fresh"}


def test_a_refusal_reports_every_shortfall_and_the_first_is_the_binding_one() -> None:
    refusal = Refusal((FLOOR, POOL))
    assert refusal.code is Code.BELOW_RUNTIME_FLOOR
    assert refusal.then == "stop"
    assert str(refusal) == (
        "below-runtime-floor (input): asked 8,000, the floor is 31,211; helps: larger. Take another path; "
        "budget-exhausted (tokens): asked 8,000, free 2,000 of 10,000; helps: smaller"
    )


def test_every_purpose_of_a_draw_has_a_number_of_its_own_and_fits_its_five_bits() -> None:
    numbers = [value for name, value in vars(Purpose).items() if name.isupper()]
    assert sorted(numbers) == list(range(len(numbers)))
    assert max(numbers) < 32
