"""Tool calls of a run that have no result yet.

A provider refuses a conversation in which a call has no result, and with it every later run of the session; and an
approved call that was under way when its run was stopped must not run a second time on the same yes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness_lab.agents.client import ToolCall

NOT_RUN = "Not run: the run ended before this call."
UNDER_WAY = "No result: the run ended while this call was under way. It may have taken effect."


class DueCalls:
    """Which calls still owe a result, and what is said of them if none comes."""

    __slots__ = ("_begun", "_calls", "_children", "_results")

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._begun: set[str] = set()
        self._results: dict[str, dict[str, Any]] = {}
        self._children: dict[str, Callable[[], str]] = {}

    def add(self, calls: Iterable[ToolCall]) -> None:
        """Take calls that are to be made, in order."""
        self._calls.update((call.id, call) for call in calls)

    def begin(self, call: ToolCall) -> None:
        """Take note that a call is made now."""
        self._begun.add(call.id)

    def delegated(self, call: ToolCall, result: Callable[[], str]) -> None:
        """Take note of what tells how a call's child ended, once it has."""
        self._children[call.id] = result

    def ended(self, entry: dict[str, Any]) -> None:
        """Take a result that is not recorded yet, since others of its batch are still to come."""
        self._results[entry["tool_call_id"]] = entry

    def recorded(self, entries: Iterable[dict[str, Any]]) -> None:
        """Forget calls whose results stand in the conversation."""
        for entry in entries:
            found = entry["tool_call_id"]
            self._calls.pop(found, None)
            self._results.pop(found, None)
            self._children.pop(found, None)
            self._begun.discard(found)

    def left(self) -> list[dict[str, Any]]:
        """Return a result for every call that has none in the conversation."""
        return [self._results.get(call.id) or self._said(call) for call in self._calls.values()]

    def _said(self, call: ToolCall) -> dict[str, Any]:
        if call.id in self._children:
            with suppress(LookupError):  # it was asked for and never closed: it has nothing to tell
                return entry_of(call, self._children[call.id]())
        return entry_of(call, UNDER_WAY if call.id in self._begun else NOT_RUN)


def entry_of(call: ToolCall, result: str) -> dict[str, Any]:
    """Return a call's result as it stands in the conversation."""
    return {"tool_call_id": call.id, "name": call.name, "result": result}
