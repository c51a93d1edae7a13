"""One question asked of each group of runs by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import as_names, calls_of, group_codes, label, nodes_of
from harness_lab.analyze.runs import tree_of
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harness_lab.analyze.frames import Data


class _Result(Protocol):
    def to_frame(self) -> pd.DataFrame: ...

    def summary(self) -> str: ...


R = TypeVar("R", bound=_Result)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts(Generic[R]):
    """The answers for each group.

    Parameters
    ----------
    answers : mapping of tuple to result
        The result of each group that has one, by the group's key.
    declined : mapping of tuple to str
        The groups that have none, and why.
    """

    answers: Mapping[tuple[Any, ...], R]
    declined: Mapping[tuple[Any, ...], str]

    def to_frame(self) -> pd.DataFrame:
        """Return the tables of all answers below each other, the group in front."""
        frames = [part.to_frame().assign(group=label(key)) for key, part in self.answers.items()]
        if not frames:
            return pd.DataFrame({"group": pd.Series(dtype="string")})
        whole = pd.concat(frames, ignore_index=True)
        return whole[["group", *whole.columns.drop("group")]]

    def summary(self) -> str:
        """Return the text of each answer below the name of its group, and the groups that have none."""
        lines = [f"{label(key)}:\n{part.summary()}" for key, part in self.answers.items()]
        return "\n".join([*lines, *(f"{label(key)}: no answer ({why})" for key, why in self.declined.items())])


@dataclass(frozen=True, slots=True, eq=False)
class _Tables:
    """The tables of one group."""

    nodes: pd.DataFrame
    calls: pd.DataFrame | None


def ask_by(settlements: Data, by: str | Sequence[str] | None, ask: Callable[[Data], R]) -> Parts[R] | None:
    """Ask each group of runs; None without `by`. A group that cannot answer is declined with its reason.

    What is asked gets the group's nodes, and its call rows beside them where there are any.

    Raises
    ------
    InputError
        If a column of `by` is missing.
    """
    names = as_names(by)
    if not names:
        return None
    answers, declined = {}, {}
    calls = calls_of(settlements)
    for key, rows in _runs_by(nodes_of(settlements), names):
        mine = None if calls is None else calls[calls["run"].isin(rows["run"])].reset_index(drop=True)
        try:
            answers[key] = ask(rows if mine is None else _Tables(rows, mine))
        except InputError as why:
            declined[key] = str(why)
    return Parts(answers=answers, declined=declined)


def _runs_by(nodes: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield the nodes of whole runs; a run belongs to the group of its root."""
    trees = tree_of(nodes)
    group, keys = group_codes(nodes.iloc[trees.root].reset_index(drop=True), names)
    for number, key in enumerate(keys):
        yield key, nodes[np.asarray(group == number)[trees.codes]].reset_index(drop=True)
