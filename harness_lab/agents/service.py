"""The agent runtime of production: prompts in, responses out, everything bounded and written down."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from harness_lab.agents.asyncio_runtime import AsyncioRuntime
from harness_lab.agents.context_ledger import ChildCeilings
from harness_lab.agents.conversation import Conversation
from harness_lab.agents.envelope import RunUsage
from harness_lab.agents.errors import not_permitted
from harness_lab.agents.events import Event, Events, RunFailed, RunFinished, RunStarted
from harness_lab.agents.place import Place, new_run_id
from harness_lab.agents.response import closing_of, failure_of, response_of
from harness_lab.agents.rules import OURS, AgentRules, rules_named
from harness_lab.agents.runner import SubagentRunner
from harness_lab.agents.session import Sessions
from harness_lab.agents.subagent_call import ask_of
from harness_lab.agents.tools import ToolRegistry
from harness_lab.agents.tree import Tree
from harness_lab.budget import RunBudget, RunContext
from harness_lab.clock import ns
from harness_lab.errors import InputError
from harness_lab.outcome import Outcome
from harness_lab.policies.at_limit import ComposedAtLimit
from harness_lab.policies.compose import Composed
from harness_lab.policies.hard_cap import CallHolds
from harness_lab.policies.opened import name_run
from harness_lab.usage import optional_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness_lab.agents.client import ModelClient, ModelRequest
    from harness_lab.agents.context_ledger import ContextLedger
    from harness_lab.agents.modes import AgentMode, ModeRegistry
    from harness_lab.agents.record import NodeRecord
    from harness_lab.agents.recorder import SettlementRecorder
    from harness_lab.agents.response import AgentResponse
    from harness_lab.agents.session import Session
    from harness_lab.agents.tools import ToolAuthorizer
    from harness_lab.clock import Time
    from harness_lab.policies import PolicySpec
    from harness_lab.policies.protocol import Module
    from harness_lab.usage import Amounts

Offer = Literal["automatic", "by-hand"]


class AgentRuntime:
    """Runs agents on asyncio with the loop that the simulator runs.

    Parameters
    ----------
    client : ModelClient
        Answers model calls.
    modes : ModeRegistry
        The configured modes.
    tools : ToolRegistry, optional
        The tools there are.
    sessions : Sessions, optional
        The harness that opens sessions, children's too.
    authorizer : ToolAuthorizer, optional
        Which tools may be offered, which calls may proceed.
    events : Events, optional
        Who is told of starts and ends.
    recorder : SettlementRecorder, optional
        Where settlement rows go.
    rules : AgentRules or str
        Switches of the run rules, or the name of a preset.
    offer : {"automatic", "by-hand"}
        Whether a mode's subagents are offered as tools, or only those that were registered and listed.
    max_steps_ceiling : int or None
        The operator's bound on a session's own step limit; None: no bound.
    max_cost_usd, max_seconds : float or None
        Cost and time of a run without a context; None: no limit.
    policy : PolicySpec or None
        More modules (pool, floors, tree limits) behind the run's ledger. A shared ledger in it is the budget of runs
        without a context.
    bound : callable, optional
        ``(request) -> Amounts``: the worst case of a call, for modules that hold it; None: cannot be bounded.
    tell_budget : bool
        Whether the model is told what is left, behind its system prompt.
    """

    def __init__(
        self,
        client: ModelClient,
        modes: ModeRegistry,
        tools: ToolRegistry | None = None,
        *,
        sessions: Sessions | None = None,
        authorizer: ToolAuthorizer | None = None,
        events: Events | None = None,
        recorder: SettlementRecorder | None = None,
        rules: AgentRules | str = OURS,
        offer: Offer = "automatic",
        max_steps_ceiling: int | None = 40,
        max_cost_usd: float | None = None,
        max_seconds: float | None = None,
        policy: PolicySpec | None = None,
        bound: Callable[[ModelRequest], Amounts] | None = None,
        tell_budget: bool = False,
    ) -> None:
        if offer not in ("automatic", "by-hand"):
            raise InputError("offer", expected="automatic or by-hand", got=offer)
        self.client = client
        self.modes = modes
        self.tools = tools if tools is not None else ToolRegistry()
        self.sessions = sessions if sessions is not None else Sessions()
        self.authorizer = authorizer
        self.events = events if events is not None else Events()
        self.recorder = recorder
        self.rules = rules_named(rules)
        self.offer: Offer = offer
        self.bound = bound
        self.tell_budget = tell_budget
        self.max_steps_ceiling = optional_count("max_steps_ceiling", max_steps_ceiling)
        self._own = RunBudget(0, max_cost_usd, max_seconds)
        self._policy = policy
        self.runner = SubagentRunner(self.sessions, self)

    async def send(
        self,
        session: Session,
        prompt: str,
        *,
        tool_names: Sequence[str] | None = None,
        context: RunContext | None = None,
    ) -> AgentResponse:
        """Run a turn.

        Parameters
        ----------
        session : Session
            Whose conversation; it is held for the whole run.
        prompt : str
            What is said. Empty: nothing; so a run goes on after an approval.
        tool_names : sequence of str or None
            Narrows the mode's tools; None: all of them, empty: none.
        context : RunContext or None
            The budget and the ledger of this run, in place of the configured ones.

        Raises
        ------
        AgentError
            ``session_locked``, ``mode_not_configured``, ``mode_malformed``, ``run_not_permitted``,
            ``tool_not_available`` or ``call_not_authorized``.
        Exception
            Whatever the client raised; the run is failed then.
        """
        mode = self.modes.resolve(session.mode)
        runtime = AsyncioRuntime()
        run_id = new_run_id() if context is None or _in_use(context) else context.root_run_id
        if context is None:
            context = RunContext.root(run_id, self.root_budget(mode, session), clock=runtime)
        if context.too_deep():
            raise not_permitted(f"it is nested {context.depth} deep, at or below the fourth level")
        tree = Tree(self, context, runtime, depth=context.depth)
        model, model_from = self.model_of(mode, session)
        place = Place(
            tree=tree,
            service=self,
            path=(),
            run_id=run_id,
            parent_run_id=context.parent_run_id,
            agent=mode.name,
            mode=mode,
            provider=session.provider or "unknown",
            model=model,
            model_from=model_from,
        )
        conversation = Conversation(place, lambda: session, prompt, tool_names=tool_names)
        record = await tree.run(conversation, ask_of(context.budget))
        if conversation.error is not None:
            raise conversation.error
        if record.refusal is not None and not conversation.began:
            raise not_permitted(str(record.refusal))
        return response_of(conversation, record)

    def root_budget(self, mode: AgentMode, session: Session) -> RunBudget:
        """Return the budget of a run without a context.

        Steps are the session's own limit, bounded by the operator's ceiling; without one the mode's.
        """
        shared = None if self._policy is None else self._policy.module("shared_ledger")
        steps = mode.max_steps if shared is None else shared.max_steps
        if session.max_steps is not None:
            own, ceiling = session.max_steps, self.max_steps_ceiling
            steps = own if ceiling is None else min(own, ceiling)
        limits = self._own if shared is None else shared
        return RunBudget(steps, limits.max_cost_usd, limits.max_seconds)

    def model_of(self, mode: AgentMode, session: Session) -> tuple[str, str]:
        """Return the model of a root, and who named it."""
        if session.model is not None:
            return session.model, "session"
        return (mode.model, "mode") if mode.model is not None else ("unknown", "unknown")

    def policy_for(self, ledger: ContextLedger, levels: Module, now: Time) -> Composed:
        """Return the policy of one tree: the ledger, levels, what a child could use, what was configured besides."""
        spec, first = self._policy, (ledger, levels, ChildCeilings(ledger))
        if spec is None:
            return Composed(first)
        more = [module.build(now) for module in spec.modules if module.kind != "shared_ledger"]
        name_run(more, ledger.ledger.root_run_id)
        for module in more:
            if isinstance(module, CallHolds):
                spent = ledger.ledger
                module.carry_on(spent.cost_nusd, spent.unmetered_runs, root_counts_it=ledger.whole)
        wait = None if spec.max_wait_s is None else ns(spec.max_wait_s)
        if spec.at_limit is not None:
            return ComposedAtLimit([*first, *more], max_wait_ns=wait, at_limit=spec.at_limit)
        return Composed([*first, *more], max_wait_ns=wait)

    def started(self, conversation: Conversation) -> None:
        """Tell of a run that begins."""
        place = conversation.place
        self.events.emit(
            RunStarted(
                run_id=place.run_id,
                session_key=conversation.session.key,
                mode=place.mode.name,
                provider=place.provider,
                model=place.model,
                root_run_id=place.tree.context.root_run_id,
                depth=place.tree.depth + len(place.path),
                at=_now(),
            )
        )

    def ended(self, conversation: Conversation, record: NodeRecord) -> None:
        """Write the run record, and tell of the end; a run that waits for a person has none yet."""
        session, closing = conversation.session, closing_of(conversation, record)
        if session.run is not None:
            error = conversation.error
            session.run = replace(
                session.run,
                status=closing.outcome.value,
                finish_reason=None if error is not None else closing.finish_reason,
                stopped_because=closing.stopped_because,
                tool_calls=tuple(conversation.called),
                failure=None if error is None else failure_of(error),
                failure_detail=None if error is None else str(error),
            )
        if closing.outcome is not Outcome.AWAITING_APPROVAL:
            self.events.emit(_end_of(conversation, record))


def _end_of(conversation: Conversation, record: NodeRecord) -> Event:
    place, closing = conversation.place, closing_of(conversation, record)
    usage, tree = place.tree.usage(place.path), RunUsage.of_tree(place.tree.ledger.ledger)
    if conversation.error is not None:
        return RunFailed(
            run_id=place.run_id,
            session_key=conversation.session.key,
            failure=failure_of(conversation.error),
            steps=usage.steps,
            tree_steps=tree.steps,
            at=_now(),
        )
    return RunFinished(
        run_id=place.run_id,
        session_key=conversation.session.key,
        finish_reason=closing.finish_reason or "",
        stopped_because=closing.stopped_because,
        tool_calls=tuple(conversation.called),
        steps=usage.steps,
        cost_usd=usage.cost_usd,
        tree_steps=tree.steps,
        tree_cost_usd=tree.cost_usd,
        at=_now(),
    )


def _in_use(context: RunContext) -> bool:
    """Whether a context's root run id names a run that has taken place already."""
    ledger = context.ledger
    return context.is_child() or ledger.steps > 0 or ledger.unmetered_runs > 0


def _now() -> str:
    return datetime.now(UTC).isoformat()
