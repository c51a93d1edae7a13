"""What the targets are made of: knobs with their unit and scope, and what is carried and lost on the way to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from harness_lab.export.forms.text import quoted

if TYPE_CHECKING:
    from harness_lab.export.config import TunedConfig
    from harness_lab.export.document import AgentLimits, Evidence, Mode
    from harness_lab.export.targets.amounts import Amount
    from harness_lab.export.values import Quantity, Scope
    from harness_lab.policies import AtLimit, ModuleSpec

Files = Mapping[str, str]
"""Contents by path, relative to where the target looks for them."""
Values = dict[str, Any]
"""What a target is told, by key of the knob. None: written as no limit; absent: not written."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Something of a config that a target cannot express.

    Parameters
    ----------
    value : str
        Which, as ``module.parameter = value``, or a module whose way of answering is lost.
    means : str
        What is lost.
    """

    value: str
    means: str

    def __str__(self) -> str:
        return f"{self.value}: {self.means}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A value as it stands in a target's file.

    Parameters
    ----------
    value : str
        ``module.parameter`` that it comes from.
    key : str
        Its name there.
    written : object
        Its value there.
    unit, scope : str
        What the target counts, and over what.
    note : str
        How the target's limit differs; empty where it does not.
    adjusted : str
        How the value was changed to fit; empty where it was not.
    reported : str
        What is publicly reported against the knob; empty: nothing known.
    """

    value: str
    key: str
    written: Any
    unit: str
    scope: str
    note: str = ""
    adjusted: str = ""
    reported: str = ""

    def __str__(self) -> str:
        more = [self.adjusted, self.note, self.reported and f"reported not to hold: {self.reported}"]
        told = "; ".join(text for text in more if text)
        return f"{self.key} = {self.written} ({self.unit}, {self.scope}) from {self.value}{f': {told}' if told else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One setting of a target.

    Parameters
    ----------
    key : str
        Its name; dots for nesting.
    quantity : str
        What it limits, in our words.
    bounds : tuple of str
        The scopes that it bounds exactly, the best first.
    unit, scope : str
        What the target counts, and over what, in its words.
    amount : Amount
        How our amount is written there.
    note : str
        How the limit differs from ours.
    reported : str
        What is publicly reported against it.
    none : {"omit", "null"}
        How "no limit" is written: by leaving it out, or as null, where leaving it out means a default.
    default : str
        What the target does when it is left out; empty: nothing.
    missing : str
        The same where the writer never leaves it out.
    """

    key: str
    quantity: Quantity
    bounds: tuple[Scope, ...]
    unit: str
    scope: str
    amount: Amount
    note: str = ""
    reported: str = ""
    none: Literal["omit", "null"] = "omit"
    default: str = ""
    missing: str = ""


class Form(Protocol):
    """A language that a target's settings can be written in."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Where its files usually lie, from the top of a project; ``*`` stands for a name."""

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the files; `header` goes into comments where the language has any."""

    def read(self, files: Files) -> Values:
        """Return what the files hold.

        Raises
        ------
        InputError
            If they cannot be read.
        """


@dataclass(slots=True, kw_only=True)
class Draft:
    """A config on its way to a target: what is carried so far, and what is lost.

    Parameters
    ----------
    config : TunedConfig
        Where it comes from.
    values : dict
        What the target is told.
    carried, losses : list
        What was written, and what could not be.
    done : set of str
        Names of the policy's values that are dealt with.
    evidence : list of Evidence
        What stands behind values that were derived again.
    """

    config: TunedConfig
    values: Values = field(default_factory=dict)
    carried: list[Carried] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    evidence: list[Evidence] = field(default_factory=list)


def _nothing(draft: Draft) -> None:
    """Carry nothing more."""


def _none(values: Values) -> tuple[Any, ...]:
    """Return nothing."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A place that limits are exported to.

    Parameters
    ----------
    name : str
        As given to ``--target``.
    title : str
        As its makers call it.
    forms : dict of str to Form
        Languages by name, the usual one first.
    knobs : tuple of Knob
        Its settings.
    model : callable
        Returns the modules that answer as the target does when it is told `values`.
    holds : bool
        Whether asks of children and worst cases of calls are held there before they start, as ours are.
    modes : tuple of str
        What a limit can do there; see :data:`harness_lab.export.document.MODES`.
    rest : callable
        Carries what is no knob (agents, period budgets, floors).
    at_limit : AtLimit or None
        What happens there at a limit, where it is more than a stop.
    version : str
        The version whose settings these are.
    agents : callable
        Returns what the target holds single agents to when it is told `values`.
    unsimulated : callable
        Returns what of `values` no policy answers as the target does, a line each; it is not in a simulation, or only
        nearly.
    """

    name: str
    title: str
    forms: Mapping[str, Form]
    knobs: tuple[Knob, ...]
    model: Callable[[Values], tuple[ModuleSpec, ...]]
    holds: bool = False
    modes: tuple[Mode, ...] = ("enforce",)
    rest: Callable[[Draft], None] = _nothing
    at_limit: AtLimit | None = None
    version: str = ""
    agents: Callable[[Values], tuple[AgentLimits, ...]] = _none
    unsimulated: Callable[[Values], tuple[str, ...]] = _none


def no_children(draft: Draft, key: str, written: Any, unit: str, *, instead_of: tuple[str, ...]) -> None:
    """Turn children off with one setting, instead of those that bound how many there may be.

    Parameters
    ----------
    draft : Draft
        Of a policy under which no child may start.
    key, written, unit : str, object, str
        The setting, its value, and what it counts.
    instead_of : tuple of str
        Keys of the knobs that say nothing then.
    """
    limits = draft.config.policy.module("tree_limits")
    names = ("max_depth", "max_concurrent", "max_calls")
    zero = next(name for name in names if getattr(limits, name) == 0)
    draft.values = {key: written} | {k: v for k, v in draft.values.items() if k not in instead_of}
    draft.carried = [one for one in draft.carried if one.key not in instead_of]
    draft.carried.append(Carried(value=f"tree_limits.{zero}", key=key, written=written, unit=unit, scope="one session"))
    draft.done |= {f"tree_limits.{name}" for name in names}


def label(agent: str) -> str:
    """Return how an agent is named in texts: its name in quotes, escaped."""
    return f"agents[{quoted(agent)}]"


def agents_lost(draft: Draft, means: str, *, keeps: tuple[str, ...] = ()) -> None:
    """List what single agents lose that are in the config; `keeps` are the fields that the target has."""
    for agent in draft.config.agents:
        for name, amount in agent_values(agent):
            if name not in keeps:
                draft.losses.append(Loss(f"{label(agent.name)}.{name} = {amount}", means))


def agent_values(agent: AgentLimits) -> list[tuple[str, Any]]:
    """Return what an agent's entry limits, by field."""
    found = [
        ("max_calls", agent.max_calls),
        ("model", agent.model),
        ("disallowed_tools", list(agent.disallowed_tools) or None),
    ]
    return [(name, amount) for name, amount in found if amount is not None]
