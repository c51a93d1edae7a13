"""After a kill: bring ledger and audit log up to what the journal has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.delegation.charges import Charge
from harness_lab.delegation.errors import ChainBroken, UnfinishedDispatch
from harness_lab.delegation.events import row_line
from harness_lab.delegation.journal import INTENT_FILENAME, AppendFile, Intent, RunJournal, journal_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness_lab.delegation.audit import AuditChainStore
    from harness_lab.delegation.dispatch import ChargeFunction
    from harness_lab.delegation.ledger import Ledger

_FIELDS = {"base", "rows", "charges", "entries"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A journal that can go on, and what was done for it.

    Parameters
    ----------
    journal : RunJournal
        The journal.
    undone : int
        Rows of a plan that had not been written whole and were taken back.
    charged, audited : int
        Charges and audit entries that were brought up.
    torn_bytes : int
        Bytes of torn lines that were cut off journal, ledger and audit log; they are kept beside them.
    """

    journal: RunJournal
    undone: int = 0
    charged: int = 0
    audited: int = 0
    torn_bytes: int = 0

    def summary(self) -> str:
        """Return what was done, in one line."""
        return (
            f"run {self.journal.run_id}: {self.journal.event_count():,} rows; {self.undone} taken back, "
            f"{self.charged} charged and {self.audited} audited now, {self.torn_bytes} torn bytes cut off"
        )


def resume(
    run_id: str,
    root: str | Path,
    *,
    ledger: Ledger | ChargeFunction | None = None,
    chain: AuditChainStore | None = None,
    **options: Any,
) -> Resumed:
    """Continue a run that was killed; one that was not, or that does not exist, is continued unchanged.

    The journal decides. If it has all rows of the dispatch that was under way, ledger and audit log get what they lack
    of it; if not, what it has of them is taken back and nothing has happened. Doing it twice changes nothing.

    Parameters
    ----------
    run_id, root
        As for :class:`RunJournal`.
    ledger : Ledger or callable, optional
        The ledger. A function is told the charges again, since nobody knows whether it was told: it tells repeated
        ones by their `event_hash`.
    chain : AuditChainStore, optional
        The audit log.
    **options
        As for :class:`RunJournal`.

    Raises
    ------
    ChainBroken
        If journal or audit log cannot be continued.
    UnfinishedDispatch
        If the ledger or audit log that the interrupted dispatch had is not given.
    """
    torn = sum(repair() for sink in (ledger, chain) if (repair := getattr(sink, "repair", None)) is not None)
    path = journal_path(root, run_id)
    intent = Intent(path.with_name(INTENT_FILENAME), sync=options.get("sync", True))
    content = intent.read()
    if content is not None and _FIELDS - set(content):
        raise ChainBroken(f"{intent.path.name} is not what a dispatch leaves; look at it and remove it by hand")
    undone = 0 if content is None else _take_back(AppendFile(path), content)
    before = AppendFile(path).size
    journal = RunJournal.resume(run_id, root, **options)
    torn += before - journal.file.size
    charged = audited = 0
    if content is not None and not undone and journal.file.size > content["base"]:
        charged = _bring_up_ledger(content["charges"], ledger)
        audited = _bring_up_chain(content["entries"], chain)
    intent.clear()
    return Resumed(journal=journal, undone=undone, charged=charged, audited=audited, torn_bytes=torn)


def _take_back(file: AppendFile, content: dict[str, Any]) -> int:
    """Take back the rows of a dispatch that the journal does not have whole; return how many there were."""
    data = file.path.read_bytes() if file.path.exists() else b""
    wanted = "".join(map(row_line, content["rows"])).encode()
    found = data[content["base"] :]
    if len(data) < content["base"] or not (found.startswith(wanted) or wanted.startswith(found)):
        raise ChainBroken(f"{file.path.name} is not what the interrupted dispatch left; verify it before going on")
    if found.startswith(wanted) or not found:
        return 0
    file.cut(content["base"])
    return found.count(b"\n") + (not found.endswith(b"\n"))


def _bring_up_ledger(charges: list[dict[str, Any]] | None, ledger: Any) -> int:
    if charges is None:
        return 0
    if ledger is None:
        raise UnfinishedDispatch("the interrupted dispatch charged a ledger: give it to resume")
    known = ledger.charged() if hasattr(ledger, "charged") else set()
    missing = [charge for charge in map(Charge.from_dict, charges) if charge.event_hash not in known]
    if missing:
        (ledger.charge if hasattr(ledger, "charge") else ledger)(missing)
    return len(missing)


def _bring_up_chain(entries: list[dict[str, Any]] | None, chain: AuditChainStore | None) -> int:
    if entries is None:
        return 0
    if chain is None:
        raise UnfinishedDispatch("the interrupted dispatch had an audit log: give it to resume")
    with chain.exclusive():
        known = {_place(entry) for entry in chain.entries()}
        missing = [entry for entry in entries if _place(entry) not in known]
        chain.append(missing, embed=True)
    return len(missing)


def _place(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what names the journal row that an entry belongs to."""
    details = entry.get("details", {})
    return entry.get("event_type"), details.get("run_id"), details.get("journal_event_hash")
