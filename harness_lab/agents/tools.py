"""Tools: which there are, which a run is offered, and which calls may proceed.

Source: prism-harness.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harness_lab.agents.errors import AgentError, not_available
from harness_lab.agents.subagents import is_name
from harness_lab.errors import InputError, check_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harness_lab.agents.session import Session


@runtime_checkable
class AgentTool(Protocol):
    """The shape of a tool; `description` and `parameters` (a JSON schema) may be there too."""

    @property
    def name(self) -> str:
        """What the model calls."""

    def handle(self, arguments: Mapping[str, Any]) -> Any:
        """Do it; an awaitable is awaited. What is no text becomes JSON."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool made of a function.

    Parameters
    ----------
    name : str
        What the model calls.
    function : callable
        Takes the arguments as one mapping; may be async. A plain one runs on the event loop: make what blocks async.
    description : str
        For the model.
    parameters : mapping
        JSON schema of the arguments.

    Raises
    ------
    InputError
        If the name is none that a model could call, or another part is not of its kind.
    """

    name: str
    function: Callable[[Mapping[str, Any]], Any]
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not callable(self.function):
            raise InputError(f"function of tool [{self.name}]", expected="a function", got=self.function)
        check_kind(f"description of tool [{self.name}]", self.description, str, expected="text")
        check_kind(f"parameters of tool [{self.name}]", self.parameters, Mapping, expected="a JSON schema as a mapping")

    def handle(self, arguments: Mapping[str, Any]) -> Any:
        """Call the function."""
        return self.function(arguments)


class ToolRegistry:
    """The tools there are: made once, or made for a session.

    Examples
    --------
    >>> tools = ToolRegistry().register(Tool("echo", lambda arguments: arguments["text"]))
    >>> tools.names()
    ['echo']
    """

    def __init__(self) -> None:
        self._tools: dict[str, AgentTool] = {}
        self._factories: dict[str, Callable[[Session], AgentTool]] = {}

    def register(self, *tools: AgentTool) -> ToolRegistry:
        """Add tools; a second one of a name replaces the first.

        Raises
        ------
        InputError
            If one is no tool: it needs a name and a method `handle`.
        """
        for tool in tools:
            _check_tool("tool", tool)
            self._tools[tool.name] = tool
        return self

    def register_factory(self, name: str, factory: Callable[[Session], AgentTool]) -> ToolRegistry:
        """Add a tool that is made for each session; a second factory of one name replaces the first and warns.

        Raises
        ------
        InputError
            If the name is none that a model could call, or the factory is no function.
        """
        _check_name(name)
        if not callable(factory):
            raise InputError(f"factory of tool [{name}]", expected="a function that takes a session", got=factory)
        if name in self._factories:
            warnings.warn(f"the factory of tool [{name}] is replaced by a second one", UserWarning, stacklevel=2)
        self._factories[name] = factory
        return self

    def names(self) -> list[str]:
        """Return every name, sorted."""
        return sorted({*self._tools, *self._factories})

    def resolve(self, names: Iterable[str], session: Session) -> dict[str, AgentTool]:
        """Return tools by name for a session; ``*`` is every tool.

        Raises
        ------
        AgentError
            ``tool_not_available`` for a name that nothing answers to: a mode that lists a tool which it cannot get is
            a misconfiguration, and dropping it would leave a run wondering.
        InputError
            If a factory made no tool, or one of another name.
        """
        wanted = list(names)
        resolved: dict[str, AgentTool] = {}
        for name in self.names() if "*" in wanted else wanted:
            if name in self._tools:
                resolved[name] = self._tools[name]
            elif name in self._factories:
                resolved[name] = _made(name, self._factories[name](session))
            else:
                raise not_available(name, self.names())
        return resolved


class ToolAuthorizer:
    """Answers whether a tool may be offered to a run, and whether this call, with these arguments, may proceed.

    Parameters
    ----------
    offer : callable, optional
        ``(session, tool) -> bool``.
    call : callable, optional
        ``(session, tool, arguments) -> bool``; a denied call ends the run with ``call_not_authorized``: handed back as
        a result, a model would take it for a failure to try again.
    enabled : bool
        Off by default only while there is nothing to ask.

    Raises
    ------
    AgentError
        ``unsafe_authorization_configuration`` for a policy that is there and switched off: it looks like a control.
    InputError
        When it is asked, if it answers with anything but True or False: a text that says why not would be a yes.
    """

    def __init__(
        self,
        *,
        offer: Callable[[Session, AgentTool], bool] | None = None,
        call: Callable[[Session, AgentTool, Mapping[str, Any]], bool] | None = None,
        enabled: bool = True,
    ) -> None:
        if not enabled and (offer is not None or call is not None):
            raise AgentError(
                "unsafe_authorization_configuration", "An authorization policy is defined and switched off: remove it."
            )
        self._offer, self._call = offer, call

    def allowed(self, session: Session, tools: Mapping[str, AgentTool]) -> dict[str, AgentTool]:
        """Return the tools that may be offered."""
        return {n: t for n, t in tools.items() if self._offer is None or _said(self._offer(session, t))}

    def allows_call(self, session: Session, tool: AgentTool, arguments: Mapping[str, Any]) -> bool:
        """Whether a call may proceed."""
        return self._call is None or _said(self._call(session, tool, arguments))


def _said(answer: object) -> bool:
    if answer is True or answer is False:
        return answer
    raise InputError("answer of the authorization policy", expected="True or False", got=answer)


def _check_name(name: object) -> None:
    if not is_name(name, blanks=False):
        raise InputError("name of a tool", expected="printable text without blanks", got=name)


def _check_tool(what: str, tool: object) -> None:
    if not callable(getattr(tool, "handle", None)) or isinstance(tool, type):
        raise InputError(what, expected="a Tool, or what has a name and a method handle", got=tool)
    _check_name(getattr(tool, "name", None))


def _made(name: str, tool: AgentTool) -> AgentTool:
    _check_tool(f"tool made by the factory of [{name}]", tool)
    if tool.name != name:
        raise InputError(f"name of the tool made by the factory of [{name}]", expected=f"{name}", got=tool.name)
    return tool


def narrowed(requested: Sequence[str] | None, allowed: Sequence[str]) -> list[str]:
    """Return what a caller's list leaves of a mode's tools: a caller can narrow it, never widen it.

    Parameters
    ----------
    requested : sequence of str or None
        None or ``*``: all that the mode allows. Empty: none.
    allowed : sequence of str
        The mode's list; ``*`` allows every tool.
    """
    if requested is None or "*" in requested:
        return list(allowed)
    return list(requested) if "*" in allowed else [name for name in requested if name in allowed]


async def invoke(tool: AgentTool, arguments: Mapping[str, Any]) -> Any:
    """Call a tool, and wait for what it returns until that is a result."""
    result = tool.handle(dict(arguments))
    while inspect.isawaitable(result):
        result = await result
    return result
