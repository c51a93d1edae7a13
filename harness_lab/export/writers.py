"""Export: one writer per target, each read back before it counts.

A writer turns a policy into files and says what the target cannot express; nothing is rounded or dropped silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness_lab.errors import InputError
from harness_lab.export.carry import carry
from harness_lab.export.config import TunedConfig
from harness_lab.export.document import MODES, Evidence, Mode, Provenance
from harness_lab.export.forms.text import quoted
from harness_lab.export.targets import TARGETS
from harness_lab.export.targets.base import Draft, Target
from harness_lab.policies import PolicySpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.export.carry import Derive, StandIns
    from harness_lab.export.document import AgentLimits
    from harness_lab.export.targets.base import Carried, Files, Loss, Values

UNKNOWN = Provenance(date="1970-01-01", harness_lab="unknown")
"""Stands in where a policy is exported that has no config."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Export:
    """A policy in the form of a target.

    Parameters
    ----------
    target : Target
        Where it goes.
    form : str
        In which language.
    files : mapping of str to str
        Contents by path, relative to where the target looks for them.
    carried : tuple of Carried
        Every value that was written, with unit, scope, and what is to be known of it.
    losses : tuple of Loss
        Values that the target cannot express, and what that loses. Empty: the files mean the same.
    defaults : tuple of str
        What the target does of its own where the policy sets no limit.
    settings : dict
        What the files hold, by key.
    evidence : tuple of Evidence
        What stands behind values that were derived again for another scope.
    """

    target: Target
    form: str
    files: Files
    carried: tuple[Carried, ...]
    losses: tuple[Loss, ...]
    defaults: tuple[str, ...]
    settings: Values
    evidence: tuple[Evidence, ...] = ()

    @property
    def carries_nothing(self) -> bool:
        """Whether there was something to carry and none of it is in the files: loaded there, they limit nothing."""
        return bool(self.target.knobs and self.losses) and not (self.carried or self.agents_back())

    @property
    def file(self) -> str:
        """Usual path of the first file."""
        return next(iter(self.files))

    @property
    def text(self) -> str:
        """Content of the only file; several are told apart by a line each."""
        if len(self.files) == 1:
            return self.files[self.file]
        return "\n".join(f"--- {path}\n{text}" for path, text in self.files.items())

    def read_back(self) -> PolicySpec:
        """Return what the target enforces when it is told these files, as a policy that can be simulated.

        What it holds single agents to is beside it: :meth:`agents_back`.
        """
        return read_back(self.target, self.files, form=self.form)

    def agents_back(self) -> tuple[AgentLimits, ...]:
        """Return what the target holds single agents to when it is told these files."""
        return read_told(self.target, self.files, form=self.form).agents

    def unsimulated(self) -> tuple[str, ...]:
        """Return what of the files is not simulated when they are read back, or only nearly, a line each."""
        return read_told(self.target, self.files, form=self.form).unsimulated

    def to_frame(self) -> pd.DataFrame:
        """Return one row per value: ``value, key, written, unit, scope, note``; what is lost has no key."""
        told = ((one.note, one.adjusted, one.reported and f"reported: {one.reported}") for one in self.carried)
        notes = ["; ".join(text for text in texts if text) for texts in told]
        rows: list[tuple[Any, ...]] = [
            (c.value, c.key, c.written, c.unit, c.scope, note) for c, note in zip(self.carried, notes, strict=True)
        ]
        rows += [(loss.value, None, None, None, None, f"lost: {loss.means}") for loss in self.losses]
        return pd.DataFrame(rows, columns=["value", "key", "written", "unit", "scope", "note"])

    def explain(self) -> str:
        """Return what the files mean and what to do next."""
        return (
            f"{self.target.title} enforces the values above in its own unit and scope; what it cannot express is not "
            "limited there. Limits that it has of its own stay as they are.\n"
            "Next: check_export(...) simulates what it would decide otherwise, on the same draws, and what that costs."
        )

    def summary(self) -> str:
        """Return what was written and what is lost, in plain text."""
        lines = [f"{self.target.name} ({self.form}): {', '.join(self.files)}"]
        lines += [f"  carries nothing: {self.target.title} would limit nothing"] if self.carries_nothing else []
        lines += [f"  {one}" for one in self.carried] + [f"  cannot be expressed: {loss}" for loss in self.losses]
        return "\n".join([*lines, *(f"  not limited here: {text}" for text in self.defaults)])

    def __repr__(self) -> str:
        return f"Export({self.target.name}, {self.form}, {len(self.carried)} carried, {len(self.losses)} lost)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def target_of(name: str | Target, *, what: str = "target") -> Target:
    """Return a target by name; `what` is what an error calls it.

    Raises
    ------
    InputError
        If there is none.
    """
    if isinstance(name, Target):
        return name
    if name not in TARGETS:
        raise InputError(what, expected=f"one of {', '.join(TARGETS)}", got=name)
    return TARGETS[name]


def export(
    config: TunedConfig | PolicySpec,
    target: str | Target,
    *,
    form: str | None = None,
    mode: Mode | None = None,
    derive: Derive | None = None,
    stand_ins: StandIns = MappingProxyType({}),
) -> Export:
    """Write a config for a target, and read it back.

    Parameters
    ----------
    config : TunedConfig or PolicySpec
        What to write.
    target : str or Target
        One of :data:`TARGETS`, or a target itself.
    form : str, optional
        Language of the file; the target's first if None.
    mode : {"enforce", "warn", "shadow"}, optional
        What the limits shall do there; the config's if None.
    derive : callable, optional
        Derives a value again where the target counts over another scope; see
        :func:`harness_lab.export.scopes.from_records`. Without, such a value is refused and listed as lost.
    stand_ins : mapping of str to StandIn
        By key of the knob: an amount that stands in for a value which the target cannot express; it is written where
        nothing else is, and the value stays listed as lost.

    Raises
    ------
    InputError
        If the target or form does not exist, or the target has no such mode: written anyhow, its limits would bite.
    """
    place = target_of(target)
    chosen = _form(place, form)
    whole = config if isinstance(config, TunedConfig) else TunedConfig(config, provenance=UNKNOWN)
    draft = Draft(config=_in_mode(whole, place, mode))
    carry(draft, place, derive, stand_ins)
    files = place.forms[chosen].write(draft.values, _header(whole, draft, place))
    _check(place.forms[chosen].read(files), draft.values, place.name)
    return Export(
        target=place,
        form=chosen,
        files=files,
        carried=tuple(draft.carried),
        losses=tuple(draft.losses),
        defaults=tuple(_defaults(place, draft)),
        settings=draft.values,
        evidence=tuple(draft.evidence),
    )


def read_back(target: str | Target, files: Mapping[str, str] | str, *, form: str | None = None) -> PolicySpec:
    """Return what a target enforces when it is told these files, as a policy that can be simulated.

    Parameters
    ----------
    target : str or Target
        One of :data:`TARGETS`, or a target itself.
    files : mapping of str to str, or str
        Contents by path, or the content of the only file.
    form : str, optional
        Language; the target's first if None.

    Raises
    ------
    InputError
        If they cannot be read.
    """
    return read_told(target, files, form=form).policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a target enforces when it is told something.

    Parameters
    ----------
    policy : PolicySpec
        For every run and agent.
    agents : tuple of AgentLimits
        For single agents, by name.
    unsimulated : tuple of str
        What no policy answers as the target does, a line each.
    """

    policy: PolicySpec
    agents: tuple[AgentLimits, ...] = ()
    unsimulated: tuple[str, ...] = ()


def read_told(target: str | Target, files: Mapping[str, str] | str, *, form: str | None = None) -> Told:
    """Return what a target enforces when it is told these files, with what it holds single agents to.

    Parameters and errors are those of :func:`read_back`.
    """
    place = target_of(target)
    language = place.forms[_form(place, form)]
    return told(place, lambda: language.read({"": files} if isinstance(files, str) else files))


def told(place: Target, values: Callable[[], Values]) -> Told:
    """Return what a target enforces when it is told the values that a callable reads.

    Raises
    ------
    InputError
        If they cannot be read, or are no settings of it.
    """
    try:
        said = values()
        agents, unsimulated = place.agents(said), place.unsimulated(said)
        if "policy" in said:
            return Told(policy=PolicySpec.from_dict(said["policy"]), agents=agents)
        modules = place.model(said)
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        got = f"{type(error).__name__}: {error}"
        raise InputError(f"files for {place.name}", expected="settings as they were written", got=got) from None
    policy = PolicySpec(name=f"as {place.name} enforces it", modules=modules, at_limit=place.at_limit)
    return Told(policy=policy, agents=agents, unsimulated=unsimulated)


def _form(place: Target, form: str | None) -> str:
    chosen = form if form is not None else next(iter(place.forms))
    if chosen not in place.forms:
        raise InputError(f"form of {place.name}", expected=f"one of {', '.join(place.forms)}", got=chosen)
    return chosen


def _in_mode(config: TunedConfig, place: Target, mode: Mode | None) -> TunedConfig:
    chosen = config.mode if mode is None else mode
    if chosen not in MODES:
        raise InputError("mode", expected=f"one of {', '.join(MODES)}", got=chosen)
    if chosen not in place.modes:
        hint = "It has no such mode, so that its limits would bite: mode 'enforce' writes them all the same"
        raise InputError(f"mode for {place.title}", expected=f"one of {', '.join(place.modes)}", got=chosen, hint=hint)
    changed = TunedConfig(
        config.policy, provenance=config.provenance, evidence=config.evidence, mode=chosen, agents=config.agents,
        prices=config.prices,
    )  # fmt: skip
    return changed if chosen != config.mode else config


def _header(config: TunedConfig, draft: Draft, place: Target) -> tuple[str, ...]:
    """Return what the comments say: where the file comes from, and unit and scope of each value."""
    version = f" {place.version}" if place.version else ""
    origin = "" if config.provenance is UNKNOWN else f", config sha256 {config.digest()}"
    lines = [f"harness-lab: policy {quoted(config.policy.name)} for {place.title}{version}{origin}"]
    for one in draft.carried:
        more = (one.adjusted, one.note, one.reported and f"reported: {one.reported}")
        told = "; ".join(text for text in more if text)
        lines.append(f"{one.key}: {one.unit}, {one.scope}{f'; {told}' if told else ''}")
    return tuple(lines)


def _defaults(place: Target, draft: Draft) -> list[str]:
    told = {one.key for one in draft.carried}
    return [f"{knob.key}: {knob.default}" for knob in place.knobs if knob.default and knob.key not in told]


def _check(back: Values, values: Values, target: str) -> None:
    """Hold what was read back against what was written; a difference is a fault of the writer."""
    written: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
    read = {key: value for key, value in back.items() if value is not None}
    if read != written:
        wrong = sorted(key for key in written.keys() | read.keys() if written.get(key) != read.get(key))
        got = {key: read.get(key) for key in wrong}
        raise InputError(f"export to {target}", expected=f"{ {key: written.get(key) for key in wrong} }", got=got)


__all__ = ["TARGETS", "Export", "export", "read_back", "target_of"]
