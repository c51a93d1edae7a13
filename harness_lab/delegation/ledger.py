"""A spend ledger for delegated nodes: what was charged, whether to warn, whether to stop.

Post-paid, as its pattern is: nothing is held before a call, so one that crosses a limit is recorded in full. What must
not overspend takes the reservation pool or a hard cap instead. Sums are integers: ten charges of 0.1 are 1.0 exactly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness_lab.delegation.charges import Charge
from harness_lab.delegation.errors import ChainBroken
from harness_lab.delegation.journal import AppendFile
from harness_lab.delegation.rules import OURS, DelegationRules
from harness_lab.delegation.verify import parse_line
from harness_lab.errors import InputError
from harness_lab.usage import NUSD_PER_USD, nusd

if TYPE_CHECKING:
    from collections.abc import Sequence

WARN_PERCENT = 80


class Ledger(Protocol):
    """What a dispatch needs of a ledger."""

    def mark(self) -> Any:
        """Return what :meth:`rollback` needs."""

    def charge(self, charges: Sequence[Charge]) -> Sequence[Any]:
        """Record charges, all or none, and return one status for each."""

    def rollback(self, mark: Any) -> None:
        """Take back everything since `mark`."""

    def charged(self) -> set[str]:
        """Return the event hashes of what was charged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStatus:
    """The state of a ledger.

    Parameters
    ----------
    spent_nusd : int
        Known spend, nano-dollars: a lower bound where `unknown` is not 0.
    unknown : int
        Charges whose cost nobody knows.
    soft_limit_nusd, hard_limit_nusd : int or None
        The limits; None: no limit.
    warn, soft_halt, hard_halt : bool
        Whether 80 % of the soft limit, the soft limit, the hard limit is reached.
    """

    spent_nusd: int
    unknown: int
    soft_limit_nusd: int | None
    hard_limit_nusd: int | None
    warn: bool
    soft_halt: bool
    hard_halt: bool

    @property
    def spent_usd(self) -> float:
        """Known spend in dollars, for display."""
        return self.spent_nusd / NUSD_PER_USD

    @property
    def admits(self) -> bool:
        """Whether another call may start: neither limit is reached."""
        return not (self.soft_halt or self.hard_halt)


class SpendLedger:
    """A ledger with a soft and a hard limit, in memory or on a file.

    Parameters
    ----------
    soft_limit_usd, hard_limit_usd : float or None
        Dollars. None: no limit; 0: nothing may be spent (under `zero_limit` = no-limit: 0 or less is no limit).
        A hard limit below the soft one lowers the soft one to it.
    file : path, optional
        Where each charge is kept as a line of JSON; in memory alone if None. A file that has charges is counted on.
    rules : DelegationRules
        The axes `existing_ledger`, `zero_limit`, `reroute…`.
    sync : bool
        Whether each charge waits until the disk has it.

    Raises
    ------
    InputError
        If a limit is no amount.
    ChainBroken
        If the file has a line that is no charge. A torn last line is left for :meth:`repair`.

    Examples
    --------
    >>> tenth = Charge(
    ...     node_name="a", target="claude", model="m", tier="interactive", undiscounted_nusd=10**8, cost_nusd=10**8
    ... )
    >>> status = SpendLedger(soft_limit_usd=1.0).charge([tenth] * 10)[-1]
    >>> status.spent_usd, status.admits
    (1.0, False)
    """

    def __init__(
        self,
        *,
        soft_limit_usd: float | None = None,
        hard_limit_usd: float | None = None,
        file: str | Path | None = None,
        rules: DelegationRules = OURS,
        sync: bool = True,
    ) -> None:
        self.rules = rules
        self._hard = _limit("hard_limit_usd", hard_limit_usd, rules)
        soft = _limit("soft_limit_usd", soft_limit_usd, rules)
        self._soft = soft if soft is None or self._hard is None else min(soft, self._hard)
        self._charges: list[Charge] = []
        self._forgotten: set[str] = set()
        self._torn = False
        self._spent = self._unknown = 0
        self._file = None if file is None else AppendFile(Path(file), sync=sync)
        if self._file is not None:
            self._load(self._file, count=rules.existing_ledger == "remember")

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What was charged, in order."""
        return tuple(self._charges)

    def status(self) -> LedgerStatus:
        """Return the state."""
        spent, soft, hard = self._spent, self._soft, self._hard
        return LedgerStatus(
            spent_nusd=spent, unknown=self._unknown, soft_limit_nusd=soft, hard_limit_nusd=hard,
            warn=soft is not None and spent * 100 >= soft * WARN_PERCENT,
            soft_halt=soft is not None and spent >= soft, hard_halt=hard is not None and spent >= hard,
        )  # fmt: skip

    def admits(self) -> bool:
        """Whether another call may start."""
        return self.status().admits

    def charge(self, charges: Sequence[Charge]) -> list[LedgerStatus]:
        """Record charges, all or none, and return the state after each.

        Raises
        ------
        ChainBroken
            If the file has a torn line, or somebody else has written to it.
        """
        self._check_whole()
        if self._file is not None and charges:
            self._file.append("".join(json.dumps(charge.to_dict()) + "\n" for charge in charges))
        return [self._count(charge) for charge in charges]

    def charged(self) -> set[str]:
        """Return the event hashes of what was charged."""
        return self._forgotten | {charge.event_hash for charge in self._charges if charge.event_hash}

    def cheaper_model(self, model: str) -> str | None:
        """Suggest a cheaper model once the ledger warns; None before, or where the rules name none."""
        if not self.status().warn:
            return None
        name = model.lower()
        for part, cheaper in self.rules.reroute:
            if part in name and (self.rules.reroute_to_itself or cheaper not in name):
                return cheaper
        default = self.rules.reroute_default
        return None if default is None or default in name else default

    def mark(self) -> tuple[int, int, int, int]:
        """Return what :meth:`rollback` needs."""
        self._check_whole()
        size = 0 if self._file is None else self._file.size
        return len(self._charges), self._spent, self._unknown, size

    def rollback(self, mark: tuple[int, int, int, int]) -> None:
        """Take back everything since `mark`."""
        kept, self._spent, self._unknown, size = mark
        del self._charges[kept:]
        if self._file is not None and self._file.size > size:
            self._file.cut(size)

    def repair(self) -> int:
        """Cut a torn last line off, keeping it beside the file; return its bytes."""
        if self._file is None:
            return 0
        tail = self._file.read()[1]
        if tail:
            self._file.cut_torn(tail)
        self._torn = False
        return len(tail)

    def _check_whole(self) -> None:
        if self._torn and self._file is not None:
            raise ChainBroken(
                f"{self._file.path.name}: its last line is torn; repair() or delegation.resume cuts it off"
            )

    def _count(self, charge: Charge) -> LedgerStatus:
        self._charges.append(charge)
        self._spent += charge.cost_nusd or 0
        self._unknown += charge.cost_nusd is None
        return self.status()

    def _load(self, file: AppendFile, *, count: bool) -> None:
        lines, tail = file.read()
        for number, line in enumerate(lines, 1):
            row = parse_line(line)
            try:
                charge = Charge.from_dict(row or {})
            except InputError as error:
                raise ChainBroken(f"{file.path.name}:{number}: not a charge ({error})") from None
            if count:
                self._count(charge)
            else:
                self._forgotten.add(charge.event_hash)
        self._torn = bool(tail)

    def __repr__(self) -> str:
        status = self.status()
        return f"SpendLedger(${status.spent_usd:g} spent, {len(self._charges):,} charges, {status.unknown} unknown)"


def _limit(what: str, usd: float | None, rules: DelegationRules) -> int | None:
    if usd is not None and rules.zero_limit == "no-limit" and usd <= 0:
        return None
    return None if usd is None else nusd(usd, what=what)
