"""The client port: all that the runtime needs from a model API, and nothing more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from harness_lab.agents.ports import PartialReply, Reply
from harness_lab.errors import InputError, check_kind
from harness_lab.usage import TokenCounts, optional_nusd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.agents.readout import BudgetLeft
    from harness_lab.policies.protocol import Status
    from harness_lab.usage import Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call that the model asks for.

    Parameters
    ----------
    id : str
        The provider's name of the call; its result is recorded under it.
    name : str
        The tool.
    arguments : mapping
        As the model wrote them; outside data.

    Raises
    ------
    InputError
        If id or name is no text, or the arguments are no mapping: some providers send them as JSON text.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_kind("id of a tool call", self.id, str, expected="text")
        check_kind("name of a tool call", self.name, str, expected="text")
        if not isinstance(self.arguments, Mapping):
            hint = "Read a provider's JSON text with json.loads first"
            raise InputError(
                f"arguments of the call to [{self.name}]", expected="a mapping", got=self.arguments, hint=hint
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model sees it: name, description, JSON schema of the arguments.

    Parameters
    ----------
    name, description : str
        What the model calls it, and is told about it.
    parameters : mapping
        JSON schema of the arguments.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call as the client gets it.

    Parameters
    ----------
    system_prompt : str
        The mode's, with the budget told behind it where the runtime does so.
    messages : sequence of mapping
        The conversation so far, oldest first.
    tools : sequence of ToolSpec
        What this run is offered.
    provider, model : str
        Where it goes; ``unknown`` where neither session nor mode says.
    provider_options : mapping
        The mode's, unchanged.
    budget : BudgetLeft
        What is left at this moment under the budget in force, this call not counted.
    run_id : str
        The run that calls.
    """

    system_prompt: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[ToolSpec]
    provider: str
    model: str
    provider_options: Mapping[str, Any]
    budget: BudgetLeft
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """What a model call brought.

    Parameters
    ----------
    text : str
        The answer.
    finish_reason : str
        The provider's own.
    tool_calls : sequence of ToolCall
        Empty: the run is done.
    cost_usd : float or None
        Dollars, finite and >= 0. None: not reported, which is not zero.
    usage : TokenCounts or None
        Token counts. None: not reported.
    served_model : str or None
        The model that answered; None: not said.
    additional_content : mapping
        What the provider wants sent back with this turn.

    Raises
    ------
    InputError
        If the cost is negative or not finite: it would give money back, or poison the sum. If another part is not of
        its kind.
    """

    text: str = ""
    finish_reason: str = "stop"
    tool_calls: Sequence[ToolCall] = ()
    cost_usd: float | None = None
    usage: TokenCounts | None = None
    served_model: str | None = None
    additional_content: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        optional_nusd(self.cost_usd)
        check_kind("text of a response", self.text, str, expected="text, empty for a turn without words")
        check_kind("finish_reason of a response", self.finish_reason, str, expected="the provider's own as text")
        check_kind("usage of a response", self.usage, (TokenCounts, type(None)), expected="TokenCounts or None")
        check_kind("served_model of a response", self.served_model, (str, type(None)), expected="a name or None")
        check_kind("additional_content of a response", self.additional_content, Mapping, expected="a mapping")
        check_kind("tool_calls of a response", self.tool_calls, Iterable, expected="tool calls, none is ()")
        called = tuple(self.tool_calls)
        for call in called:
            check_kind("tool_calls of a response", call, ToolCall, expected="a ToolCall each")
        object.__setattr__(self, "tool_calls", called)


class ModelClient(Protocol):
    """Whatever answers model calls; a client of a provider, a router, or a fake in tests."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Make one model call. An error that it raises fails the run."""


class ModelError(Exception):
    """A failed call whose client knows what it used.

    Parameters
    ----------
    message : str
        What happened.
    sent : bool, default True
        False: provably nothing was sent, so nothing is charged.
    cost_usd : float or None
        What the failed call cost all the same; None: unknown.
    usage : TokenCounts or None
        Its tokens; None: unknown.

    Notes
    -----
    Any other error of a client is taken as "sent, use unknown": one step is charged and the cost is unknown, so that a
    cost cap refuses from then on rather than failing open.
    """

    def __init__(
        self, message: str, *, sent: bool = True, cost_usd: float | None = None, usage: TokenCounts | None = None
    ) -> None:
        self.sent, self.cost_usd, self.usage = sent, cost_usd, usage
        optional_nusd(cost_usd)
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (str(self), self.sent, self.cost_usd, self.usage))


def _rebuild(message: str, sent: bool, cost_usd: float | None, usage: TokenCounts | None) -> ModelError:
    return ModelError(message, sent=sent, cost_usd=cost_usd, usage=usage)


def reply_of(response: ModelResponse) -> Reply:
    """Return what a response reports, as the loop counts it."""
    return _reply("completed", response.usage, optional_nusd(response.cost_usd))


def same_ids(response: ModelResponse) -> InputError | None:
    """Return the error of a response that names two calls alike, None where it does not.

    Results and approvals belong to a call by its id: a person's yes to one would let the other one run.
    """
    ids = [call.id for call in response.tool_calls]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    return None if twice is None else InputError("tool_calls of a response", expected="an id for each call", got=ids)


def reply_of_broken(response: ModelResponse) -> Reply:
    """Return what a response is charged that came and cannot be used."""
    return _reply("failed", response.usage, optional_nusd(response.cost_usd))


def reply_of_error(error: Exception) -> Reply:
    """Return what a failed call is charged."""
    if not isinstance(error, ModelError):
        return _reply("failed", None, None)
    if not error.sent:
        return Reply("failed", 0, 0, 0, 0, 0, None)
    return _reply("failed", error.usage, optional_nusd(error.cost_usd))


def _reply(status: Status, usage: TokenCounts | None, cost_nusd: int | None) -> Reply:
    counts = usage if usage is not None else TokenCounts(input_fresh=None, output=None)
    fresh, read, write, output = counts.input_fresh, counts.cache_read, counts.cache_write, counts.output
    if status == "completed" and not (fresh is None or read is None or write is None or output is None):
        return Reply(status, fresh, read, write, output, cost_nusd, None)
    spent: Amounts = (1, counts.input_total, counts.total, counts.newly_presented, cost_nusd)
    return PartialReply(status, spent)
