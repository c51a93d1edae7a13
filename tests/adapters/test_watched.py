"""What is done to a package's objects, as lines that do the same."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest

from harness_lab.adapters import note, noted, recorded, tried, watched


class Counter:
    def __init__(self, most: int) -> None:
        self.most, self.used = most, 0

    def take(self, *, many: int = 1) -> bool:
        self.used += many
        return self.used <= self.most

    def look(self) -> None:
        return None

    def stop(self) -> None:
        raise KeyError("stopped")


def made(most: int, **more: Any) -> Counter:
    return watched(Counter(most), "counter", made=f"Counter({most})", **more)


def test_nothing_stands_between_when_nobody_collects() -> None:
    assert type(made(3)) is Counter
    note("not written down anywhere")


def test_calls_results_and_settings_are_written_down() -> None:
    with recorded() as lines:
        counter = made(1, needs="from x import Counter", asks=("look",))
        assert (counter.take(), counter.take(many=2), counter.used) == (True, False, 3)
        counter.most = 9
        counter.look()
    assert lines == [
        "from x import Counter",
        "counter = Counter(1)",
        "print(repr(counter.take()))  # True",
        "print(repr(counter.take(many=2)))  # False",
        "counter.most = 9",
        "print(repr(counter.look()))  # None",
    ]


def test_the_second_of_a_name_has_a_number_and_an_import_stands_once() -> None:
    with recorded() as lines:
        for most in (1, 2):
            made(most, needs="import x").take()
    assert [line for line in lines if "import" in line or " = " in line] == [
        "import x", "counter = Counter(1)", "counter2 = Counter(2)"
    ]  # fmt: skip


def test_what_is_raised_is_raised_and_caught_in_the_lines() -> None:
    with recorded() as lines, pytest.raises(KeyError):
        made(1).stop()
    assert lines[1] == (
        "try:\n    counter.stop()\nexcept Exception as error:\n    print(type(error).__name__, error)  "
        "# KeyError 'stopped'"
    )


def test_the_lines_do_what_was_done() -> None:
    with recorded() as lines:
        counter = made(2)
        for _ in range(3):
            counter.take()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec("\n".join(lines), {"Counter": Counter})  # noqa: S102 - that is what the lines are for
    assert said.getvalue().split() == ["True", "True", "False"]


def test_lines_by_hand_nest_and_end() -> None:
    with recorded() as outer:
        assert noted("x = 1", 1) == 1
        with recorded() as inner:
            assert tried("f(x)", lambda: None) is None
        assert tried("g(x)", lambda: None, shown=True) is None
    assert (outer, inner) == (["x = 1", "print(repr(g(x)))  # None"], ["f(x)"])
