"""Bernstein's spend ledger: what was spent is looked at before a call and added to after it."""

from __future__ import annotations

import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.elsewhere import Remote, there
from harness_lab.adapters.protocol import Adapter, No
from harness_lab.adapters.watched import note, watched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.adapters.protocol import Call, Child, Used

_MODULE = "bernstein.core.cost.spend_ledger"
_NEEDS = f"from {_MODULE} import CallTags, SpendLedger"


class Bernstein(Adapter):
    """One ledger for the run; a cap of 0 is no cap, and a cost that is not known is none.

    It needs Python 3.12. Where this one is older, ``HARNESS_LAB_BERNSTEIN_PYTHON`` names an interpreter that has it,
    and the ledger lives there. Its advice to take a cheaper model from 80 % on is not followed.
    """

    name = "bernstein"
    package = "bernstein"
    requires = "bernstein>=3.23"
    elsewhere = "HARNESS_LAB_BERNSTEIN_PYTHON"
    knobs: ClassVar[Mapping[str, str]] = {
        "cost_usd": "budget_usd: dollars of calls that were recorded, of the whole run; 0 is no limit"
    }

    def __init__(self, *, cost_usd: float | None = None) -> None:
        cap = {} if cost_usd is None else {"budget_usd": cost_usd}
        self._file = Path(_folder().name) / f"{id(self)}.jsonl"
        self._made = (_made("CallTags"), _made("SpendLedger", path=self._file, **cap))
        tags, ledger = self._made
        told = "".join(f", {name}={value!r}" for name, value in cap.items())
        note("from pathlib import Path")
        note("from tempfile import mkdtemp")
        made = f"SpendLedger(path=Path(mkdtemp(), 'ledger.jsonl'){told})"
        self._tags = watched(tags, "tags", made="CallTags()", needs=_NEEDS)
        self.ledger: Any = watched(ledger, "ledger", made=made, needs=_NEEDS)

    def before_call(self, call: Call) -> No | None:
        """Look."""
        return None if self.ledger.admits() else No("the ledger's cap is reached", "cost_usd")

    def after_call(self, call: Call, used: Used) -> None:
        """Add, whatever came of it."""
        self.ledger.record(tags=self._tags, model="m", cost_usd=used.cost_usd or 0.0)

    def child(self, child: Child) -> Bernstein | No:
        """Start no agent once the cap is reached."""
        return self if self.ledger.admits() else No("the ledger's cap is reached", "cost_usd")

    def end(self) -> None:
        """Let the ledger go, with its file."""
        for one in self._made:
            if isinstance(one, Remote):
                one.drop()
        self._file.unlink(missing_ok=True)


def _made(name: str, **named: Any) -> Any:
    """Make an object of the package, here or in the Python that is named."""
    where = there(Bernstein.elsewhere)
    if where is not None:
        return where.make(f"{_MODULE}:{name}", **named)
    return getattr(import_module(_MODULE), name)(**named)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="harness-lab-bernstein-")


ADAPTER = Bernstein
