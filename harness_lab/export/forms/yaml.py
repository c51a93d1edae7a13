"""YAML in block style: a small part of the language, which every reader of YAML 1.1 or 1.2 reads alike.

Mappings and lists are blocks, keys and texts are always quoted, so that ``no`` stays a text and 1e-07 a number.
"""

from __future__ import annotations

import json
import re
from typing import Any

from harness_lab.errors import InputError
from harness_lab.export.forms.text import parsed

_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = {"yes", "no", "on", "off", "true", "false", "null", "y", "n"}
_LINE = re.compile(r'^( *)(- )?(?:("(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_-]*):(?: (.*))?|(.*))$')


def scalar(value: Any) -> str:
    """Write a number, a text, a truth value or null.

    Examples
    --------
    >>> print(scalar(1e-07), scalar("no"), scalar(None), scalar(3.0))
    1.0e-07 "no" null 3.0
    """
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def block(value: Any, indent: str = "") -> str:
    """Write a mapping or list as a block."""
    if isinstance(value, dict):
        return "".join(f"{indent}{_key(key)}:{_under(item, indent)}" for key, item in value.items())
    return "".join(f"{indent}-{_item(item, indent)}" for item in value)


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key.lower() not in _WORDS else scalar(key)


def _under(item: Any, indent: str) -> str:
    if isinstance(item, (dict, list)) and item:
        return "\n" + block(item, indent + "  ")
    return " {}\n" if item == {} else " []\n" if item == [] else f" {scalar(item)}\n"


def _item(item: Any, indent: str) -> str:
    if isinstance(item, dict) and item:
        return " " + block(item, indent + "  ")[len(indent) + 2 :]
    return _under(item, indent)


def read(text: str, *, what: str) -> Any:
    """Read what :func:`block` writes; comments and blank lines are passed over.

    Raises
    ------
    InputError
        If a line is none of ours.
    """
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    value, rest = _read(lines, what)
    if rest:
        raise InputError(what, expected="YAML as it was written", got=rest[0])
    return value


def _read(lines: list[str], what: str) -> tuple[Any, list[str]]:
    """Read the block that the first line begins, and return it with the lines after it."""
    if not lines:
        return {}, []
    depth = _indent(lines[0])
    listing = lines[0].lstrip().startswith("-")
    found: Any = [] if listing else {}
    while lines and _indent(lines[0]) == depth and lines[0].lstrip().startswith("-") == listing:
        line = lines[0][depth:]
        if listing and not line.startswith("- "):
            raise InputError(what, expected="YAML as it was written", got=line)
        if listing and _LINE.match(line[2:])[3] is None:  # type: ignore[index]
            found.append(_value(line[2:], what))
            lines = lines[1:]
        elif listing:
            item, lines = _read([" " * (depth + 2) + line[2:], *lines[1:]], what)
            found.append(item)
        else:
            lines = _entry(found, lines, depth, what)
    return found, lines


def _entry(found: dict[str, Any], lines: list[str], depth: int, what: str) -> list[str]:
    match = _LINE.match(lines[0][depth:])
    if match is None or match[3] is None:
        raise InputError(what, expected="YAML as it was written", got=lines[0])
    key = parsed(match[3], what=what) if match[3].startswith('"') else match[3]
    if match[4] is not None:
        found[key] = _value(match[4], what)
        return lines[1:]
    found[key], rest = _read(lines[1:], what) if len(lines) > 1 and _indent(lines[1]) > depth else ({}, lines[1:])
    return rest


def _value(text: str, what: str) -> Any:
    return parsed(text.strip(), what=what)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
