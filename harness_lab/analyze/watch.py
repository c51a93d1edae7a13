"""A tuned config against newer records: what still holds, what is stale, and why."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import nodes_of
from harness_lab.analyze.overlap import digest_of, overlap_text, shared_rows
from harness_lab.analyze.parts import Parts, ask_by
from harness_lab.analyze.watch_ceilings import check_ceilings
from harness_lab.analyze.watch_floors import check_floors
from harness_lab.stats.notes import notes_below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from harness_lab.analyze.drift import Drift, Moved
    from harness_lab.analyze.frames import Data
    from harness_lab.analyze.spend import SpendSplit

Status = Literal["holds", "stale", "unknown"]
_NS_PER_DAY: Final = 86_400_000_000_000


class Config(Protocol):
    """A policy with its evidence: :class:`harness_lab.export.TunedConfig`."""

    @property
    def policy(self) -> Any:
        """The policy: modules with their parameters."""
        ...

    @property
    def evidence(self) -> Sequence[Any]:
        """What was promised of each tuned value: ``value`` (module.parameter) and ``target_share``."""
        ...

    @property
    def provenance(self) -> Any:
        """When it was made (``date``) and until when it counts as fresh (``stale_after``)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One assumption of a config.

    Parameters
    ----------
    what : str
        The value or assumption.
    status : {"holds", "stale", "unknown"}
        Unknown: the newer records cannot tell.
    found : str
        What the newer records say, with n and method.
    n : int
        Newer rows that it rests on.
    suggestion : str
        What to do; empty where nothing is to be done.
    """

    what: str
    status: Status
    found: str
    n: int = 0
    suggestion: str = ""

    def __str__(self) -> str:
        ask = "" if self.status == "holds" else self.suggestion
        return f"{self.status.upper()}: {self.what}: {self.found}.{f' {ask[0].upper()}{ask[1:]}.' if ask else ''}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ConfigCheck:
    """What of a config still holds.

    Parameters
    ----------
    checked : tuple of Checked
        Each ceiling, floor and date of the config; and, with a reference, what moved.
    drift : Drift or None
        The newer records against those behind the config; None without these.
    split : SpendSplit or None
        The change of spend; None without reference or where a side does not know its spend.
    rows : int
        Newer nodes.
    parts : Parts or None
        The ceilings and floors held against each group of `by` alone.
    """

    checked: tuple[Checked, ...]
    drift: Drift | None
    split: SpendSplit | None
    rows: int
    parts: Parts[ConfigCheck] | None = None

    @property
    def stale(self) -> tuple[Checked, ...]:
        """What no longer holds."""
        return tuple(one for one in self.checked if one.status == "stale")

    def to_frame(self) -> pd.DataFrame:
        """Return one row per assumption: ``what, status, found, n, suggestion``; the group in front."""
        if self.parts is not None:
            return self.parts.to_frame()
        names = ("what", "status", "found", "n", "suggestion")
        return pd.DataFrame([{name: getattr(one, name) for name in names} for one in self.checked], columns=list(names))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what holds, what is stale and what cannot be told; see :mod:`harness_lab.plots.verdicts`."""
        from harness_lab.plots.verdicts import plot_statuses

        frame = self.to_frame()
        if "group" in frame.columns:
            frame = frame.assign(what=frame["group"] + ": " + frame["what"])
        return plot_statuses(frame, ax=ax)

    def summary(self) -> str:
        """Return the verdict, each assumption, and why spend changed."""
        counts = {word: sum(one.status == word for one in self.checked) for word in ("holds", "stale", "unknown")}
        lines = [
            f"Against {self.rows:,} newer rows: {counts['holds']} hold(s), {counts['stale']} stale, "
            f"{counts['unknown']} cannot be told."
        ]
        order = ("stale", "unknown", "holds")
        lines += [f"- {one}" for one in sorted(self.checked, key=lambda one: order.index(one.status))]
        if self.drift is not None:
            lines += ["", self.drift.text()]
        if self.split is not None:
            lines += ["", self.split.summary()]
        if self.parts is not None:
            lines += ["", "By group:", self.parts.summary()]
        return notes_below("\n".join(lines))

    def explain(self) -> str:
        """Return what the words mean and what to do next."""
        return (
            "A ceiling is stale when the newer runs reject its promise at 1 % (a binomial test, over clusters where "
            "there are any); a floor when a newer eligible settlement of its path lies below it, or its path starts "
            "from another context now; a config when its date has passed. 'Cannot be told' is no all-clear: there are "
            "no newer records of that path, no promise was written down, or the records are not newer.\n"
            "Next: choose the stale values again from the newer records, and export the config anew."
        )

    def __repr__(self) -> str:
        return f"ConfigCheck({len(self.stale)} of {len(self.checked)} stale)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def check_config(
    config: Config, against: Data, *, reference: Data | None = None, now_ns: int | None = None, alpha: float = 0.01,
    by: str | Sequence[str] | None = None, cluster: str | None = "auto",
) -> ConfigCheck:  # fmt: skip
    """Hold a tuned config against newer records.

    Parameters
    ----------
    config : TunedConfig
        The policy, its evidence and where it came from.
    against : Settlements or DataFrame
        Newer nodes.
    reference : Settlements or DataFrame, optional
        The records behind the config: what moved, and the split of a change of spend, need them.
    now_ns : int, optional
        The instant that dates refer to, epoch nanoseconds; None: dates are not checked.
    alpha : float, default 0.01
        Error rate at which a promise is called broken, and of all tests for drift together.
    by : str or sequence of str, optional
        Columns whose groups the ceilings and floors are held against one by one, in ``parts``: a promise that holds for
        all may be broken for one of them. Each group is tested at `alpha`.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    ConfigCheck
    """
    from harness_lab.analyze.drift import drift
    from harness_lab.analyze.spend import spend_split
    from harness_lab.errors import InputError

    nodes = nodes_of(against)
    checked = [*_dates(config.provenance, now_ns), *_newer(config.provenance, against, reference)]
    checked += [Checked(**one) for one in check_ceilings(config, nodes, alpha=alpha, cluster=cluster)]
    checked += [Checked(**one) for one in check_floors(config.policy, nodes, now_ns=now_ns, reference=reference)]
    moved, split = None, None
    if reference is not None:
        moved = drift(reference, against, confidence=1 - alpha, cluster=cluster)
        checked += [_assumption(one, alpha) for one in moved.moves]
        try:
            split = spend_split(reference, against, cluster=cluster)
        except InputError:
            split = None
    parts = ask_by(against, by, lambda rows: _of_group(config, nodes_of(rows), now_ns, alpha, cluster))
    return ConfigCheck(checked=tuple(checked), drift=moved, split=split, rows=len(nodes), parts=parts)


def _of_group(
    config: Config, nodes: pd.DataFrame, now_ns: int | None, alpha: float, cluster: str | None
) -> ConfigCheck:
    """Hold ceilings and floors against the rows of one group."""
    found = [Checked(**one) for one in check_ceilings(config, nodes, alpha=alpha, cluster=cluster)]
    found += [Checked(**one) for one in check_floors(config.policy, nodes, now_ns=now_ns, reference=None)]
    return ConfigCheck(checked=tuple(found), drift=None, split=None, rows=len(nodes))


def _assumption(one: Moved, alpha: float) -> Checked:
    moved = one.moved(1 - alpha)
    status: Status = "unknown" if moved is None else "stale" if moved else "holds"
    what = f"{one.column}, against the records behind the config"
    found = str(one).removeprefix(f"{one.column}: ")
    return Checked(
        what=what, status=status, found=found, n=one.found.n_new, suggestion="choose again from newer records"
    )


def _newer(provenance: Any, against: Data, reference: Data | None) -> list[Checked]:
    """Say where the newer records are the ones that the config was made from: they cannot speak against it."""
    n = len(nodes_of(against))
    what, ask = "the records are newer than those behind the config", "give records from after the config was made"
    if getattr(provenance, "data_sha256", None) == digest_of(against):
        found = "they are the very records that the config was made from, which cannot speak against it"
        return [Checked(what=what, status="unknown", found=found, n=n, suggestion=ask)]
    found = "" if reference is None else overlap_text(shared_rows(reference, against), n)
    return [Checked(what=what, status="unknown", found=found.rstrip("."), n=n, suggestion=ask)] if found else []


def _dates(provenance: Any, now_ns: int | None) -> list[Checked]:
    stated = getattr(provenance, "stale_after", None)
    what = "age of the config"
    if stated is None or now_ns is None:
        why = "no date after which it is stale is stated" if stated is None else "the present date was not given"
        return [Checked(what=what, status="unknown", found=f"made {provenance.date}; {why}")]
    after = int(np.datetime64(stated, "ns").astype(np.int64)) + _NS_PER_DAY
    found = f"made {provenance.date}, to be looked at again after {stated}"
    status: Status = "stale" if now_ns >= after else "holds"
    return [Checked(what=what, status=status, found=found, suggestion="tune it again on newer records")]
