"""YAML: written in block style, a small part of the language, which every reader of YAML 1.1 or 1.2 reads alike.

Mappings and lists are blocks, keys and texts are always quoted, so that ``no`` stays a text and 1e-07 a number.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from harness_lab.errors import InputError

_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = {"yes", "no", "on", "off", "true", "false", "null", "y", "n"}


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
    """Read any YAML: what :func:`block` wrote, and what people write by hand; an empty document is an empty mapping.

    Raises
    ------
    InputError
        If it is none, or holds a tag of another program.
    """
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise yaml.YAMLError("an alias (*name): a few lines of them can stand for more than memory holds")
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(what, expected="YAML without aliases", got=" ".join(str(error).split())) from None
    return {} if found is None else found
