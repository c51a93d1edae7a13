"""Who may delegate: the tools a child does not get, and the gate in front of a delegation.

Two presets on one mechanism. Depth-1 delegation: no child gets a delegation tool. Role-based: a child asked for as an
*orchestrator* keeps it while its depth leaves room for children of its own; every other child is a *leaf*.

Sources: the delegation tool of hermes-agent 0.19.0 (roles, its checks and their order), and the rule of the
cost-integrity skill that no child gets a delegation tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from harness_lab.errors import InputError
from harness_lab.usage import count

Role = Literal["leaf", "orchestrator"]
Tool = TypeVar("Tool")

DELEGATION_TOOLS: Final = ("delegate_task", "spawn_agent", "create_subagent")
"""Names under which delegation is known; compared without case, and with ``-`` and blanks as ``_``."""

LEAF_BLOCKED: Final = ("delegate_task", "clarify", "memory", "send_message", "execute_code", "cronjob")
"""Tools that a leaf child of hermes-agent 0.19.0 does not get."""

LEAF_BLOCKED_SETS: Final = ("delegation", "clarify", "memory", "code_execution", "cronjob")
"""Tool sets that a leaf child of hermes-agent 0.19.0 does not get."""

MAX_WRAPPING = 32


def get_subagent_tool_set(
    parent_tools: Sequence[Tool], *, blocked: Sequence[str] = DELEGATION_TOOLS, kinds: Sequence[str] = ("delegation",)
) -> list[Tool]:
    """Return the tools of a parent that a child may have, in order.

    Parameters
    ----------
    parent_tools : sequence
        Tool names, or objects with a ``name`` and maybe ``kind``, ``aliases`` and ``wraps`` (the tool inside).
    blocked : sequence of str
        Names that are left out, also as an alias, and also inside a wrapper.
    kinds : sequence of str
        Kinds that are left out whatever their name.

    Examples
    --------
    >>> get_subagent_tool_set(["read_file", "Delegate-Task", "terminal"])
    ['read_file', 'terminal']
    """
    names, sorts = {_plain(name) for name in blocked}, {_plain(kind) for kind in kinds}
    return [tool for tool in parent_tools if not _delegates(tool, names, sorts)]


def normal_role(role: object) -> Role:
    """Return the role that a word means; what is not an orchestrator is a leaf.

    Examples
    --------
    >>> normal_role(" Orchestrator "), normal_role(None), normal_role("boss")
    ('orchestrator', 'leaf', 'leaf')
    """
    return "orchestrator" if isinstance(role, str) and _plain(role.strip()) == "orchestrator" else "leaf"


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegatedTask:
    """One child that may be started.

    Parameters
    ----------
    goal : str
        What it shall do.
    role : {"leaf", "orchestrator"}
        Whether it may delegate itself.
    depth : int
        Its depth; the root has 0.
    max_iterations : int
        Of a budget of its own; what the model asks for is not looked at.
    """

    goal: str
    role: Role
    depth: int
    max_iterations: int

    def tools(self, parent: Sequence[Tool], *, blocked: Sequence[str] = LEAF_BLOCKED_SETS) -> list[Tool]:
        """Return what the child may have of its parent's tools or tool sets; an orchestrator keeps delegation."""
        delegating = {_plain(name) for name in ("delegation", *DELEGATION_TOOLS)}
        kept = [b for b in blocked if self.role == "leaf" or _plain(b) not in delegating]
        kinds = ("delegation",) if self.role == "leaf" else ()
        return get_subagent_tool_set(parent, blocked=kept, kinds=kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationRules:
    """The gate in front of a delegation tool; the checks run in the order pause, depth, tasks, number, shape.

    Parameters
    ----------
    max_depth : int
        Deepest level that may be started; the root has 0. 1: children do not delegate.
    max_children : int
        Children of one request; more are refused whole.
    max_iterations : int
        Iterations of each child.
    orchestrators : bool
        Whether a child may be an orchestrator at all.
    paused : bool
        Refuse everything for the time being.
    """

    max_depth: int = 1
    max_children: int = 3
    max_iterations: int = 50
    orchestrators: bool = True
    paused: bool = False

    def __post_init__(self) -> None:
        for name in ("max_depth", "max_children", "max_iterations"):
            count(name, getattr(self, name))

    @classmethod
    def hermes(cls, config: Mapping[str, Any]) -> DelegationRules:
        """Read a delegation config as hermes-agent 0.19.0 does: bad numbers fall back, one child is always allowed."""
        return cls(
            max_depth=max(1, _number(config.get("max_spawn_depth"), 1)),
            max_children=max(1, _number(config.get("max_concurrent_children"), 3)),
            max_iterations=_number(config.get("max_iterations"), 50),
            orchestrators=_switch(config.get("orchestrator_enabled")),
            paused=bool(config.get("paused", False)),
        )

    def decide(self, request: Mapping[str, Any], *, depth: int) -> tuple[DelegatedTask, ...]:
        """Return the children that a request may start.

        Parameters
        ----------
        request : mapping
            ``goal`` and maybe ``role``, or ``tasks``: a list (or its JSON) of such mappings.
        depth : int
            Depth of the asking node.

        Raises
        ------
        InputError
            If the request is refused; the message says why. Nothing is started then.
        """
        if self.paused:
            raise InputError("delegation", expected="spawning that is not paused", got="Delegation spawning is paused")
        if depth >= self.max_depth:
            told = f"Delegation depth limit reached (depth={depth}, max_spawn_depth={self.max_depth})"
            raise InputError("delegation", expected="a depth that may delegate", got=told)
        tasks = _tasks(request)
        if len(tasks) > self.max_children:
            told = f"Too many tasks: {len(tasks)} provided, but max_concurrent_children is {self.max_children}"
            raise InputError("delegation", expected="no more tasks than may run", got=told)
        role = request.get("role")
        return tuple(self._child(i, task, depth + 1, role) for i, task in enumerate(tasks))

    def _child(self, index: int, task: object, depth: int, role_of_all: object) -> DelegatedTask:
        if not isinstance(task, Mapping):
            told = f"Task {index} must be an object, got {type(task).__name__}"
            raise InputError("delegation", expected="tasks with a goal", got=told)
        goal = task.get("goal")
        if not isinstance(goal, str) or not goal.strip():
            raise InputError("delegation", expected="a goal for each task", got=f"Task {index} has no goal")
        wanted = normal_role(task.get("role") or role_of_all)
        may = self.orchestrators and depth < self.max_depth
        role: Role = wanted if may else "leaf"
        return DelegatedTask(goal=goal, role=role, depth=depth, max_iterations=self.max_iterations)


def _tasks(request: Mapping[str, Any]) -> Sequence[object]:
    tasks = request.get("tasks")
    if isinstance(tasks, str):
        try:
            tasks = json.loads(tasks)
        except (json.JSONDecodeError, RecursionError):
            raise InputError("delegation", expected="tasks as a list, or its JSON", got=tasks) from None
        if not isinstance(tasks, list):
            raise InputError("delegation", expected="tasks as a list, or its JSON", got=tasks)
    if isinstance(tasks, list) and tasks:
        return tasks
    if isinstance(request.get("goal"), str) and request["goal"].strip():
        return [request]
    told = "Provide either 'goal' (single task) or 'tasks' (batch)"
    raise InputError("delegation", expected="something to do", got=told)


def _delegates(tool: object, names: set[str], kinds: set[str]) -> bool:
    for _ in range(MAX_WRAPPING):
        name = tool if isinstance(tool, str) else getattr(tool, "name", "")
        aliases = getattr(tool, "aliases", ())
        if _plain(str(getattr(tool, "kind", ""))) in kinds:
            return True
        if any(_plain(str(word)) in names for word in (name, *aliases)):
            return True
        tool = getattr(tool, "wraps", None)
        if tool is None:
            return False
    return True  # a chain of wrappers without end is not handed on


def _plain(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def _number(value: object, default: int) -> int:
    """Return a number of a config; what is no whole number, not even as text, is the default."""
    try:
        return max(0, int(value))  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        return default


def _switch(value: object) -> bool:
    """Return whether a switch is on: it is unless the config says otherwise, as a word or not."""
    if isinstance(value, str):
        return value.strip().lower() in {"true", "1", "yes", "on"}
    return value is not False
