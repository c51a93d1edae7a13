"""Canonical JSON as RFC 8785 says: the bytes that digests and signatures of configs are made over.

Two configs that are equal as data give the same bytes, whatever wrote them: keys in the order of their UTF-16 code
units, no blanks, numbers in ECMAScript's shortest form (``1.0`` is ``1``). Integers beyond 2**53 lie outside what the
RFC covers; they are written in full, so that nothing is rounded.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from decimal import Decimal
from typing import Any

from harness_lab.delegation import canonical_json
from harness_lab.errors import InputError

MIN_KEY_BYTES = 16
"""A shorter key could be guessed."""


def canonical(value: Any) -> str:
    """Return the canonical JSON text of a value.

    Parameters
    ----------
    value : JSON value
        Mappings with text keys, lists, text, numbers, booleans, None.

    Raises
    ------
    InputError
        If it is no JSON value, holds NaN, an infinity or a lone surrogate, or is too deep.

    Examples
    --------
    >>> canonical({"b": 1.0, "a": [1e21, 1e-7, 0.000001, -0.0, 2**60]})
    '{"a":[1e+21,1e-7,0.000001,0,1152921504606846976],"b":1}'
    """
    return _text(json.loads(canonical_json(value)))


def digest(value: Any) -> str:
    """Return the hex SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def signature(value: Any, key: bytes) -> str:
    """Return the hex HMAC-SHA-256 of the canonical JSON under `key`.

    Raises
    ------
    InputError
        If the key has fewer than 16 bytes.
    """
    if len(key) < MIN_KEY_BYTES:
        raise InputError("key", expected=f"at least {MIN_KEY_BYTES} bytes", got=f"{len(key)} bytes")
    return hmac.new(key, canonical(value).encode(), hashlib.sha256).hexdigest()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_text(key)}:{_text(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, float):
        return number_text(value)
    return json.dumps(value, ensure_ascii=False)


def number_text(value: float) -> str:
    """Write a finite float as ECMAScript does (ECMA-262, Number::toString).

    Examples
    --------
    >>> number_text(0.82), number_text(5e-324), number_text(123456789012345680000.0)
    ('0.82', '5e-324', '123456789012345680000')
    """
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    shown, minus = "".join(map(str, digits)), "-" if sign else ""
    k, n = len(shown), len(shown) + int(exponent)
    if k <= n <= 21:
        return minus + shown + "0" * (n - k)
    if 0 < n <= 21:
        return f"{minus}{shown[:n]}.{shown[n:]}"
    if -6 < n <= 0:
        return f"{minus}0.{'0' * -n}{shown}"
    fraction = f".{shown[1:]}" if k > 1 else ""
    return f"{minus}{shown[0]}{fraction}e{'+' if n > 0 else '-'}{abs(n - 1)}"
