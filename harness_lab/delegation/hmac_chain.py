"""The audit chain's arithmetic: keys, HMACs, and what a line must be. Pure; files are elsewhere.

Each entry's HMAC-SHA256 covers a domain prefix, the HMAC of the entry before and the entry as JSON with sorted keys and
Python's default separators, ASCII-escaped (a third form beside those of nodes and of journal rows). Scheme 2 derives
its key from the master key and has a prefix; scheme 1, the legacy, has neither, and its entries name no scheme.

References
----------
.. [1] H. Krawczyk, M. Bellare, R. Canetti, "HMAC", RFC 2104, https://doi.org/10.17487/RFC2104
.. [2] H. Krawczyk, P. Eronen, "HKDF", RFC 5869, https://doi.org/10.17487/RFC5869
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from harness_lab.delegation.verify import parse_line
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

GENESIS_HMAC = "0" * 64
SCHEME = 2
LEGACY_SCHEME = 1
DOMAIN_PREFIX = "bernstein:audit:v2"
MIN_KEY_BYTES = 16


def check_key(key: object) -> bytes:
    """Return a master key; the key itself is never shown.

    Raises
    ------
    InputError
        If it is no bytes or shorter than 16.
    """
    if not isinstance(key, bytes) or len(key) < MIN_KEY_BYTES:
        got = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
        raise InputError("audit key", expected=f"at least {MIN_KEY_BYTES} bytes", got=got)
    return key


def hkdf(master: bytes, *, info: bytes, length: int = 32) -> bytes:
    """Derive a key: HKDF-SHA256 without salt.

    Examples
    --------
    >>> hkdf(b"k" * 32, info=b"audit").hex()[:16]
    '607d3edaaf7c393a'
    """
    extracted = hmac.digest(b"\0" * 32, master, "sha256")
    block, out = b"", b""
    for counter in range(1, -(-length // 32) + 1):
        block = hmac.digest(extracted, block + info + bytes([counter]), "sha256")
        out += block
    return out[:length]


class ChainKey:
    """A master key and what is derived from it; its text shows neither.

    Parameters
    ----------
    master : bytes
        At least 16.
    """

    __slots__ = ("_derived", "_master")

    def __init__(self, master: bytes) -> None:
        self._master = check_key(master)
        self._derived = hkdf(master, info=b"audit")

    def entry_hmac(self, entry: Mapping[str, Any]) -> str | None:
        """Return the HMAC that an entry must have, in hex; None if its scheme is not known.

        Parameters
        ----------
        entry : mapping
            With `prev_hmac`; `hmac` is left out.
        """
        scheme = entry.get("scheme", LEGACY_SCHEME if "scheme" not in entry else None)
        if isinstance(scheme, bool) or scheme not in (SCHEME, LEGACY_SCHEME):
            return None
        key, prefix = (self._derived, DOMAIN_PREFIX) if scheme == SCHEME else (self._master, "")
        body = json.dumps({name: value for name, value in entry.items() if name != "hmac"}, sort_keys=True)
        return hmac.digest(key, f"{prefix}{entry['prev_hmac']}{body}".encode(), hashlib.sha256).hex()

    def sign(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry with its HMAC."""
        return {**entry, "hmac": self.entry_hmac(entry)}

    def entry_error(self, line: bytes, prev_hmac: str | None) -> str:
        """Return what is wrong with a line of the log, empty if nothing is.

        Parameters
        ----------
        line : bytes
            Without its newline.
        prev_hmac : str or None
            HMAC of the entry before; None: not known, and not checked.
        """
        entry = parse_line(line)
        if entry is None or not isinstance(entry.get("hmac"), str) or not isinstance(entry.get("prev_hmac"), str):
            return "not an audit entry"
        if prev_hmac is not None and entry["prev_hmac"] != prev_hmac:
            return f"prev_hmac break (expected {prev_hmac[:16]}..., got {entry['prev_hmac'][:16]!r}...)"
        expected = self._expected(entry)
        if expected is None:
            return f"scheme {entry.get('scheme')!r:.40} is not known here"
        if not hmac.compare_digest(expected.encode(), entry["hmac"].encode("utf-8", "replace")):
            return f"HMAC mismatch (expected {expected[:16]}..., got {entry['hmac'][:16]!r}...)"
        return "" if entry_line(entry).encode() == line + b"\n" else "not in the form in which entries are written"

    def _expected(self, entry: Mapping[str, Any]) -> str | None:
        try:
            return self.entry_hmac(entry)
        except (ValueError, RecursionError):  # text or numbers that JSON cannot write again
            return "unwritable"

    def __repr__(self) -> str:
        return "ChainKey(...)"


def entry_line(entry: Mapping[str, Any]) -> str:
    """Return an entry as it is written, with its newline."""
    return json.dumps(entry, sort_keys=True) + "\n"
