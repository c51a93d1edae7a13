"""One run tree in production: its policy, and the model and the sink that the agent loop is given."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

from harness_lab.agents.client import ModelResponse, reply_of, reply_of_broken, reply_of_error, same_ids
from harness_lab.agents.context_ledger import ContextLedger
from harness_lab.agents.envelope import NOTHING, RunUsage
from harness_lab.agents.loop import Harness
from harness_lab.agents.recorder import call_row
from harness_lab.agents.stops import as_failure, is_stop
from harness_lab.budget.run import MAX_LEVELS
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS
from harness_lab.policies.at_limit import gauges_of
from harness_lab.policies.tree_limits import TreeLimitsSpec
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from harness_lab.agents.conversation import Conversation
    from harness_lab.agents.ports import Call, Reply, Runtime
    from harness_lab.agents.readout import BudgetLeft
    from harness_lab.agents.record import NodeRecord
    from harness_lab.agents.service import AgentRuntime
    from harness_lab.budget import RunBudget, RunContext
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Path
    from harness_lab.usage import Amounts


_NOTHING = amounts()
_ONE_CALL = amounts(calls=1)


class Tree:
    """A run tree: who speaks, what was written down, and what may be used.

    Parameters
    ----------
    service : AgentRuntime
        Whose run it is.
    context : RunContext
        The node at which it begins, or its parent's if `declared` is given.
    runtime : Runtime
        Time and waiting.
    declared : RunBudget or None
        For a child that is run by hand: its declaration.
    depth : int
        Depth of the node at which it begins.
    groups : mapping of str to str, optional
        Who runs it.

    Attributes
    ----------
    ledger : ContextLedger
        The context's ledger, as the policy's first module.
    """

    def __init__(
        self,
        service: AgentRuntime,
        context: RunContext,
        runtime: Runtime,
        *,
        depth: int,
        declared: RunBudget | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> None:
        self.context = context
        self.depth = depth
        now, limits = runtime.now(), service.limits
        self.ledger = ContextLedger(context, service.rules, declared=declared, charge_hold=limits.charges_hold)
        levels = TreeLimitsSpec(max_depth=max(0, MAX_LEVELS - 1 - depth)).build(now)
        self._service = service
        self._policy = limits.policy_of(self.ledger, levels, groups or {}, now)
        self._harness = Harness(runtime, self._policy, self, self, keep_calls=service.recorder is not None)
        self._bounds: dict[int, Amounts] = {}
        self._conversations: dict[Path, Conversation] = {}
        self._speaking: dict[int, Conversation] = {}
        self._calls = 0
        self.records: dict[Path, NodeRecord] = {}

    async def run(self, conversation: Conversation, budget: Amounts) -> NodeRecord:
        """Run a conversation and all that it starts; return what was written down about it."""
        path = conversation.place.path
        self._conversations[path] = conversation
        await self._harness.run(conversation.place.agent, budget, conversation.think)
        return self.records[path]

    def usage(self, path: Path) -> RunUsage:
        """Return what a node and all below it have used."""
        account = self.ledger.accounts.get(path)
        return NOTHING if account is None else account.usage

    def adopt(self, conversation: Conversation, declared: RunBudget) -> None:
        """Take in a conversation that is about to be asked for."""
        self._conversations[conversation.place.path] = conversation
        self.ledger.announce(conversation.place.path, declared)

    def speaks_next(self, conversation: Conversation) -> int:
        """Note who makes the next call, and name it."""
        self._calls += 1
        self._speaking[self._calls] = conversation
        return self._calls

    def bound(self, call: Call) -> Amounts:
        """Return the worst case of a call, as far as the service can tell."""
        bound, unknown = self._service.bound, amounts(calls=1)
        if bound is None:
            return unknown
        try:
            request = self._speaking[call.key].request(model=call.model, last=call.kind == "wrap-up")
            self._bounds[call.key] = found = bound(request)
            return found
        except BaseException as error:  # a module that needs a bound refuses then; the run does not crash
            if is_stop(error):
                raise
            warnings.warn(f"a call could not be bounded: {error!r}", RuntimeWarning, stacklevel=2)
            return unknown

    def abandoned(self, call: Call, elapsed_ns: int) -> None:
        """Return what is billed for a dropped call: nobody can know."""
        self._speaking.pop(call.key, None)
        self._bounds.pop(call.key, None)

    def left(self, path: Path, *, held: Amounts) -> BudgetLeft:
        """Return what is left for a node now, by its ledger and by all limits in memory that are asked besides.

        Parameters
        ----------
        path : Path
            The node.
        held : Amounts
            What is held for the call that is to be told, and is its own to use.
        """
        told, account = self.ledger.left(path), self.ledger.accounts.get(path)
        if account is None or account.node is None:
            return told
        node, now = account.node, self._harness.runtime.now()
        gauges = [] if node.deadline is None else [("time", int(now), int(node.deadline))]
        for module in self._policy.modules:
            if module is not self.ledger:
                mine = held if getattr(module, "takes_at_admission", False) else _NOTHING
                gauges += [(c, used - _of(mine, c), limit) for c, used, limit in gauges_of((module,), node, now)]
        return told.within(gauges)

    async def complete(self, runtime: Runtime, call: Call) -> Reply:
        """Make a call; an error of the client is a failed reply, and the conversation keeps it."""
        speaker = self._speaking[call.key]
        try:
            held = self._bounds.pop(call.key, _ONE_CALL)
            request = speaker.request(model=call.model, last=call.kind == "wrap-up", held=held)
            response = _response(await _awaitable(speaker.place.service.client.complete(request)))
            reply = reply_of(response)
        except BaseException as error:
            if is_stop(error):
                raise
            self._speaking.pop(call.key, None)
            speaker.failure, speaker.response = as_failure(error), None
            return reply_of_error(speaker.failure)
        del self._speaking[call.key]
        broken = same_ids(response)
        if broken is not None:
            speaker.failure, speaker.response = broken, None
            return reply_of_broken(response)
        speaker.response = response
        if response.served_model is not None:
            speaker.served.add(response.served_model)
        return reply

    def node(self, record: NodeRecord) -> None:
        """Take a node that has ended, or that never started."""
        self.records[record.path] = record
        conversation = self._conversations[record.path]
        conversation.finish(record)
        recorder = self._service.recorder
        if recorder is None:
            return
        try:
            recorder.node(conversation, record)
        except Exception as error:  # a full disk must not take a run down that has been paid for
            warnings.warn(f"a settlement row could not be written: {error}", RuntimeWarning, stacklevel=2)

    def call(self, record: NodeRecord, call: Call, reply: Reply | None, started: Time, now: Time) -> None:
        """Take a call that has ended, for its node's row."""
        speaker = self._conversations[record.path]
        served = None if reply is None or speaker.response is None else speaker.response.served_model
        speaker.made.append(call_row(call, reply, served, began=started - record.started, took=now - started))


def _awaitable(found: Any) -> Awaitable[Any]:
    if not inspect.isawaitable(found):
        raise InputError("complete of the client", expected="an async method", got=found)
    return found


def _response(answer: object) -> ModelResponse:
    """Return a client's answer; whatever else it is fails the call."""
    if not isinstance(answer, ModelResponse):
        raise InputError("answer of the client", expected="a ModelResponse", got=answer)
    return answer


def _of(held: Amounts, channel: str) -> int:
    return (held[CHANNELS.index(channel)] or 0) if channel in CHANNELS else 0
