"""What is wrong with an experiment file, in one line: where, what was expected, what came."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_T = TypeVar("_T")

SHOWN = 5
"""Problems that are told one by one; the rest is counted."""


def input_error(error: ValidationError, table: type[BaseModel]) -> InputError:
    """Return one error that tells every problem of a file, the first as its own and the others as its hint.

    Parameters
    ----------
    error : ValidationError
        What validation found.
    table : type of BaseModel
        The table that was validated; it knows which keys are allowed where.
    """
    found = [_problem(detail, table) for detail in error.errors(include_url=False)]
    first, others = found[0], [str(problem) for problem in found[1:SHOWN]]
    if len(found) > SHOWN:
        others.append(f"and {len(found) - SHOWN} more")
    hint = f"also: {'; '.join(others)}" if others else ""
    hints = "; ".join(text for text in (first.hint, hint) if text)
    return InputError(first.what, expected=first.expected, got=first.got, hint=hints)


def at(where: str, build: Callable[[], _T]) -> _T:
    """Return what `build` returns; where it refuses, the error names the place in the file.

    Raises
    ------
    InputError
        The error of `build`, its name put below `where`.
    """
    try:
        return build()
    except InputError as error:
        raise _below(where, error) from None


def _below(where: str, error: InputError) -> InputError:
    place = f"{where}.{error.what}" if error.what else where
    return InputError(place, expected=error.expected, got=error.got, hint=error.hint)


def _problem(detail: ErrorDetails, table: type[BaseModel]) -> InputError:
    where = ".".join(str(part) for part in detail["loc"]) or "experiment"
    inner = detail.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        return _below(where, inner)
    if detail["type"] == "missing":
        return InputError(where, expected="this key, which has no default", got=sorted(detail["input"]))
    if detail["type"] == "extra_forbidden":
        key = str(detail["loc"][-1])
        return InputError(where, expected=_known(key, _keys(table, detail["loc"][:-1])), got=key)
    wanted = detail["msg"].removeprefix("Input should be ")
    return InputError(where, expected=f"{wanted[0].lower()}{wanted[1:]}", got=detail["input"])


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean X?`` for the known word nearest to one that is not, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]}?" if near else ""


def _known(key: str, allowed: Sequence[str]) -> str:
    guess = did_you_mean(key, allowed)
    return f"a known key ({guess + ' ' if guess else ''}allowed: {', '.join(allowed)})"


def _keys(table: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """Return the keys that the table at `place` allows; names of entries and places in lists are passed over."""
    current = table
    for part in place:
        field = current.model_fields.get(str(part))
        if field is not None:
            current = _table_of(field.annotation) or current
    return list(current.model_fields)


def _table_of(annotation: Any) -> type[BaseModel] | None:
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
