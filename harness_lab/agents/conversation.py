"""The brain of production: one run's conversation, as the moves that the agent loop carries out.

It decides what to do next from messages, tools and approvals. Whether a call or a child may start is the policy's to
say; how the run ended is written down by :meth:`Conversation.finish`, whatever ended it.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harness_lab.agents.approvals import PendingApproval, decided
from harness_lab.agents.arguments import misfit
from harness_lab.agents.client import ModelRequest, ModelResponse, ToolCall
from harness_lab.agents.due import DueCalls, entry_of
from harness_lab.agents.errors import AgentError, cause_of, not_available
from harness_lab.agents.offers import authorized, failed_text, offered_to, result_text, spec_of
from harness_lab.agents.ports import Call, Children, Work
from harness_lab.agents.session import RunRow
from harness_lab.agents.stops import as_failure, is_stop
from harness_lab.agents.subagent_call import SubagentCall, prepare
from harness_lab.agents.subagent_tool import SubagentTool, no_task
from harness_lab.outcome import Cause, Outcome
from harness_lab.policies.protocol import COMPLETED, End
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from harness_lab.agents.place import Place
    from harness_lab.agents.ports import Brain, Move
    from harness_lab.agents.record import NodeRecord
    from harness_lab.agents.session import Session
    from harness_lab.agents.tools import AgentTool
    from harness_lab.usage import Amounts

_WRAP_UP = (
    "A limit of this run is reached. This is the last answer, and no tool can be called: say what is done and what is "
    "not."
)
NOTHING_HELD = amounts()
_AWAITING = End(Outcome.AWAITING_APPROVAL, None, Cause.USER)
_FAILED = End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)


class Conversation:
    """One run of one session.

    Attributes
    ----------
    text : str
        The model's last text.
    finish_reason : str or None
        Why the conversation ended of itself; None: it has not, or it was stopped.
    called : list of str
        Names of the tools that were called, in order.
    pending : list of PendingApproval
        Calls that wait for a person.
    error : Exception or None
        What made it fail.
    began : bool
        Whether it holds its session.
    served : set of str
        The models that answered, as far as the client said.
    """

    def __init__(
        self,
        place: Place,
        open_session: Callable[[], Session],
        prompt: str,
        *,
        tool_names: Sequence[str] | None = None,
    ) -> None:
        self.place = place
        self.prompt = prompt
        self._open_session = open_session
        self._session: Session | None = None
        self.text = ""
        self.finish_reason: str | None = None
        self.called: list[str] = []
        self.pending: list[PendingApproval] = []
        self.error: Exception | None = None
        self.failure: Exception | None = None
        self.response: ModelResponse | None = None
        self.began = False
        self.served: set[str] = set()
        self.made: list[dict[str, Any]] = []
        self.turn = 0
        self._tool_names = tool_names
        self._offered: dict[str, AgentTool] = {}
        self._due = DueCalls()
        self._asked: set[str] = set()  # approved calls that the call policy has already let through

    @property
    def session(self) -> Session:
        """Its session; opened when it is first needed, so a child that is refused leaves none behind."""
        if self._session is None:
            self._session = self._open_session()
        return self._session

    @property
    def opened(self) -> Session | None:
        """Its session, None while it has needed none."""
        return self._session

    def beside(self, place: Place, open_session: Callable[[], Session], task: str) -> Conversation:
        """Return another conversation, which knows nothing of this one but the task."""
        return Conversation(place, open_session, task)

    def think(self) -> Brain:
        """Return the brain. An error ends the run as failed: in a child it is its parent's tool result, no crash."""
        try:
            self._begin()
            self._offered = offered_to(self, self._tool_names)
            yield from self._act_on_approvals()
            if self.prompt:
                self.session.messages.append({"type": "user", "content": self.prompt})
            return (yield from self._turns())
        except BaseException as error:
            if is_stop(error):
                raise
            self.error = as_failure(error)
            return replace(_FAILED, cause=cause_of(self.error, answered=self.response is not None))

    def request(self, *, model: str, last: bool = False, held: Amounts = NOTHING_HELD) -> ModelRequest:
        """Return the next request; made when the call is sent, so the readout is that of this moment.

        Parameters
        ----------
        model : str
            The model of the call that was admitted.
        last : bool
            Whether a limit was reached and this is the call to wrap up: no tools are offered, and the model is told.
        held : Amounts
            What is held for this call already.
        """
        place = self.place
        left = place.tree.left(place.path, held=held)
        system = place.mode.system_prompt
        if place.service.tell_budget:
            system = f"{system}\n\n{left.text()}" if system else left.text()
        if last:
            system = f"{system}\n\n{_WRAP_UP}" if system else _WRAP_UP
        return ModelRequest(
            system_prompt=system,
            messages=tuple(self.session.messages),
            tools=() if last else tuple(spec_of(tool) for tool in self._offered.values()),
            provider=place.provider,
            model=model,
            provider_options=place.mode.provider_options,
            budget=left,
            run_id=place.run_id,
        )

    def finish(self, record: NodeRecord) -> None:
        """Write down how the run ended, and what its calls came to, and give the session back."""
        if self.began:
            self._record_results(self._due.left())
            self.place.service.ended(self, record)
            self.session.release(self.place.run_id)

    def _begin(self) -> None:
        place = self.place
        self.session.hold(place.run_id)
        self.began = True
        self.session.run = RunRow(
            id=place.run_id,
            mode=place.mode.name,
            provider=place.provider,
            model=place.model,
            model_from=place.model_from,
        )
        place.service.started(self)

    def _turns(self) -> Generator[Move, Any, End]:
        while True:
            response = yield from self._ask()
            self.text = response.text
            gated = [call for call in response.tool_calls if self.place.mode.needs_approval(call.name)]
            self._record_turn(response, gated)
            if not response.tool_calls:
                self.finish_reason = response.finish_reason
                return COMPLETED
            yield from self._act([call for call in response.tool_calls if call not in gated])
            if gated:
                self.finish_reason = "awaiting_approval"
                return _AWAITING

    def _ask(self) -> Generator[Move, Any, ModelResponse]:
        self.turn += 1
        key = self.place.tree.speaks_next(self)
        reply = yield Call(self.place.model, key, self.turn - 1, 0, 0)
        if reply.status == "failed" or self.response is None:
            raise self.failure or RuntimeError("the model call failed")
        return self.response

    def _record_turn(self, response: ModelResponse, gated: Sequence[ToolCall]) -> None:
        self.pending = [
            PendingApproval(id=f"apr_{uuid.uuid4().hex}", tool=c.name, arguments=c.arguments, tool_call_id=c.id)
            for c in gated
        ]
        calls = [{"id": c.id, "name": c.name, "arguments": dict(c.arguments)} for c in response.tool_calls]
        self.session.messages.append(
            {
                "type": "assistant",
                "content": response.text,
                "tool_calls": calls,
                "approval_requests": [{"approval_id": p.id, "tool_call_id": p.tool_call_id} for p in self.pending],
                "additional_content": dict(response.additional_content),
            }
        )

    def _act_on_approvals(self) -> Generator[Move, Any, None]:
        """Act on the answers to the calls that stopped the last run; the model is not asked for them again."""
        waiting = decided(self.session)
        if not waiting:
            return
        self.turn += 1  # children of these calls get names of their own
        refused = [(d.call, d.refusal) for d in waiting if d.refusal is not None]
        approved = [d.call for d in waiting if d.refusal is None]
        blocked = {call.id: reason for call in approved if (reason := self._blocked(call)) is not None}
        refused += [(call, blocked[call.id]) for call in approved if call.id in blocked]
        self._record_results([entry_of(call, reason) for call, reason in refused])
        yield from self._act([call for call in approved if call.id not in blocked])

    def _blocked(self, call: ToolCall) -> str | None:
        """Say why an approved call cannot run. As an error it would stop every later run of the session too."""
        tool = self._offered.get(call.name)
        if tool is None:
            return f"Not run: {call.name} is not available to this run."
        try:
            authorized(self, tool, call)
        except AgentError:
            return f"Not run: this call to {call.name} is not authorized."
        self._asked.add(call.id)
        return None

    def _act(self, calls: Sequence[ToolCall]) -> Generator[Move, Any, None]:
        """Carry out calls in order; subagents that stand side by side run side by side."""
        self._due.add(calls)
        numbered = list(enumerate(calls))
        while numbered:
            batch = self._batch(numbered)
            del numbered[: len(batch)]
            if isinstance(self._tool(batch[0][1]), SubagentTool):
                yield from self._delegate(batch)
            else:
                entries, error = yield Work(lambda batch=batch: self._use_tools(batch))  # type: ignore[misc]
                self._record_results(entries)
                if error is not None:
                    raise error

    def _batch(self, numbered: Sequence[tuple[int, ToolCall]]) -> list[tuple[int, ToolCall]]:
        """Return the calls from the first on that go together; one session holds one child at a time."""
        first = isinstance(self._tool(numbered[0][1]), SubagentTool)
        batch: list[tuple[int, ToolCall]] = []
        scopes: set[str] = set()
        for slot, call in numbered:
            tool = self._offered.get(call.name)
            if isinstance(tool, SubagentTool) is not first:
                break
            scope = tool.subagent.scope_under("") if isinstance(tool, SubagentTool) else None
            if scope is not None and scope in scopes:
                break
            scopes.add(scope or "")
            batch.append((slot, call))
        return batch

    async def _use_tools(self, batch: Sequence[tuple[int, ToolCall]]) -> tuple[list[dict[str, Any]], Exception | None]:
        """Call tools one after the other; a denied or unknown call ends the run, and what ran before it is kept."""
        entries: list[dict[str, Any]] = []
        for _, call in batch:
            try:
                tool = self._allowed(call)
            except Exception as error:
                return entries, error
            self.called.append(call.name)
            self._due.begin(call)
            wrong = misfit(tool, call.arguments)
            text = await result_text(tool, call.arguments) if wrong is None else failed_text(wrong)
            entries.append(entry_of(call, text))
            self._due.ended(entries[-1])
        return entries, None

    def _delegate(self, batch: Sequence[tuple[int, ToolCall]]) -> Generator[Move, Any, None]:
        """Start subagents and record how each of them ended; a call without a task starts none."""
        family: list[tuple[ToolCall, SubagentCall | str]] = []
        for slot, call in batch:
            tool = self._allowed(call)
            self.called.append(call.name)
            self._due.begin(call)
            if isinstance(tool, SubagentTool):
                wrong = no_task(tool, call.arguments)
                kid = prepare(self, tool, call.arguments["task"], slot) if wrong is None else failed_text(wrong)
                family.append((call, kid))
                if isinstance(kid, SubagentCall):
                    self._due.delegated(call, partial(_told, kid))
        asked = [kid.move for _, kid in family if isinstance(kid, SubagentCall) and kid.move is not None]
        if asked:
            yield Children(asked)
        self._record_results([entry_of(call, kid if isinstance(kid, str) else _told(kid)) for call, kid in family])

    def _allowed(self, call: ToolCall) -> AgentTool:
        tool = self._tool(call)
        if call.id in self._asked:
            self._asked.discard(call.id)  # a later call of the same id is another one
        else:
            authorized(self, tool, call)
        return tool

    def _tool(self, call: ToolCall) -> AgentTool:
        tool = self._offered.get(call.name)
        if tool is None:
            raise not_available(call.name, sorted(self._offered))
        return tool

    def _record_results(self, entries: Sequence[dict[str, Any]]) -> None:
        self._due.recorded(entries)
        if entries:
            self.session.messages.append({"type": "tool_result", "results": list(entries)})


def _told(kid: SubagentCall) -> str:
    return kid.result().to_tool_result()
