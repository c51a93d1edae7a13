"""The errors a user may catch: one tree, numbers as attributes, and they survive a worker process."""

from __future__ import annotations

import pickle

import pytest

from harness_lab.errors import (
    AlreadySettled,
    BudgetExhausted,
    Deadlock,
    HarnessLabError,
    InputError,
    Livelock,
    ReadError,
    SimulationError,
    UnitMismatch,
    UnknownTicket,
)

EXAMPLES = [
    InputError("max_steps", expected="a whole number", got=-1, hint="Use 0 to allow none"),
    ReadError("runs.csv", expected="a CSV file", got="nothing"),
    UnitMismatch("unit of the ask", expected="input-total", got="total"),
    AlreadySettled("call 3 of node /", "a first use"),
    UnknownTicket("call 3 of node /"),
    BudgetExhausted("nothing left"),
    Deadlock(("run 7", "run 7.0")),
    Livelock(1_000_001, 2_500_000_000, "run 7"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_with_its_text_and_its_numbers(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - what joblib does
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_is_caught_by_the_root_of_the_tree(error: Exception) -> None:
    assert isinstance(error, HarnessLabError)


def test_errors_also_are_the_builtin_they_resemble() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(ReadError, InputError)
    assert issubclass(UnitMismatch, InputError)
    assert issubclass(AlreadySettled, RuntimeError)
    assert issubclass(UnknownTicket, LookupError)
    assert issubclass(Deadlock, SimulationError)
    assert issubclass(Livelock, SimulationError)


def test_an_input_error_is_one_line_that_says_what_was_expected_and_what_came() -> None:
    text = str(InputError("runs", expected="at least 1", got=0, hint="Give --runs 100"))
    assert text == "runs: expected at least 1, got 0. Give --runs 100"


def test_an_input_error_shortens_what_came() -> None:
    error = InputError("column", expected="a number", got="x" * 1000)
    assert len(str(error)) < 200
    assert error.got == "x" * 1000


def test_a_second_settlement_tells_the_first_and_that_nothing_moved() -> None:
    assert str(AlreadySettled("call 1 of node /", 5)) == (
        "call 1 of node / was already settled with 5; nothing was charged again"
    )


def test_a_deadlock_names_who_is_parked_and_a_livelock_when_it_was() -> None:
    assert "2 process(es) still wait: run 7, run 7.0" in str(Deadlock(("run 7", "run 7.0")))
    assert str(Deadlock(tuple("abcdefghij"))).endswith("h, ...")
    assert "t = 2.5 s" in str(Livelock(11, 2_500_000_000, "run 7"))


def test_a_field_named_with_a_line_break_and_an_endless_number_are_one_line() -> None:
    text = str(InputError("a\nb\x1b", expected="less", got=10**5000))
    assert text == "a\\nb\\x1b: expected less, got a value of int too long to write"
