"""Canonical JSON and the hashes over it.

Keys sorted, no blanks, non-ASCII kept literal, UTF-8. Two plans that are equal as data give the same bytes, and the
same bytes as Bernstein's. Lists keep their order, ``0`` and ``0.0`` differ, no text is normalised.

What cannot be hashed faithfully is refused with one line: cycles, nesting beyond :data:`MAX_DEPTH`, NaN and infinities,
lone surrogates, integers beyond :data:`MAX_INT_BITS`, keys that are not text, objects that JSON does not know.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from harness_lab.delegation.rules import OURS, DelegationRules
from harness_lab.errors import InputError

MAX_DEPTH = 100
"""Levels of nesting in a schema or payload."""
MAX_VALUES = 1_000_000
"""Values in a schema or payload, each counted wherever it occurs: a shared part counts every time."""
MAX_CHARS = 100_000_000
"""Characters of all texts in a schema or payload, counted the same way."""
MAX_INT_BITS = 2048
"""Size of an integer: about 616 digits, below the least limit that an interpreter may set for printing one."""


def canonical_json(value: Any, *, what: str = "value", rules: DelegationRules = OURS) -> str:
    """Return the canonical JSON text of a value.

    Parameters
    ----------
    value : JSON value
        Mappings, lists, tuples, text, numbers, booleans, None.
    what : str
        Name for the error message.
    rules : DelegationRules
        The axis `values`.

    Raises
    ------
    InputError
        If the value cannot be written faithfully; the message names the place.

    Examples
    --------
    >>> canonical_json({"b": 1, "a": {"d": 1.0, "c": "é"}})
    '{"a":{"c":"é","d":1.0},"b":1}'
    """
    plain = plain_json(value, what=what, rules=rules)
    lenient = rules.values == "python"
    options: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":"), "sort_keys": True}
    try:
        text = json.dumps(plain, allow_nan=lenient, default=str if lenient else None, **options)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(what, expected="a value that canonical JSON can hold", got=str(error)) from None
    return text


def content_hash(value: Any, *, what: str = "value", rules: DelegationRules = OURS) -> str:
    """Return ``sha256:`` and the hex SHA-256 of a value's canonical JSON in UTF-8.

    Examples
    --------
    >>> content_hash([])
    'sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945'
    """
    text = canonical_json(value, what=what, rules=rules)
    return f"sha256:{hashlib.sha256(text.encode('utf-8')).hexdigest()}"


def plain_json(value: Any, *, what: str = "value", rules: DelegationRules = OURS) -> Any:
    """Return a copy made of dicts and lists, checked on the way.

    Raises
    ------
    InputError
        If the value is not JSON under the rules' axis `values`, or too deep, too large or cyclic under either.
    """
    return _Copy(what, lenient=rules.values == "python").copy(value, "", 0)


class _Copy:
    """One walk over a value: bounded in depth and size, and aware of the containers above the one it is in."""

    __slots__ = ("_above", "_chars", "_lenient", "_values", "_what")

    def __init__(self, what: str, *, lenient: bool) -> None:
        self._what = what
        self._lenient = lenient
        self._above: set[int] = set()
        self._values = 0
        self._chars = 0

    def copy(self, value: Any, path: str, depth: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._error(path, f"at most {MAX_VALUES:,} values", "more")
        if isinstance(value, (Mapping, list, tuple)):
            return self._container(value, path, depth)
        if isinstance(value, str):
            return self._text(value, path)
        if value is None or isinstance(value, (bool, int, float)):
            return self._number(value, path)
        if self._lenient:
            return value
        raise self._error(path, "a JSON value", value)

    def _container(self, value: Any, path: str, depth: int) -> Any:
        if depth >= MAX_DEPTH:
            raise self._error(path, f"at most {MAX_DEPTH} levels of nesting", "more")
        if id(value) in self._above:
            raise self._error(path, "a tree", "a value that contains itself")
        self._above.add(id(value))
        try:
            if isinstance(value, Mapping):
                return {self._key(k, path): self.copy(v, _under(path, k), depth + 1) for k, v in value.items()}
            return [self.copy(item, _under(path, i), depth + 1) for i, item in enumerate(value)]
        finally:
            self._above.remove(id(value))

    def _key(self, key: Any, path: str) -> Any:
        if isinstance(key, str):
            return self._text(key, path)
        if self._lenient:
            return key
        raise self._error(path, "keys that are text", key)

    def _text(self, text: str, path: str) -> str:
        self._chars += len(text)
        if self._chars > MAX_CHARS:
            raise self._error(path, f"at most {MAX_CHARS:,} characters", "more")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise self._error(path, "text that UTF-8 can hold", "a lone surrogate") from None
        return text

    def _number(self, value: Any, path: str) -> Any:
        if isinstance(value, float) and not math.isfinite(value) and not self._lenient:
            raise self._error(path, "a finite number", value)
        if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
            raise self._error(path, f"an integer of at most {MAX_INT_BITS} bits", f"{value.bit_length()} bits")
        return value

    def _error(self, path: str, expected: str, got: object) -> InputError:
        where = f"{self._what} at {path[:80] or '<root>'}"
        return InputError(where, expected=expected, got=got if isinstance(got, (str, float)) else _named(got))


def _named(value: object) -> str:
    return f"{type(value).__name__}"


def _under(path: str, key: object) -> str:
    step = key if isinstance(key, str) else str(key) if isinstance(key, int) and abs(key) < 10**9 else "?"
    return f"{path}/{step}" if path else step
