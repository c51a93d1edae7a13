"""PHP arrays of scalars: written and read."""

from __future__ import annotations

import re
from typing import Any

from harness_lab.errors import InputError

_TOKEN = re.compile(
    r"\s*(?:('(?:[^'\\]|\\.)*')|(-?\d+\.?\d*(?:[eE][-+]?\d+)?)|(null|true|false)|(\[|\]|=>|,))", re.DOTALL
)
_WORDS = {"null": None, "true": True, "false": False}


def array(value: Any, indent: str = "") -> str:
    r"""Write a mapping, list or scalar; in single quotes only ``'`` and the backslash mean anything.

    Examples
    --------
    >>> print(array({"it's": [None, 1.5, 2]}))
    [
        'it\'s' => [
            null,
            1.5,
            2,
        ],
    ]
    """
    inner = indent + "    "
    if isinstance(value, dict):
        rows = [f"{inner}{_text(key)} => {array(item, inner)},\n" for key, item in value.items()]
    elif isinstance(value, list):
        rows = [f"{inner}{array(item, inner)},\n" for item in value]
    else:
        return _scalar(value)
    return "[\n" + "".join(rows) + indent + "]" if rows else "[]"


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def read(text: str, *, what: str) -> Any:
    """Read what :func:`array` writes.

    Raises
    ------
    InputError
        If it is nothing of the kind.
    """
    tokens, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise InputError(what, expected="a PHP array of scalars", got=text[place : place + 80])
        tokens.append(match)
        place = match.end()
    try:
        value, rest = _value(tokens)
    except (IndexError, RecursionError):
        raise InputError(what, expected="a PHP array of scalars", got=text[:80]) from None
    if rest:
        raise InputError(what, expected="one PHP value", got=text[:80])
    return value


def _value(tokens: list[re.Match[str]]) -> tuple[Any, list[re.Match[str]]]:
    first, rest = tokens[0], tokens[1:]
    if first[1] is not None:
        return re.sub(r"\\(['\\])", r"\1", first[1][1:-1]), rest
    if first[2] is not None:
        return (int(first[2]) if re.fullmatch(r"-?\d+", first[2]) else float(first[2])), rest
    if first[3] is not None:
        return _WORDS[first[3]], rest
    if first[4] != "[":
        raise IndexError
    pairs, items = {}, []
    while rest[0][4] != "]":
        item, rest = _value(rest)
        if rest[0][4] == "=>":
            pairs[item], rest = _value(rest[1:])
        else:
            items.append(item)
        if rest[0][4] != ",":
            raise IndexError
        rest = rest[1:]
    return (items if items else pairs), rest[1:]
