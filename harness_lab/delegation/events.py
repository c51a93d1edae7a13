"""The run journal as a hash chain: the rows, their hashes, and what verifying them says. Pure; files are elsewhere.

A row's payload hash covers the event's name and every key that is not part of the envelope; its event hash covers the
payload hash, the event, the index and the row before. Both are hex SHA-256 over JSON with sorted keys and no blanks,
**ASCII-escaped** (node hashes keep non-ASCII literal: two forms, kept apart). Time is outside the chain.

References
----------
.. [1] S. Haber, W. S. Stornetta, "How to time-stamp a digital document", Journal of Cryptology 3 (1991) 99-111,
       https://doi.org/10.1007/BF00196791
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.delegation.errors import JournalPathError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DELEGATION_EVENT = "subagent.delegation"
ENVELOPE = frozenset({"ts", "elapsed_s", "index", "prev_hash", "payload_hash", "event_hash"})
"""Keys of a row that its payload hash leaves out; the last four are checked on their own."""
UNAUTHENTICATED = ("elapsed_s", "ts")
"""Keys that the chain does not protect. A seal does."""
GENESIS = ""
PROFILES = ("py-json-v1",)
"""Hash profiles that are understood; rows without one have the first."""
_RUN_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Identity = Literal["verified", "mismatched", "unverifiable"]


def check_run_id(run_id: object) -> str:
    """Return a run id that may become part of a path.

    Raises
    ------
    JournalPathError
        If it is anything but 1 to 64 of letters, digits, ``_``, ``.``, ``-``, or if it is ``.`` or ``..``.
    """
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id) or run_id in (".", ".."):
        raise JournalPathError(f"run id: expected 1 to 64 of A-Z a-z 0-9 _ . -, and not . or .., got {run_id!r:.100}")
    return run_id


def payload_hash(event: str, payload: Mapping[str, Any]) -> str:
    """Return the hash of an event's name and payload; envelope keys are left out."""
    kept = {key: value for key, value in payload.items() if key not in ENVELOPE}
    return _digest({**kept, "event": event})


def event_hash(*, prev_hash: str, event: str, payload_hash: str, index: int) -> str:
    """Return the hash that chains a row to the one before.

    Examples
    --------
    >>> event_hash(
    ...     prev_hash="", event="task_claimed", payload_hash=payload_hash("task_claimed", {"task_id": "t1"}), index=0
    ... )
    'c430a2a90ddedee6a5c8a377f5cbf2d9d4351b06e0a7c188b9e5a64b7c895215'
    """
    return _digest({"event_type": event, "index": index, "payload_hash": payload_hash, "prev_hash": prev_hash})


def make_row(
    event: str, payload: Mapping[str, Any], *, index: int, prev_hash: str, ts: float, elapsed_s: float
) -> dict[str, Any]:
    """Return the row of an event, envelope first."""
    inner = payload_hash(event, payload)
    outer = event_hash(prev_hash=prev_hash, event=event, payload_hash=inner, index=index)
    envelope = {"ts": ts, "elapsed_s": elapsed_s, "index": index, "event": event}
    return {**envelope, "prev_hash": prev_hash, "payload_hash": inner, "event_hash": outer, **payload}


def row_line(row: Mapping[str, Any]) -> str:
    """Return a row as it is written, with its newline."""
    return json.dumps(row) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What identifies a whole journal, kept apart from it.

    Parameters
    ----------
    head : str
        Event hash of the last row, empty for none.
    count : int
        Rows.
    sha256 : str or None
        Hex SHA-256 of the file's bytes. With it a seal finds any change, one of time included; None: not known.
    """

    head: str
    count: int
    sha256: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the seal as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalVerdict:
    """Three verdicts on a journal, kept apart because none implies another.

    Parameters
    ----------
    chain_consistent : bool
        Whether the rows follow from the beginning. A journal whose end was cut off is consistent.
    coverage : {"complete", "partial"}
        Whether every line was a row in the form in which rows are written.
    identity : {"verified", "mismatched", "unverifiable"}
        Whether it is the journal that was sealed; unverifiable without a seal.
    count : int
        Rows that were read.
    head : str
        Event hash of the last row that follows.
    divergent_index : int or None
        The first row that does not follow, from 0.
    first_bad_line : int or None
        The first line of the file at which anything is wrong, from 1.
    errors : tuple of str
        What is wrong, in order.
    torn_bytes : int
        Bytes behind the last newline: an append that was interrupted.
    """

    chain_consistent: bool
    coverage: Literal["complete", "partial"]
    identity: Identity
    count: int
    head: str
    divergent_index: int | None = None
    first_bad_line: int | None = None
    errors: tuple[str, ...] = ()
    torn_bytes: int = 0

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong; an unverifiable identity is not wrong."""
        return self.chain_consistent and self.coverage == "complete" and self.identity != "mismatched"

    def summary(self) -> str:
        """Return the verdicts in a few lines."""
        lines = [
            f"{self.count:,} rows, head {self.head[:16] or 'none'}",
            f"chain: {'consistent' if self.chain_consistent else 'broken'}; coverage: {self.coverage}; "
            f"identity: {self.identity}",
            *self.errors,
        ]
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the verdicts mean, what they do not, and a next step."""
        if self.first_bad_line is not None:
            return f"The journal cannot be relied on from line {self.first_bad_line} on; what lies before it follows."
        if self.identity == "verified":
            return "These are the very bytes that were sealed."
        return (
            "The rows follow from the beginning. Without a seal nobody can see whether rows are missing at the end, "
            f"and {' and '.join(UNAUTHENTICATED)} may have been changed. Next: seal a journal when its run ends."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts as JSON values."""
        return {**asdict(self), "intact": self.intact, "unauthenticated_fields": list(UNAUTHENTICATED)}


def verify_rows(rows: Iterable[Mapping[str, Any]]) -> JournalVerdict:
    """Verify rows that are at hand, without a file.

    Parameters
    ----------
    rows : iterable of mapping
        In order.
    """
    head, count = GENESIS, 0
    for count, row in enumerate(rows, 1):
        wrong = row_error(row, index=count - 1, prev_hash=head)
        if wrong:
            return JournalVerdict(
                chain_consistent=False, coverage="complete", identity="unverifiable", count=count, head=head,
                divergent_index=count - 1, first_bad_line=count, errors=(wrong,),
            )  # fmt: skip
        head = row["event_hash"]
    return JournalVerdict(chain_consistent=True, coverage="complete", identity="unverifiable", count=count, head=head)


def row_error(row: Mapping[str, Any], *, index: int, prev_hash: str) -> str:
    """Return what is wrong with a row in its place, empty if nothing is."""
    if row.get("hash_profile", PROFILES[0]) not in PROFILES:
        return f"step {index}: hash profile {row['hash_profile']!r:.60} is not known here"
    if row.get("prev_hash") != prev_hash:
        return f"step {index}: prev_hash break"
    event = row.get("event")
    inner = payload_hash(event, row) if isinstance(event, str) else ""
    outer = event_hash(prev_hash=prev_hash, event=str(event), payload_hash=inner, index=index)
    if row.get("event_hash") != outer:
        return f"step {index}: event_hash mismatch"
    if row.get("payload_hash") != inner:
        return f"step {index}: payload_hash mismatch"
    position = row.get("index")
    if position != index or isinstance(position, (bool, float)):
        return f"step {index}: the row says that it is step {position!r:.40}"
    return ""


def identity(seal: Seal | None, *, head: str, count: int, sha256: str) -> Identity:
    """Return whether a journal is the one that was sealed."""
    if seal is None:
        return "unverifiable"
    same = seal.head == head and seal.count == count and seal.sha256 in (None, sha256)
    return "verified" if same else "mismatched"


def delegation_rows(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows that record a delegation."""
    return [row for row in rows if row.get("event") == DELEGATION_EVENT]


def _digest(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
