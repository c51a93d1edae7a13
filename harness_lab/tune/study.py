"""The study behind a search: kept in a journal file, resumed from there, stopped without losing finished trials."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_lab.errors import InputError
from harness_lab.tune.knobs import direction, optuna

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

_ASKED: Final = "harness_lab"
"""Attribute of the study in which it is kept what was asked of it."""


class SearchStopped(KeyboardInterrupt):
    """A search was interrupted; the trials that had ended are in it.

    Attributes
    ----------
    trials : DataFrame
        Those that ended, as in :class:`harness_lab.tune.Tuned`.
    wanted : int
        Trials that were asked for.
    storage : str or None
        Where the study is kept: the same call goes on from there. None: it is not kept.
    best : dict of str to float
        Numbers of the best trial that meets the constraints, and its completion and first objective (by metric, in the
        display unit) on the draws of the search, therefore not confirmed; empty if there is none, or there are several
        objectives.
    """

    def __init__(self, trials: pd.DataFrame, wanted: int, storage: str | None, best: dict[str, float]) -> None:
        self.trials, self.wanted, self.storage, self.best = trials, wanted, storage, best
        super().__init__(trials, wanted, storage, best)

    def __str__(self) -> str:
        ended = len(self.trials)
        text = f"stopped with {ended} of {self.wanted} trials ended"
        if ended >= self.wanted:
            text += ", before the finalists were confirmed"
        if self.best:
            figures = ", ".join(f"{name} = {value:.4g}" for name, value in self.best.items())
            text += f". Best of them, not confirmed on fresh draws: {figures}"
        if self.storage is None:
            return (
                f"{text}. They were not kept: with a storage (--storage FILE) the same search goes on where it stopped"
            )
        return f"{text}. They are kept in {self.storage}: the same search goes on from there"


def open_study(
    objectives: tuple[str, ...], *, storage: str | Path | None, name: str, seed: int, asked: dict[str, Any]
) -> Any:
    """Create a study, or open the one that a storage keeps.

    Parameters
    ----------
    objectives : tuple of str
        What is searched for.
    storage : str, path or None
        A journal file, or a database address.
    name : str
        Name of the study in the storage.
    seed : int
        Of the proposals.
    asked : dict
        What the trials depend on (JSON values); a study that was asked something else is not gone on with.

    Raises
    ------
    InputError
        If the storage cannot be opened, or keeps a study of another experiment or question.
    """
    found = optuna()
    expected = "a journal file that a search wrote, a new file in a folder that exists, or a database address"
    try:
        study = found.create_study(
            storage=_place(storage), study_name=name, load_if_exists=storage is not None,
            sampler=found.samplers.TPESampler(seed=seed), directions=[direction(metric) for metric in objectives],
        )  # fmt: skip
    except (OSError, ValueError, LookupError, ImportError) as error:
        raise InputError("storage", expected=expected, got=f"{storage}: {error}") from None
    before = study.user_attrs.get(_ASKED)
    if before is None:
        study.set_user_attr(_ASKED, asked)
    elif before != asked:
        other = ", ".join(sorted(key for key in {*before, *asked} if before.get(key) != asked.get(key)))
        hint = "give another file, or another name"
        raise InputError("storage", expected="a study of this search", got=f"one with another {other}", hint=hint)
    return study


def _place(storage: str | Path | None) -> Any:
    if storage is None or "://" in str(storage):
        return storage
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    _check_journal(Path(storage))
    return JournalStorage(JournalFileBackend(str(storage)))


def _check_journal(file: Path) -> None:
    """Raise if a file is no journal: optuna would write into it before it found out."""
    if not file.exists():
        return
    with file.open("rb") as lines:
        first = lines.readline(100_000)
    if first and not (isinstance(found := json.loads(first), dict) and "op_code" in found):
        raise ValueError("no journal of a search")


def ended(study: Any) -> list[Any]:
    """Return the trials that were finished or stopped early; those that an interruption cut are not among them."""
    states = optuna().trial.TrialState
    return [one for one in study.get_trials(deepcopy=False) if one.state in (states.COMPLETE, states.PRUNED)]


def run_trials(
    study: Any, objective: Callable[[Any], tuple[float, ...]], trials: int,
    progress: Callable[[int, int], None] | None,
) -> None:  # fmt: skip
    """Ask for trials until so many have ended.

    Optuna's own loop is not used: interrupted, it logs a traceback, and at some moments fails on its own account.
    """
    states = optuna().trial.TrialState
    done = len(ended(study))
    while done < trials:
        trial = study.ask()
        try:
            values = objective(trial)
        except optuna().TrialPruned:
            study.tell(trial, state=states.PRUNED)
        except BaseException:
            study.tell(trial, state=states.FAIL)
            raise
        else:
            study.tell(trial, list(values))
        done += 1
        if progress is not None:
            progress(done, trials)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep optuna from logging while it works, and give its level back."""
    level = optuna().logging.get_verbosity()
    optuna().logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        optuna().logging.set_verbosity(level)
