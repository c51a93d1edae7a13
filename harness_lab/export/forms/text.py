"""What the languages share: safe comments, nesting by dotted keys, finding a value between its marks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.export.targets.base import Files, Values

CLOSING = str.maketrans({"<": "\\u003c", ">": "\\u003e", "*": "\\u002a", "`": "\\u0060", "\x7f": "\\u007f"})
"""What could end a comment or open a tag, in any of the languages."""


def quoted(text: str) -> str:
    r"""Return a text as a JSON string in ASCII that is safe inside a comment of any language.

    Examples
    --------
    >>> print(quoted("a\n*/ ?>"))
    "a\n\u002a/ ?\u003e"
    """
    return json.dumps(text).translate(CLOSING)


def comments(header: tuple[str, ...], mark: str) -> str:
    """Return comment lines; each line of the header is one, whatever it holds."""
    return "".join(f"{mark} {line}\n" for line in header)


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Turn dotted keys into nested mappings.

    Examples
    --------
    >>> nest({"agents.max_depth": 2, "agents.max_threads": 3, "model": "m"})
    {'agents': {'max_depth': 2, 'max_threads': 3}, 'model': 'm'}
    """
    root: dict[str, Any] = {}
    for key, value in values.items():
        *above, last = key.split(".")
        place = root
        for part in above:
            place = place.setdefault(part, {})
        place[last] = value
    return root


def pick(data: Any, keys: tuple[str, ...]) -> Values:
    """Return the dotted keys that nested mappings hold; what else is there is left alone."""
    found: Values = {}
    for key in keys:
        place: Any = data
        for part in key.split("."):
            place = place[part] if isinstance(place, dict) and part in place else _ABSENT
        if place is not _ABSENT:
            found[key] = place
    return found


_ABSENT = object()


def only_file(files: Files, name: str) -> str:
    """Return the content of a form's one file, whatever its name."""
    if name in files:
        return files[name]
    if len(files) != 1:
        raise InputError("files", expected=f"{name}, or one file", got=sorted(files))
    return next(iter(files.values()))


def between(text: str, begin: str, end: str, *, what: str) -> str:
    """Return what stands between two marks.

    Raises
    ------
    InputError
        If they are not there.
    """
    _, found, rest = text.partition(begin)
    body, ended, _ = rest.rpartition(end)
    if not found or not ended:
        raise InputError(what, expected=f"a value between {begin!r} and {end!r}", got=text[:80])
    return body


def parsed(text: str, *, what: str) -> Any:
    """Read JSON.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(what, expected="JSON", got=str(error)) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def mapping(value: Any, *, what: str) -> dict[str, Any]:
    """Return a mapping as it is.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(value, dict):
        raise InputError(what, expected="a mapping", got=value)
    return value
