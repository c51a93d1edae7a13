"""Writing down what is done to a package's own objects, as Python lines that anyone can run without this one.

An adapter passes its limiter through :func:`watched`. In a simulation it gets the very object back. While
:func:`recorded` is open it gets a stand-in that writes each call and its result down.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def watched(real: T, name: str, *, made: str, needs: str = "", asks: tuple[str, ...] = ()) -> T:
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
    asks : tuple of str
        Methods whose answer is shown even where it is None.
    """
    lines = _LINES.get()
    if lines is None:
        return real
    taken = sum(line.startswith(name) and " = " in line for line in lines)
    name = f"{name}{taken + 1}" if taken else name
    if needs:
        note(needs)
    lines.append(f"{name} = {made}")
    stand_in: Any = _Watched(real, name, asks)
    return stand_in  # type: ignore[no-any-return]


def unwatched(one: T) -> T:
    """Return the object behind a stand-in; any other object itself."""
    return getattr(one, "_real", one) if isinstance(one, _Watched) else one


class _Watched:
    """Passes everything on; writes down calls, what they return or raise, and what is set."""

    def __init__(self, real: Any, name: str, asks: tuple[str, ...]) -> None:
        object.__setattr__(self, "_asks", asks)
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
            plain = [unwatched(one) for one in given]
            line = f"{self._name}.{attribute}({told})"
            return tried(line, lambda: found(*plain, **_real_all(named)), shown=attribute in self._asks)

        return call


def noted(line: str, made: T) -> T:
    """Return what was made, and write down the line that makes it."""
    note(line)
    return made


def tried(line: str, action: Callable[[], T], *, shown: bool = False) -> T:
    """Do something, and write the line down that does the same; it prints what comes of it, None only if `shown`.

    Raises
    ------
    BaseException
        Whatever the action raises.
    """
    try:
        result = action()
    except BaseException as error:  # some packages stop an agent with one that no agent catches
        kind = "Exception" if isinstance(error, Exception) else "BaseException"
        told = f"{type(error).__name__} {error}".partition("\n")[0]
        note(f"try:\n    {line}\nexcept {kind} as error:\n    print(type(error).__name__, error)  # {told}")
        raise
    note(f"print(repr({line}))  # {result!r}" if shown or result is not None else line)
    return result


def _real_all(named: dict[str, Any]) -> dict[str, Any]:
    return {key: unwatched(value) for key, value in named.items()}
