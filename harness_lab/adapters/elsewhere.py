"""Objects of a package that needs another Python than this one: they live there, and are asked over a pipe.

The interpreter is named by an environment variable, one for each such package (:attr:`Adapter.elsewhere`).
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lab.errors import HarnessLabError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

_SERVER = Path(__file__).with_name("answer_there.py")


class AnsweredThere(HarnessLabError):
    """A package in another Python raised; its words."""


class Shown(str):
    """An object that stays there, as it is shown there."""

    def __repr__(self) -> str:
        return str(self)


class There:
    """Another Python.

    Parameters
    ----------
    python : str
        Its interpreter.

    Raises
    ------
    InputError
        If it cannot be started.
    """

    def __init__(self, python: str) -> None:
        self.python = python
        self._made = 0
        try:
            self._process = subprocess.Popen(  # noqa: S603 - an interpreter that the user names
                [python, "-I", str(_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True, bufsize=1,
            )  # fmt: skip
        except OSError as error:
            got = f"{python}: {error.strerror}"
            raise InputError("interpreter", expected="a Python that starts", got=got) from error
        atexit.register(self.close)

    def close(self) -> None:
        """End the other Python."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def ask(self, **question: Any) -> Any:
        """Ask one question.

        Raises
        ------
        AnsweredThere
            If the package raised, or the other Python has ended.
        """
        pipe, answers = self._process.stdin, self._process.stdout
        try:
            print(json.dumps(question), file=pipe)
            line = answers.readline() if answers is not None else ""
        except OSError:
            line = ""
        if not line:
            raise AnsweredThere(f"{self.python} ended with {self._process.wait()}")
        said = json.loads(line)
        if "raises" in said:
            raise AnsweredThere(f"{said['raises']}: {said['text']}")
        value = said["value"]
        return Shown(value["repr"]) if isinstance(value, dict) else value

    def make(self, where: str, **named: Any) -> Any:
        """Make an object of a class (``module:Class``) there, and return what stands for it here."""
        self._made += 1
        self.ask(make=where, **{"as": self._made}, named=_sent(named))
        return Remote(self, self._made)


class Remote:
    """Stands for an object there: each of its methods is a question."""

    def __init__(self, there: There, number: int) -> None:
        self._there, self._number = there, number

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("__"):
            raise AttributeError(method)

        def call(*given: Any, **named: Any) -> Any:
            sent = [_sent({"one": value})["one"] for value in given]
            return self._there.ask(of=self._number, call=method, given=sent, named=_sent(named))

        return call

    def drop(self) -> None:
        """Let the object there go."""
        self._there.ask(drop=self._number)


def _sent(named: dict[str, Any]) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, Remote):
            return {"object": value._number}
        return {"path": str(value)} if isinstance(value, Path) else value

    return {name: plain(value) for name, value in named.items()}


def there(variable: str) -> There | None:
    """Return the Python that an environment variable names; None if it names none.

    Raises
    ------
    InputError
        If what it names cannot be started.
    """
    named = os.environ.get(variable, "") if variable else ""
    return _started(named, os.getpid()) if named else None


@cache
def _started(python: str, _process: int) -> There:
    return There(python)  # one for each process: a fork must not share a pipe


def version_there(variable: str, package: str) -> str | None:
    """Return the version of a package in the Python that an environment variable names; None: not there."""
    found = there(variable)
    if found is None:
        return None
    try:
        return str(found.ask(version=package))
    except AnsweredThere:
        return None
