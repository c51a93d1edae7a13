"""Which engine simulates a world under a policy, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from harness_lab.errors import InputError
from harness_lab.simulate import fast

if TYPE_CHECKING:
    from harness_lab.simulate.engine import Engine

WantedEngine = Literal["auto", "kernel", "asyncio", "fast"]
WANTED: Final[tuple[WantedEngine, ...]] = ("auto", "kernel", "asyncio", "fast")
FAST_FROM: Final = 10_000
"""Trees under one policy from which the fast engine pays: it loads in half a second, at first in half a minute."""


class Choice(NamedTuple):
    """An engine, and why it was chosen."""

    engine: Engine
    why: str


def choose_engine(
    wanted: WantedEngine, workload: Any, provider: Any, policy: Any, *, trees: int, keeps: str | None
) -> Choice:
    """Choose the engine for a world under a policy; results are the same on all of them.

    Parameters
    ----------
    wanted : {"auto", "kernel", "asyncio", "fast"}
        ``auto``: the fast engine where it can be used and pays, else the kernel.
    workload, provider, policy
        The world, and what limits it.
    trees : int
        How many trees are simulated.
    keeps : str or None
        What is kept beside rows of nodes, in words.

    Raises
    ------
    InputError
        If there is no such engine, or the fast one is asked for and cannot be used.
    """
    if wanted not in WANTED:
        raise InputError("engine", expected=f"one of {', '.join(WANTED)}", got=wanted)
    stuck = [type(fault).__name__ for fault in getattr(workload, "faults", ()) if fault.kernel_only]
    if wanted == "asyncio" and stuck:
        raise InputError("engine", expected=f"kernel, or auto, for {', '.join(stuck)}", got=wanted)
    if wanted in ("kernel", "asyncio"):
        return Choice(wanted, "asked for")
    reason = _against(workload, provider, policy, keeps)
    if wanted == "fast":
        if reason is not None:
            raise InputError("engine", expected="kernel, or auto", got="fast", hint=f"The fast engine cannot: {reason}")
        return Choice("fast", "asked for")
    if reason is None and trees < FAST_FROM:
        reason = f"{trees:,} trees; the fast engine pays from {FAST_FROM:,} on"
    return Choice("fast", "in its family") if reason is None else Choice("kernel", reason)


def _against(workload: Any, provider: Any, policy: Any, keeps: str | None) -> str | None:
    if keeps is not None:
        return f"it keeps no {keeps}"
    reason = fast.why_not(workload, provider, policy)
    if reason is not None:
        return f"{reason} is not in its family"
    if not fast.installed():
        return "numba is not installed (pip install 'harness-lab[fast]')"
    return None
