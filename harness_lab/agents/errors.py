"""What can go wrong around a run before a limit is asked: each with a stable code.

A limit that says no is a value (an outcome, a finish reason); these are misconfigurations and refusals of authority.
"""

from __future__ import annotations

from typing import Final, Literal

from harness_lab.errors import HarnessLabError
from harness_lab.outcome import Cause

AgentCode = Literal[
    "mode_not_configured",
    "mode_malformed",
    "tool_not_available",
    "call_not_authorized",
    "unsafe_authorization_configuration",
    "session_locked",
    "run_not_permitted",
    "approval_not_pending",
]


class AgentError(HarnessLabError):
    """An agent run that cannot go on, or must not start.

    Parameters
    ----------
    code : str
        Stable name of the kind (:data:`AgentCode`).
    message : str
        One line: what was expected, what came, what helps.
    detail : str
        Where, what was expected there and what came, in one line more; empty: the message says it.
    """

    def __init__(self, code: AgentCode, message: str, detail: str = "") -> None:
        self.code: AgentCode = code
        self.message = message
        self.detail = detail
        super().__init__(code, message, detail)

    def __str__(self) -> str:
        return f"{self.message} {self.detail}" if self.detail else self.message


VERDICTS: Final = frozenset({"call_not_authorized", "tool_not_available"})
"""Codes that say no to what a run wanted to do: asking for it again would get the same answer."""


def cause_of(error: Exception, *, answered: bool) -> Cause:
    """Return what an error that ended a run is put down to.

    Parameters
    ----------
    error : Exception
        The error.
    answered : bool
        Whether the model had answered already: a tool that is not there was then its idea, and not the config's.
    """
    code = error.code if isinstance(error, AgentError) else None
    if code == "call_not_authorized":
        return Cause.USER
    return Cause.MODEL if code == "tool_not_available" and answered else Cause.INFRASTRUCTURE


def not_authorized(tool: str) -> AgentError:
    """Return the error of a call that the call policy denied."""
    return AgentError("call_not_authorized", f"The call to tool [{tool}] is not authorized.")


def not_available(tool: str, offered: list[str]) -> AgentError:
    """Return the error of a tool that this run does not have."""
    there = ", ".join(offered) if offered else "none"
    return AgentError("tool_not_available", f"Tool [{tool}] is not available. Available: {there}.")


def not_permitted(reason: str) -> AgentError:
    """Return the error of a run that may not start."""
    return AgentError("run_not_permitted", f"The run is not permitted: {reason}.")
