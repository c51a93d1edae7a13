"""The small ``journal.json`` that a benchmark harness leaves beside an agent's output: status, time, time budget.

It says what the agent's own output cannot: how the harness saw the run end, and the time limit that was in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from harness_lab.outcome import Code, Outcome
from harness_lab.settlements.convert import Unfit, span
from harness_lab.settlements.readers.ends import COMPLETED, FAILED, OPEN, End
from harness_lab.settlements.readers.values import inside, short_name

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.settlements.readers.base import Record

_NAME: Final = "journal.json"
_MOST: Final = 2**20
_SECONDS: Final = 60


def journal(path: Path, *, part: str) -> dict[str, Any]:
    """Return what the journal beside a file says of one agent; empty where there is none.

    Parameters
    ----------
    path : Path
        The agent's output.
    part : str
        The journal's key for the agent, such as ``"codex_cli"``.

    Returns
    -------
    dict
        ``status``, ``returncode``, ``duration_s``, ``time_budget_minutes``, where they are there.
    """
    try:
        with path.with_name(_NAME).open("rb") as file:
            whole = orjson.loads(file.read(_MOST))
    except (OSError, ValueError):
        return {}
    own = inside(whole, part)
    return {**own, "status": inside(whole, "status")} if isinstance(own, dict) else {}


def limits(said: dict[str, Any]) -> Record:
    """Return the time limit in force and how long the run took.

    Raises
    ------
    Unfit
        If one of them is no number.
    """
    minutes, seconds = said.get("time_budget_minutes"), said.get("duration_s")
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float, type(None))):
        raise Unfit("time_budget_minutes: should be a number")
    budget = None if not minutes else span(minutes * _SECONDS)
    taken = None if seconds is None else span(seconds)
    over = None if budget is None or taken is None else taken > budget
    return {"ceiling_time_ns": budget, "duration_ns": taken, "overspent": over}


def ended(said: dict[str, Any]) -> tuple[End, str | None]:
    """Return how the harness saw the run end, and its word for it; open where it does not say."""
    status = short_name(said.get("status"))
    if status == "success" and said.get("returncode", 0) == 0:
        return COMPLETED, status
    return (OPEN if status is None and not said.get("returncode") else FAILED), status


def timed_out(record: Record) -> Record:
    """Return the outcome of a run that failed when its time was up; empty if it was not."""
    late = record.get("overspent") is True and record.get("outcome") is Outcome.FAILED
    return {"outcome": Outcome.TIMED_OUT, "cause": "limit", "stopped_by": Code.TIME_EXHAUSTED} if late else {}
