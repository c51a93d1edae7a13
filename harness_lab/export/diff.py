"""What changes from one tuned config to another, in words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from harness_lab.export.values import values_of
from harness_lab.floors import FloorTable

if TYPE_CHECKING:
    from harness_lab.export.config import TunedConfig
    from harness_lab.export.document import AgentLimits
    from harness_lab.floors import FloorRow
    from harness_lab.policies import ModuleSpec

_UNITS: Final = {
    "max_steps": "model calls", "calls": "model calls", "max_iterations": "calls", "max_calls": "starts",
    "max_cost_usd": "USD", "cost_usd": "USD", "max_seconds": "s", "timeout_s": "s", "rolling_s": "s", "max_wait_s": "s",
    "input": "prompt tokens", "tokens": "tokens", "fresh": "newly presented tokens", "max_depth": "levels",
    "max_concurrent": "children at once",
}  # fmt: skip
_CEILINGS: Final = frozenset(_UNITS) - {"rolling_s", "max_wait_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference.

    Parameters
    ----------
    what : str
        Which value, as ``module.parameter``, or what else of the file.
    before, after : object
        What it was and is; None: no limit, or not there.
    words : str
        The difference in words.
    """

    what: str
    before: Any
    after: Any
    words: str

    def __str__(self) -> str:
        return f"{self.what}: {self.words}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ConfigDiff:
    """Everything in which two configs differ.

    Parameters
    ----------
    changes : tuple of Change
        Limits first, then what stands behind them, then where they came from. Empty: the same config.
    """

    changes: tuple[Change, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per difference: ``what, before, after, words``."""
        rows = [{f.name: getattr(one, f.name) for f in fields(one)} for one in self.changes]
        return pd.DataFrame(rows, columns=["what", "before", "after", "words"])

    def summary(self) -> str:
        """Return the differences, a line each."""
        return "\n".join(f"- {one}" for one in self.changes) or "The two configs are the same."

    def explain(self) -> str:
        """Return what the words mean."""
        return (
            "Looser lets more through, tighter less; whether that helps is for `harness-lab compare` to say, on the "
            "same luck. A change of evidence alone changes no limit."
        )

    def __repr__(self) -> str:
        return f"ConfigDiff({len(self.changes)} changes)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def diff(before: TunedConfig, after: TunedConfig) -> ConfigDiff:
    """Say in words what changes from one config to another.

    Parameters
    ----------
    before, after : TunedConfig
        The two.

    Returns
    -------
    ConfigDiff
        Limits, floors, agents, prices, mode, evidence and provenance that differ.
    """
    parts = (_policy(before, after), _agents(before, after), _rest(before, after), _evidence(before, after))
    return ConfigDiff(changes=tuple(change for part in parts for change in part))


def _policy(before: TunedConfig, after: TunedConfig) -> list[Change]:
    old, new = _values(before, after), _values(after, before)
    floors = [name for name in old.keys() | new.keys() if isinstance(old.get(name, new.get(name)), FloorTable)]
    plain = [name for name in [*old, *(n for n in new if n not in old)] if name not in floors]
    found = [_change(name, old.get(name), new.get(name)) for name in plain if old.get(name) != new.get(name)]
    for name in floors:
        found += _floors(old.get(name, FloorTable()), new.get(name, FloorTable()))
    if before.policy.name != after.policy.name:
        words = f"renamed from {before.policy.name!r} to {after.policy.name!r}"
        found.append(Change(what="policy", before=before.policy.name, after=after.policy.name, words=words))
    return found


def _values(config: TunedConfig, other: TunedConfig) -> dict[str, Any]:
    """Return every parameter of a config's modules; of those that the other has not, only what says something."""
    theirs = {label for label, _ in _modules(other)}
    said = {value.name for value in values_of(config.policy)}
    found: dict[str, Any] = {}
    for label, module in _modules(config):
        for field in fields(module):  # type: ignore[arg-type]
            known = label in theirs or f"{module.kind}.{field.name}" in said
            if field.name not in ("kind", "observer") and known:
                found[f"{label}.{field.name}"] = getattr(module, field.name)
    found["max_wait_s"] = config.policy.max_wait_s
    limit = config.policy.at_limit
    return found | ({} if limit is None else {f"at_limit.{k}": v for k, v in limit.to_dict().items()})


def _modules(config: TunedConfig) -> list[tuple[str, ModuleSpec]]:
    """Return the modules with their labels: the kind, and from the second of a kind on its number."""
    seen: dict[str, int] = {}
    found = []
    for module in config.policy.modules:
        number = seen[module.kind] = seen.get(module.kind, 0) + 1
        found.append((module.kind if number == 1 else f"{module.kind} {number}", module))
    return found


def _change(name: str, before: Any, after: Any) -> Change:
    parameter = name.rpartition(".")[2]
    unit = _unit(name, parameter)
    words = f"{_said(before, unit)} -> {_said(after, unit)}"
    if parameter in _CEILINGS and not isinstance(before, bool):
        words += _direction(before, after)
    return Change(what=name, before=before, after=after, words=words)


def _unit(name: str, parameter: str) -> str:
    if name.startswith("agent "):
        return "model calls" if parameter == "max_calls" else ""
    return _UNITS.get(parameter, "")


def _said(value: Any, unit: str) -> str:
    if value is None:
        return "no limit" if unit else "nothing"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"${value:,}" if unit == "USD" else f"{value:,} {unit}".strip()
    return repr(value)


def _direction(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return " (tighter: a limit where there was none)" if before is None else " (looser: the limit is gone)"
    word = "looser" if after > before else "tighter"
    share = f", {(after - before) / before:+.1%}" if before else ""
    return f" ({word}{share})"


def _floors(before: FloorTable, after: FloorTable) -> list[Change]:
    old, new = ({str(row.key): row for row in table.rows} for table in (before, after))
    found = []
    for key in [*old, *(k for k in new if k not in old)]:
        was, now = old.get(key), new.get(key)
        if was != now:
            words = f"{_floor(was)} -> {_floor(now)}"
            found.append(Change(what=f"floor of {key}", before=was, after=now, words=words))
    return found


def _floor(row: FloorRow | None) -> str:
    if row is None:
        return "no row"
    return f"{'unmeasured' if row.floor is None else f'{row.floor:,} tokens'} (n = {row.n})"


def _agents(before: TunedConfig, after: TunedConfig) -> list[Change]:
    old, new = ({agent.name: agent for agent in config.agents} for config in (before, after))
    found = []
    for name in [*old, *(n for n in new if n not in old)]:
        was, now = old.get(name), new.get(name)
        if was is None or now is None:
            words = f"added, {_held_to(now)}" if now is not None else f"gone, with it {_held_to(was)}"
            found.append(Change(what=f"agent {name!r}", before=was, after=now, words=words))
            continue
        for field in ("max_calls", "model", "disallowed_tools", "description"):
            one, two = getattr(was, field), getattr(now, field)
            if one != two:
                found.append(_change(f"agent {name!r}.{field}", one, two))
    return found


def _held_to(agent: AgentLimits | None) -> str:
    """Say what an agent's entry limits."""
    told = (
        [] if agent is None else [(name, getattr(agent, name)) for name in ("max_calls", "model", "disallowed_tools")]
    )
    said = [
        f"{name} {_said(list(value) if isinstance(value, tuple) else value, _unit('agent ', name))}"
        for name, value in told
        if value is not None and value != ()
    ]
    return ", ".join(said) or "without limits of its own"


_MODES: Final = {
    "enforce": "what is over a limit is refused",
    "warn": "what is over a limit is admitted with a warning",
    "shadow": "what is over a limit is only written down",
}


def _rest(before: TunedConfig, after: TunedConfig) -> list[Change]:
    found = []
    if before.mode != after.mode:
        words = f"{before.mode} -> {after.mode} (now {_MODES[after.mode]})"
        found.append(Change(what="mode", before=before.mode, after=after.mode, words=words))
    if before.prices != after.prices:
        words = "other prices" if before.prices and after.prices else "added" if after.prices else "gone"
        found.append(Change(what="prices", before=before.prices, after=after.prices, words=words))
    for name in ("date", "harness_lab", "seed", "experiment_sha256", "data_sha256", "stale_after"):
        one, two = getattr(before.provenance, name), getattr(after.provenance, name)
        if one != two:
            words = f"{_short(one)} -> {_short(two)}"
            found.append(Change(what=f"provenance.{name}", before=one, after=two, words=words))
    return found


def _short(value: Any) -> str:
    text = "not stated" if value is None else str(value)
    return f"{text[:12]}..." if len(text) == 64 else text


def _evidence(before: TunedConfig, after: TunedConfig) -> list[Change]:
    old, new = ({one.value: one for one in config.evidence} for config in (before, after))
    found = []
    for value in [*old, *(v for v in new if v not in old)]:
        was, now = old.get(value), new.get(value)
        if was is None or now is None:
            words = f"stated now (n = {now.n:,})" if now is not None else "no longer stated"
            found.append(Change(what=f"evidence for {value}", before=was, after=now, words=words))
        elif was != now:
            names = [name for name in type(now).model_fields if getattr(was, name) != getattr(now, name)]
            words = "; ".join(f"{name} {_short(getattr(was, name))} -> {_short(getattr(now, name))}" for name in names)
            found.append(Change(what=f"evidence for {value}", before=was, after=now, words=words))
    return found
