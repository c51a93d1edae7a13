"""Files, damaged as disks, half-finished writes and strangers' programs damage them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

VALUES = [b"NaN", b"-1", b"9" * 400, b"1e999", b"18446744073709551616", b"4611686018427387905", b"9007199254740993"]
VALUES += [b"null", b"true", b"2.5", b"-0.0", b"0", b'"x"', b'""', b'"9e9"', b'"\\ud800"', b"{}", b"[]"]
"""What may stand in the place of another value; a line of JSON stays one."""

EVIL = [*VALUES, b'"', b"\x00", b"\xff\xfe", b"{", b"}", b"}" * 3, b"[" * 2_000, b'{"a":' * 1_500, b"\n", b","]
EVIL += [b"\xed\xa0\x80", b"A" * 70_000, "\u202e\u0000é".encode("utf-16")]
"""What may stand anywhere."""


def damaged(content: bytes, rng: random.Random, *, exchange: bool = True, evil: Sequence[bytes] = EVIL) -> bytes:
    """Return `content` cut, spliced, overwritten, or with one of its values exchanged, at one to four places."""
    for _ in range(rng.randint(1, 4)):
        at, to = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        kind = rng.randrange(6)
        if kind == 0:
            content = content[:to]
        elif kind == 1:
            content = content[:at] + content[min(to, at + 30) :]
        elif kind == 2 or not exchange:
            content = content[:at] + rng.choice(evil) + content[at + rng.randrange(4) :]
        else:
            content = exchanged(content, at, rng)
        content = content or b"x"
    return content


def exchanged(content: bytes, at: int, rng: random.Random) -> bytes:
    """Put another value in place of the next one after a colon, so that what was JSON is JSON of a wrong type."""
    colon = content.find(b":", at)
    ends = [place for mark in (b",", b"}", b"]") if (place := content.find(mark, colon + 1)) > 0]
    return content if colon < 0 or not ends else content[: colon + 1] + rng.choice(VALUES) + content[min(ends) :]
