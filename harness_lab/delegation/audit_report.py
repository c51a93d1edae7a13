"""What verifying an audit log says, and whether it has what a journal has. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.delegation.events import DELEGATION_EVENT, delegation_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SAME = ("node_name", "target", "node_hash", "result_content_hash", "tier")
_SHARED = (*((name, name) for name in _SAME), ("journal_index", "index"))
"""What an entry's details and a journal row both say, under their names here and there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditVerdict:
    """The verdict on an audit log.

    Parameters
    ----------
    files, entries : int
        Daily files and lines that were read.
    legacy : int
        Entries of the legacy scheme among them.
    head : str
        HMAC of the last entry.
    errors : tuple of str
        ``<file>:<line>: what is wrong``, in order.
    """

    files: int
    entries: int
    legacy: int
    head: str
    errors: tuple[str, ...] = ()

    @property
    def intact(self) -> bool:
        """Whether every entry follows from the one before and was made with this key."""
        return not self.errors

    def summary(self) -> str:
        """Return the verdict in a few lines."""
        old = f", {self.legacy:,} of the legacy scheme" if self.legacy else ""
        first = f"{self.entries:,} entries in {self.files:,} files{old}: {'intact' if self.intact else 'broken'}"
        return "\n".join([first, *self.errors[:20]])

    def explain(self) -> str:
        """Return what the verdict means, what it does not, and a next step."""
        if not self.intact:
            return f"The log first breaks at {self.errors[0]}. What lies before it was written with this key."
        return (
            "Every entry was written with this key and follows from the one before. Nobody can see from the log alone "
            "whether entries are missing at the end. Next: hold it against the run journal."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        return {**asdict(self), "intact": self.intact}


def missing_entries(
    rows: Sequence[Mapping[str, Any]], entries: Sequence[Mapping[str, Any]], *, run_id: str
) -> list[str]:
    """Return what a journal and an audit log disagree on, empty if they tell the same story.

    Parameters
    ----------
    rows : sequence of mapping
        The journal's rows.
    entries : sequence of mapping
        The log's entries, of this run and of others.
    run_id : str
        The run.
    """
    all_details = [entry.get("details") for entry in entries if entry.get("event_type") == DELEGATION_EVENT]
    own = [details for details in all_details if isinstance(details, dict) and details.get("run_id") == run_id]
    told = {str(details.get("journal_event_hash")): details for details in own}
    problems = []
    for row in delegation_rows(rows):
        details = told.pop(str(row.get("event_hash")), None)
        node, step = repr(row.get("node_name")), f"step {row.get('index')}"
        if details is None:
            problems.append(f"{step}: {node} is in the journal and not in the audit log")
        elif any(details.get(theirs) != row.get(ours) for theirs, ours in _SHARED):
            problems.append(f"{step}: journal and audit log disagree on {node}")
    problems += [
        f"{details.get('node_name')!r} is in the audit log and not in the journal" for details in told.values()
    ]
    return problems
