"""What figures rest on, said once below a text instead of after each of them."""

from __future__ import annotations

import re
from typing import Final

_BASIS: Final = re.compile(
    r" \((?P<confidence>[\d.]+ %), n = (?P<n>[\d,]+)(?:, (?P<clusters>[\d,]+) clusters)?"
    r"(?:, effective n (?P<effective>[\d,]+))?, (?P<method>[^()]+)\)"
)
"""What :class:`~harness_lab.stats.estimates.Estimate` writes after its interval."""

_SUPERSCRIPT: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

_Key = tuple[str, str, str | None, str]


def notes_below(text: str) -> str:
    r"""Move what estimates rest on (confidence, n, clusters, method) from behind each of them into notes below.

    Estimates that rest on the same runs and method share a note; their effective n is given as a range. A text with
    fewer than three estimates is returned as it is.

    Examples
    --------
    >>> print(notes_below("0.2 [0.1, 0.3] (95 %, n = 240, Wilson)\n" * 3))
    0.2 [0.1, 0.3] ¹
    0.2 [0.1, 0.3] ¹
    0.2 [0.1, 0.3] ¹
    ¹ 95 %, n = 240, Wilson
    """
    found = list(_BASIS.finditer(text))
    if len(found) < 3:
        return text
    notes: dict[_Key, list[int]] = {}
    for one in found:
        notes.setdefault(_key(one), []).extend(_number(one["effective"]))
    marks = {key: str(number).translate(_SUPERSCRIPT) for number, key in enumerate(notes, start=1)}
    short = _BASIS.sub(lambda one: f" {marks[_key(one)]}", text).rstrip("\n")
    return "\n".join([short, *(f"{marks[key]} {_note(key, effective)}" for key, effective in notes.items())])


def _key(one: re.Match[str]) -> _Key:
    return one["confidence"], one["n"], one["clusters"], one["method"]


def _number(text: str | None) -> list[int]:
    return [] if text is None else [int(text.replace(",", ""))]


def _note(key: _Key, effective: list[int]) -> str:
    confidence, n, clusters, method = key
    parts = [confidence, f"n = {n}"] + ([] if clusters is None else [f"{clusters} clusters"])
    if effective:
        low, high = min(effective), max(effective)
        parts.append(f"effective n {low:,}" + ("" if low == high else f" to {high:,}"))
    return ", ".join([*parts, method])
