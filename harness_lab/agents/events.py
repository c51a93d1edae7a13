"""Events of a run, for whoever watches; names and figures only, never arguments or texts of a conversation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness_lab.agents.stops import is_stop

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run has begun. `at` is UTC, ISO 8601; `depth` is 0 for a root.

    Parameters
    ----------
    run_id, root_run_id : str
        This run, and the run at the top of its tree.
    session_key : str
        Address of its session.
    mode, provider, model : str
        What it runs on.
    depth : int
        0 for a root.
    at : str
        UTC, ISO 8601.
    """

    name: ClassVar[str] = "run.started"
    run_id: str
    session_key: str
    mode: str
    provider: str
    model: str
    root_run_id: str
    depth: int
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A run has ended of itself or at a limit.

    `steps` and `cost_usd` are the run's own, `tree_steps` and `tree_cost_usd` the whole tree's so far; a cost is None
    once anything in it reported none. `tool_calls` are names, in order. `warnings` came with the grants of its start (a
    floor, say, whose evidence is stale) and of its last call.

    Parameters
    ----------
    run_id, session_key : str
        Which run, in which session.
    finish_reason : str
        The provider's reason, or ours.
    stopped_because : str or None
        Which limit cut it off, with its figures; None: none did.
    tool_calls : tuple of str
        Names, in order.
    steps, tree_steps : int
        Model calls of the run and of the whole tree so far.
    cost_usd, tree_cost_usd : float or None
        Dollars; None once anything in it reported none.
    at : str
        UTC, ISO 8601.
    warnings : tuple of str
        Of the grants of its start and of its last call.
    """

    name: ClassVar[str] = "run.finished"
    run_id: str
    session_key: str
    finish_reason: str
    stopped_because: str | None
    tool_calls: tuple[str, ...]
    steps: int
    cost_usd: float | None
    tree_steps: int
    tree_cost_usd: float | None
    at: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed:
    """A run has failed. `failure` is a code or a class: an error's text may hold words of the model.

    Parameters
    ----------
    run_id, session_key : str
        Which run, in which session.
    failure : str
        The error's code or class; the code of the limit whose account could not be asked.
    steps, tree_steps : int
        Model calls of the run and of the whole tree so far.
    at : str
        UTC, ISO 8601.
    warnings : tuple of str
        Of the grants of its start and of its last call.
    """

    name: ClassVar[str] = "run.failed"
    run_id: str
    session_key: str
    failure: str
    steps: int
    tree_steps: int
    at: str
    warnings: tuple[str, ...] = ()


Event = RunStarted | RunFinished | RunFailed


class Events:
    """Hands events to listeners.

    Examples
    --------
    >>> seen = []
    >>> events = Events().listen(seen.append)
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[Event], object]] = []

    def listen(self, listener: Callable[[Event], object]) -> Events:
        """Add a listener."""
        self._listeners.append(listener)
        return self

    def emit(self, event: Event) -> None:
        """Tell every listener; one that raises is warned about and ignored, so that watching cannot fail a run."""
        for listener in self._listeners:
            try:
                listener(event)
            except BaseException as error:
                if is_stop(error):
                    raise
                warnings.warn(f"a listener of {event.name} raised {error!r}", RuntimeWarning, stacklevel=2)
