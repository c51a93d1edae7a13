"""Sessions: an address, a conversation, what the next run uses, and the record of the last one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harness_lab.agents.errors import AgentError
from harness_lab.errors import InputError, ReadError
from harness_lab.usage import count


@dataclass(frozen=True, slots=True)
class Participant:
    """Whom a session belongs to: a kind and an id, since 7 is another one among users than among teams.

    Parameters
    ----------
    type : str
        The kind, such as ``user``.
    id : str or int
        Which one of that kind.

    Raises
    ------
    InputError
        If the kind is no name, or the id neither text nor a whole number.
    """

    type: str
    id: str | int

    def __post_init__(self) -> None:
        if not isinstance(self.type, str) or not self.type:
            raise InputError("participant's type", expected="a name", got=self.type)
        if isinstance(self.id, bool) or not isinstance(self.id, (str, int)):
            raise InputError("participant's id", expected="text or a whole number", got=self.id)


ANYONE = Participant("anyone", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """The record of a session's last run.

    Parameters
    ----------
    id, mode, provider, model : str
        Which run, and on what it ran.
    model_from : {"session", "mode", "parent", "unknown"}
        Who named the model.
    status : str
        running, completed, exhausted, timed_out, cancelled, failed or awaiting_approval.
    finish_reason : str or None
        The provider's reason, ``budget_exhausted``, ``cancelled`` or ``awaiting_approval``; None: not ended, or failed.
    stopped_because : str or None
        Which limit cut it off; None: none did.
    tool_calls : tuple of str
        Names, in order.
    failure, failure_detail : str or None
        Code or class of the error; its text, for the operator, never for a model.
    warnings : tuple of str
        What its start and its last call were granted with, for the operator too.
    """

    id: str
    mode: str
    provider: str
    model: str
    model_from: str
    status: str = "running"
    finish_reason: str | None = None
    stopped_because: str | None = None
    tool_calls: tuple[str, ...] = ()
    failure: str | None = None
    failure_detail: str | None = None
    warnings: tuple[str, ...] = ()


class Session:
    """One participant's conversation under one scope; held for the whole of a run.

    Parameters
    ----------
    participant : Participant
        Whose it is.
    scope : str
        Which of their conversations.

    Raises
    ------
    InputError
        If either is something else.

    Attributes
    ----------
    messages : list of dict
        The conversation, oldest first; plain values.
    run : RunRow or None
        The last run.
    mode, provider, model : str or None
        What runs use; None: the default.
    max_steps : int or None
        The caller's own step limit for runs without a context; the operator's ceiling bounds it.
    """

    def __init__(self, participant: Participant, scope: str) -> None:
        if not isinstance(participant, Participant):
            raise InputError("participant", expected="a Participant, or none named", got=participant)
        if not isinstance(scope, str):
            raise InputError("scope", expected="text", got=scope)
        self.participant = participant
        self.scope = scope
        self.messages: list[dict[str, Any]] = []
        self.run: RunRow | None = None
        self.mode: str | None = None
        self.provider: str | None = None
        self.model: str | None = None
        self.max_steps: int | None = None
        self._held_by: str | None = None

    @property
    def key(self) -> str:
        """The address, the same in every process; the participant's kind is hashed."""
        kind = hashlib.sha1(self.participant.type.encode(), usedforsecurity=False).hexdigest()[:12]
        return f"session:{kind}:{self.participant.id}:{self.scope}"

    def using_mode(self, name: str | None) -> Session:
        """Set the mode of the runs to come; None: the default."""
        self.mode = _name_or_none("mode", name)
        return self

    def using_model(self, model: str | None, *, provider: str | None = None) -> Session:
        """Set the model, and maybe the provider, of the runs to come; None: the mode's."""
        self.model = _name_or_none("model", model)
        self.provider = _name_or_none("provider", provider) if provider is not None else self.provider
        return self

    def using_max_steps(self, steps: int) -> Session:
        """Set the step limit of runs without a context, at least 1; the operator's ceiling bounds it."""
        below = type(steps) is int and steps < 1
        self.max_steps = 1 if below else max(1, count("steps", steps))
        return self

    @property
    def held(self) -> bool:
        """Whether a run holds it."""
        return self._held_by is not None

    def hold(self, run_id: str) -> None:
        """Take it for a run.

        Raises
        ------
        AgentError
            ``session_locked``, while another run holds it.
        """
        if self._held_by is not None:
            raise AgentError("session_locked", f"Session [{self.scope}] is held by run {self._held_by}.")
        self._held_by = run_id

    def release(self, run_id: str) -> None:
        """Give it back; only the run that holds it can."""
        if self._held_by == run_id:
            self._held_by = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values to store; :meth:`Sessions.restore` reads them back, approvals that wait included."""
        names = ("scope", "messages", "mode", "provider", "model", "max_steps")
        run = None if self.run is None else asdict(self.run)
        return {"participant": asdict(self.participant), "run": run} | {n: getattr(self, n) for n in names}


class Sessions:
    """The harness that opens sessions by address; the same address is the same session.

    Notes
    -----
    In memory. An application that has to survive a restart stores :meth:`Session.to_dict` after each run.
    """

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}

    def session(self, scope: str, *, participant: Participant = ANYONE) -> Session:
        """Open the session of a participant under a scope."""
        session = Session(participant, scope)
        return self._open.setdefault(session.key, session)

    def restore(self, data: Mapping[str, Any]) -> Session:
        """Open a session as :meth:`Session.to_dict` wrote it.

        Raises
        ------
        ReadError
            If it is no such data.
        AgentError
            ``session_locked``, while a run holds the session of this address here.
        """
        try:
            stored = _read(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            told = f"{type(error).__name__}: {error}"
            got = list(data) if isinstance(data, Mapping) else data  # not the words of a conversation
            raise ReadError("session", expected="what Session.to_dict wrote", got=got, hint=told) from error
        session = self._open.setdefault(stored.key, stored)
        if session.held:
            raise AgentError("session_locked", f"Session [{session.scope}] is held by a run, and cannot be restored.")
        if session is not stored:
            for name in ("mode", "provider", "model", "max_steps", "messages", "run"):
                setattr(session, name, getattr(stored, name))
        return session


def _read(data: Mapping[str, Any]) -> Session:
    """Return a new session as it was stored."""
    session = Session(Participant(**data["participant"]), data["scope"])
    session.using_mode(data["mode"]).using_model(data["model"], provider=data["provider"])
    if data["max_steps"] is not None:
        session.using_max_steps(data["max_steps"])
    session.messages = [dict(message) for message in data["messages"]]
    run = data["run"]
    lists = {} if run is None else {name: tuple(run.get(name, ())) for name in ("tool_calls", "warnings")}
    session.run = None if run is None else RunRow(**{**run, **lists})
    return session


def _name_or_none(what: str, name: str | None) -> str | None:
    if name is None or (isinstance(name, str) and name):
        return name
    raise InputError(what, expected="a name, or None for the default", got=name)
