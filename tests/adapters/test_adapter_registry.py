"""Adapters by name, of one's own, and what is said when something is not there."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harness_lab.adapters import LIMITS, Adapter, limits_of, named, names, policy
from harness_lab.adapters.registry import address
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

OWN = """
from harness_lab.adapters import Adapter

class Mine(Adapter):
    name = "mine"
    def __init__(self, *, calls=3):
        self.left = calls

class Odd(Adapter):
    def __init__(self, *, steps=3):
        pass
"""


class Absent(Adapter):
    name = "absent"
    package = "no-such-package-anywhere"
    requires = "no-such-package-anywhere==1.2"

    def __init__(self, *, calls: int = 3) -> None:
        raise AssertionError("its package is not there")


def test_every_name_is_found_and_takes_limits_that_cases_know() -> None:
    for name in names():
        adapter = named(name)
        assert (adapter.name, address(adapter)) == (name, name)
        assert limits_of(adapter), name
        assert set(limits_of(adapter)) <= set(LIMITS), name
        assert set(adapter.knobs) == set(limits_of(adapter)), name


def test_naming_them_all_imports_no_package_of_anybody() -> None:
    code = "import sys; from harness_lab.adapters import named, names; [named(n) for n in names()]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    theirs = {"prism_harness", "agent", "tokenops", "pydantic_ai", "litellm", "agents", "langgraph", "bernstein"}
    assert not theirs & set(done.stdout.split())


def test_a_package_that_is_not_there_is_one_line_with_the_command() -> None:
    told = "adapter absent: expected the package no-such-package-anywhere, got 'no such package here'. pip install"
    with pytest.raises(InputError, match=f"{told} 'no-such-package-anywhere==1.2'"):
        policy(Absent, calls=3)


def test_one_of_your_own_is_found_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN, "utf-8")
    found = named(f"{file}:Mine")
    assert (found.name, limits_of(found)) == ("mine", ("calls",))
    with pytest.raises(InputError, match="limits of Odd: expected names that cases know, got \\['steps'\\]"):
        named(f"{file}:Odd")


def test_one_of_your_own_is_found_in_a_module() -> None:
    assert named("harness_lab.adapters.check_then_add:CheckThenAdd") is named("check-then-add")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no-such", "adapter: expected one of check-then-add"),
        ("no_such_module:Mine", "adapter: expected a module 'no_such_module' that can be imported"),
        ("no_such.py:Mine", "adapter: expected a Python file, got 'no_such.py'"),
        ("json:loads", "adapter: expected a subclass of Adapter called loads in json"),
        ("json:Mine", "adapter: expected a subclass of Adapter called Mine in json, got None"),
    ],
)
def test_what_is_none_is_one_line(name: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        named(name)
    assert str(caught.value).startswith(told)
