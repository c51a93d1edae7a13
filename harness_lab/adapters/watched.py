"""Writing down what is done to a package's own objects, as Python lines that anyone can run without this one.

An adapter passes its limiter through :func:`watched`. In a simulation it gets the very object back. While
:func:`recorded` is open it gets a stand-in that writes each call and its result down.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
_LINES: ContextVar[list[str] | None] = ContextVar("lines", default=None)


@contextmanager
def recorded() -> Iterator[list[str]]:
    """Collect the lines of whatever is watched meanwhile."""
    lines: list[str] = []
    token = _LINES.set(lines)
    try:
        yield lines
    finally:
        _LINES.reset(token)


def note(line: str) -> None:
    """Write a line down by hand, where somebody collects them; an import is written once."""
    lines = _LINES.get()
    if lines is not None and not (line.startswith(("from ", "import ")) and line in lines):
        lines.append(line)


def watched(real: T, name: str, *, made: str, needs: str = "") -> T:
    """Return an object, or while lines are collected a stand-in that writes down what is done to it.

    Parameters
    ----------
    real : object
        The package's own.
    name : str
        What it is called in the lines; a number is added to the second of a name.
    made : str
        The expression that makes it.
    needs : str, optional
        The import statement that the expression needs.
    """
    lines = _LINES.get()
    if lines is None:
        return real
    taken = sum(line.startswith(name) and " = " in line for line in lines)
    name = f"{name}{taken + 1}" if taken else name
    if needs:
        note(needs)
    lines.append(f"{name} = {made}")
    stand_in: Any = _Watched(real, name)
    return stand_in  # type: ignore[no-any-return]


class _Watched:
    """Passes everything on; writes down calls, what they return or raise, and what is set."""

    def __init__(self, real: Any, name: str) -> None:
        object.__setattr__(self, "_real", real)
        object.__setattr__(self, "_name", name)

    def __repr__(self) -> str:
        return str(self._name)

    def __setattr__(self, attribute: str, value: Any) -> None:
        note(f"{self._name}.{attribute} = {value!r}")
        setattr(self._real, attribute, value)

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._real, attribute)
        if not callable(found):
            return found

        def call(*given: Any, **named: Any) -> Any:
            told = ", ".join([*map(repr, given), *(f"{key}={value!r}" for key, value in named.items())])
            line = f"{self._name}.{attribute}({told})"
            plain = [one._real if isinstance(one, _Watched) else one for one in given]
            try:
                result = found(*plain, **{k: v._real if isinstance(v, _Watched) else v for k, v in named.items()})
            except Exception as error:
                note(f"{line}  # raises {type(error).__name__}: {error}")
                raise
            note(line if result is None else f"{line}  # {result!r}")
            return result

        return call
