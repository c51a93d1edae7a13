"""Objects in another Python are asked over a pipe; here the other one is this very interpreter."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness_lab.adapters import found_version, named
from harness_lab.adapters.elsewhere import AnsweredThere, There, there, version_there
from harness_lab.adapters.registry import installed
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "HARNESS_LAB_BERNSTEIN_PYTHON"


@pytest.fixture
def other() -> Iterator[There]:
    started = There(sys.executable)
    yield started
    started.close()


def test_an_object_is_made_there_and_its_methods_answer(other: There) -> None:
    queue = other.make("queue:Queue", maxsize=2)
    queue.put("x")
    assert (queue.qsize(), queue.full(), queue.get()) == (1, False, "x")


def test_objects_and_paths_are_passed_on(other: There) -> None:
    inner, outer = other.make("collections:Counter", a=2), other.make("collections:Counter", a=1)
    outer.update(inner)
    assert outer.total() == 3
    assert other.make("pathlib:PurePath").joinpath(Path("a", "b")) == "PurePosixPath('a/b')"


def test_what_is_raised_there_is_raised_here_in_its_words(other: There) -> None:
    with pytest.raises(AnsweredThere, match=r"^Empty: $"):
        other.make("queue:Queue").get_nowait()
    with pytest.raises(AnsweredThere, match=r"^ModuleNotFoundError: No module named 'not_there'$"):
        other.make("not_there:X")
    assert other.make("queue:Queue").qsize() == 0


def test_what_is_let_go_is_gone(other: There) -> None:
    queue = other.make("queue:Queue")
    queue.drop()
    with pytest.raises(AnsweredThere, match=r"^KeyError: 1$"):
        queue.qsize()


def test_what_a_package_prints_is_no_answer(other: There) -> None:
    assert other.make("string:Template", template="x").substitute() == "x"
    assert other.make("cmd:Cmd").onecmd("nonsense") is None  # prints that it knows no such command
    assert other.ask(version="pytest") == version("pytest")


def test_another_python_that_ended_is_told(other: There) -> None:
    with pytest.raises(AnsweredThere, match=r"ended with 3$"):
        other.make("os:_exit", status=3)


def test_a_python_that_does_not_start_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"^interpreter: expected a Python that starts, got .*none: No such file"):
        there(VARIABLE)


def test_a_package_may_be_there_and_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, sys.executable)
    assert version_there(VARIABLE, "pytest") == version("pytest")
    assert version_there(VARIABLE, "no-such-package") is None
    assert version_there("", "pytest") is None
    assert there(VARIABLE) is there(VARIABLE)  # one for all


def test_what_is_nowhere_is_told_with_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    bernstein = named("bernstein")
    if found_version(bernstein) is not None:
        pytest.skip("bernstein is installed here")
    with pytest.raises(InputError, match=rf"pip install 'bernstein>=3.23'; or {VARIABLE}=PYTHON, one that has it"):
        installed(bernstein)
