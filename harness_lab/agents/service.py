"""The agent runtime of production: prompts in, responses out, everything bounded and written down."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness_lab.agents.asyncio_runtime import AsyncioRuntime
from harness_lab.agents.conversation import Conversation
from harness_lab.agents.envelope import RunUsage
from harness_lab.agents.errors import not_permitted
from harness_lab.agents.events import Event, Events, RunFailed, RunFinished, RunStarted
from harness_lab.agents.floor_units import check_units
from harness_lab.agents.modes import ModeRegistry
from harness_lab.agents.place import Place, new_run_id
from harness_lab.agents.response import closing_of, response_of
from harness_lab.agents.rules import OURS, AgentRules, rules_named
from harness_lab.agents.runner import SubagentRunner
from harness_lab.agents.runtime_limits import RuntimeLimits, groups_of
from harness_lab.agents.session import Session, Sessions
from harness_lab.agents.stops import words_of
from harness_lab.agents.subagent_call import ask_of
from harness_lab.agents.tools import ToolRegistry
from harness_lab.agents.tree import Tree
from harness_lab.budget import RunBudget, RunContext
from harness_lab.errors import InputError, check_kind
from harness_lab.outcome import Outcome
from harness_lab.usage import optional_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness_lab.agents.client import ModelClient, ModelRequest
    from harness_lab.agents.modes import AgentMode
    from harness_lab.agents.offers import Offer
    from harness_lab.agents.record import NodeRecord
    from harness_lab.agents.recorder import SettlementRecorder
    from harness_lab.agents.response import AgentResponse
    from harness_lab.agents.tools import ToolAuthorizer
    from harness_lab.policies import OpenPolicy, PolicySpec, Shadowed
    from harness_lab.usage import Amounts


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
    policy : PolicySpec, OpenPolicy, Shadowed or None
        More modules behind the run's ledger: pool, floors, tree limits, and those whose state outlives a run. A shared
        ledger in it is the budget of runs without a context. A spec is opened here and closed by :meth:`close`; an open
        policy may serve several runtimes of one thread. One that is ``Shadowed`` is asked and never obeyed.
    shadow : Shadowed or None
        A policy to be tried out beside those in force.
    bound : callable, optional
        ``(request) -> Amounts``: the worst case of a call, for modules that hold it; None: cannot be bounded.
    tell_budget : bool
        Whether the model is told what is left, behind its system prompt.

    Raises
    ------
    InputError
        If a choice is none of those named, a limit is none, a part is not of its kind, or the policy is not one that
        can be started.
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
        policy: PolicySpec | OpenPolicy | Shadowed | None = None,
        shadow: Shadowed | None = None,
        bound: Callable[[ModelRequest], Amounts] | None = None,
        tell_budget: bool = False,
    ) -> None:
        if offer not in ("automatic", "by-hand"):
            raise InputError("offer", expected="automatic or by-hand", got=offer)
        check_kind("modes", modes, ModeRegistry, expected="a ModeRegistry of the config")
        check_kind("tools", tools, (ToolRegistry, type(None)), expected="a ToolRegistry, or None")
        check_kind("sessions", sessions, (Sessions, type(None)), expected="Sessions, or None")
        check_kind("events", events, (Events, type(None)), expected="Events, or None")
        check_kind("tell_budget", tell_budget, bool, expected="True or False")
        _check_can("client", client, "complete")
        if recorder is not None:
            _check_can("recorder", recorder, "node")
        if authorizer is not None:
            _check_can("authorizer", authorizer, "allows_call")
        if bound is not None and not callable(bound):
            raise InputError("bound", expected="a function of a request, or None", got=bound)
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
        self._limits = RuntimeLimits(policy, shadow)
        self.runner = SubagentRunner(self.sessions, self)

    async def send(
        self,
        session: Session,
        prompt: str,
        *,
        tool_names: Sequence[str] | None = None,
        context: RunContext | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> AgentResponse:
        """Run a turn.

        Parameters
        ----------
        session : Session
            Whose conversation; it is held for the whole run.
        prompt : str
            What is said. Empty: nothing; so a run goes on after an approval. With or without words, a call that
            still waits for a person's answer is given up then: it does not run, and the model is told so.
        tool_names : sequence of str or None
            Narrows the mode's tools; None: all of them, empty: none.
        context : RunContext or None
            The budget and the ledger of this run, in place of the configured ones.
        groups : mapping of str to str or None
            Who runs it, for period budgets: ``{"team": "search"}``. The session and its participant are named already.

        Raises
        ------
        AgentError
            ``session_locked``, ``mode_not_configured``, ``mode_malformed``, ``run_not_permitted``,
            ``tool_not_available`` or ``call_not_authorized``.
        UnitMismatch
            If a subagent asks in another unit than its path's floor was measured in; nothing was started.
        InputError
            If an argument is not of its kind; nothing has begun then.
        Exception
            Whatever the client raised; the run is failed then.
        """
        _check_arguments(session, prompt, tool_names, context)
        mode = self.modes.resolve(session.mode)
        runtime = AsyncioRuntime()
        run_id = new_run_id() if context is None or _in_use(context) else context.root_run_id
        if context is None:
            context = RunContext.root(run_id, self.root_budget(mode, session), clock=runtime)
        if context.too_deep():
            raise not_permitted(f"it is nested {context.depth} deep, at or below the fourth level")
        model, model_from = self.model_of(mode, session)
        check_units(self._limits.runtime_floors, self.modes, mode, session.provider or "unknown", model)
        tree = Tree(self, context, runtime, depth=context.depth, groups=groups_of(session, groups))
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
        shared = self._limits.shared_ledger
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

    def close(self) -> None:
        """Close the policies that were opened here; what is on disk stays."""
        self._limits.close()

    def __enter__(self) -> AgentRuntime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def limits(self) -> RuntimeLimits:
        """What is asked besides each run's ledger."""
        return self._limits

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
            error = conversation.error or record.error
            session.run = replace(
                session.run,
                status=closing.outcome.value,
                finish_reason=closing.finish_reason,
                stopped_because=closing.stopped_because,
                tool_calls=tuple(conversation.called),
                failure=closing.failure,
                failure_detail=None if error is None else words_of(error),
                warnings=record.all_warnings,
            )
        if closing.outcome is not Outcome.AWAITING_APPROVAL:
            self.events.emit(_end_of(conversation, record))


def _end_of(conversation: Conversation, record: NodeRecord) -> Event:
    place, closing = conversation.place, closing_of(conversation, record)
    usage, tree = place.tree.usage(place.path), RunUsage.of_tree(place.tree.ledger.ledger)
    if closing.outcome is Outcome.FAILED:
        return RunFailed(
            run_id=place.run_id,
            session_key=conversation.session.key,
            failure=closing.failure or closing.outcome.value,
            steps=usage.steps,
            tree_steps=tree.steps,
            at=_now(),
            warnings=record.all_warnings,
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
        warnings=record.all_warnings,
    )


def _check_can(what: str, part: object, verb: str) -> None:
    if not callable(getattr(part, verb, None)) or isinstance(part, type):
        raise InputError(what, expected=f"an object with a method {verb}", got=part)


def _check_arguments(
    session: Session, prompt: str, tool_names: Sequence[str] | None, context: RunContext | None
) -> None:
    check_kind("session", session, Session, expected="a Session, as runtime.sessions.session(scope) opens one")
    check_kind("prompt", prompt, str, expected="text, empty to go on after an approval")
    check_kind("context", context, (RunContext, type(None)), expected="a RunContext, or None for a budget of its own")
    names = () if tool_names is None else tool_names
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InputError("tool_names", expected="names of tools in a list, or None for all", got=tool_names)


def _in_use(context: RunContext) -> bool:
    """Whether a context's root run id names a run that has taken place already."""
    ledger = context.ledger
    return context.is_child() or ledger.steps > 0 or ledger.unmetered_runs > 0


def _now() -> str:
    return datetime.now(UTC).isoformat()
