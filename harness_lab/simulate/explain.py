"""One run, replayed alone: every question, answer, settlement, refusal and stop, with its time and reason."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError
from harness_lab.files import write_text
from harness_lab.settlements import Settlements
from harness_lab.simulate.chrome import chrome_trace
from harness_lab.simulate.engines import Choice
from harness_lab.simulate.manifest import manifest_of
from harness_lab.simulate.rows import calls_frame, nodes_frame
from harness_lab.simulate.trace import Tracing, events_frame
from harness_lab.usage import count

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

    from harness_lab.policies import PolicySpec
    from harness_lab.simulate.experiment import Experiment

_SHOWN = 40
_WORDS = {"spawn": "asks to start", "admit": "asks for", "answer": "is answered about", "settle": "settles"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Timeline:
    """Everything that happened in one run.

    Parameters
    ----------
    run : str
        Its name in the experiment.
    policy, scenario : str
        Under which policy, in which scenario.
    events : DataFrame
        One row for each question, answer and piece of news, in order:

        - ``time_ns`` (virtual time), ``event`` (``spawn``, ``admit``, ``answer`` after waiting, ``settle``, ``close``,
          ``cancel``, ``stop``), ``node`` (``0`` the root), ``agent``, ``call``, ``attempt``, ``kind``;
        - ``answer``: ``granted``, ``waits`` or ``refused``; how a settled step or a closed node ended;
        - ``reason``: every limit that fell short with its figures, or what stopped it;
        - ``deadline_ns``; ``model``: another one than asked for;
        - ``asked_*``, ``granted_*``, ``spent_*`` by channel (NA: nothing declared, no ceiling, unknown), tokens and
          nano-dollars; ``state``: how full each limit over the node was afterwards, used or held.
    settlements : Settlements
        Its rows, with calls: the same as among all runs of the experiment.
    manifest : mapping
        What is needed to get it again.
    """

    run: str
    policy: str
    scenario: str
    events: pd.DataFrame
    settlements: Settlements
    manifest: Mapping[str, Any]

    @property
    def nodes(self) -> pd.DataFrame:
        """Its node rows."""
        return self.settlements.nodes

    def to_frame(self) -> pd.DataFrame:
        """Return the events (a copy)."""
        return self.events.copy()

    def summary(self) -> str:
        """Return how the run ended, what stopped what, and the first events in words."""
        root = self.nodes[self.nodes["parent"].isna()].iloc[0]
        refused = self.events[self.events["answer"] == "refused"]
        lines = [
            f"Run {self.run} under {self.policy} ({self.scenario}): {root['outcome']}"
            f"{'' if root['stopped_by'] is None or root.isna()['stopped_by'] else ' by ' + root['stopped_by']} after "
            f"{root['duration_ns'] / NS_PER_S:,.1f} s; {len(self.nodes)} node(s), {len(self.events)} event(s), "
            f"{len(refused)} refusal(s)."
        ]
        lines += [self._line(row) for row in self.events.head(_SHOWN).to_dict("records")]
        left = len(self.events) - _SHOWN
        return "\n".join([*lines, *([f"... and {left} more: see to_frame()"] if left > 0 else [])])

    def explain(self) -> str:
        """Return what the timeline means, and what to do next."""
        return (
            "The run was simulated again, alone: its draws are named by seed, run, node, call and purpose, so it is "
            "the same run as among all others, event for event. Nothing is asked during a call; a call that was cut "
            "off is settled as abandoned, with unknown usage.\n"
            "Next: plot() draws the tree over time; to_chrome_trace(FILE) writes a file for ui.perfetto.dev."
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the tree over time; see :func:`harness_lab.plots.plot_timeline`."""
        from harness_lab.plots import plot_timeline

        return plot_timeline(self.nodes, ax=ax)

    def chrome_trace(self) -> dict[str, Any]:
        """Return the run as a trace of Chrome's format; see :func:`harness_lab.simulate.chrome.chrome_trace`."""
        title = f"run {self.run}, {self.policy}, {self.scenario}"
        return chrome_trace(self.events, self.nodes, title=title)

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> Path:
        """Write the trace file, which ui.perfetto.dev and chrome://tracing open; return its path."""
        return write_text(path, json.dumps(self.chrome_trace(), separators=(",", ":")) + "\n")

    @staticmethod
    def _line(row: Any) -> str:
        what = "itself" if row["kind"] == "node" else f"{row['kind']} call {row['call']}"
        verb = _WORDS.get(row["event"], f"{row['event']}s")
        reason = f": {row['reason']}" if row["reason"] else ""
        state = f"  [{row['state']}]" if row["state"] else ""
        said = f" -> {row['answer']}" if row["answer"] else ""
        return f"{row['time_ns'] / NS_PER_S:>10.3f} s  {row['agent']} {row['node']} {verb} {what}{said}{reason}{state}"

    def __repr__(self) -> str:
        return f"Timeline(run {self.run}, policy {self.policy}, {len(self.events)} events)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def explain(
    experiment: Experiment, run: int | str, *, policy: str | None = None, scenario: str | None = None
) -> Timeline:
    """Replay one run of an experiment alone, and keep everything that happened.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    run : int or str
        The run, as in the column ``run``. Of many runs at once (:class:`harness_lab.simulate.Arrivals`) it is
        ``"period.number"``, and the whole period is simulated, since its runs meet one another.
    policy : str, optional
        Name of the policy; may be left out where there is one.
    scenario : str, optional
        Name of the scenario; the first if None.

    Raises
    ------
    InputError
        If there is no such run, policy or scenario.
    """
    name = str(run)
    period = count("run", _whole(name.partition(".")[0]), maximum=experiment.runs - 1)
    spec, place = named_policy(experiment.policies, policy), scenario or experiment.scene()[0].name
    world, tracing = experiment.world(place), Tracing(spec, name=spec.name)
    wanted: Any = tracing
    rows, _ = world.block(wanted, [period], engine="kernel", keep_calls=True, keep_decisions=False)
    nodes = world.finish(nodes_frame(rows.nodes, policy=spec.name, scenario=place, backend=experiment.backend))
    table = Settlements.from_columns(nodes, calls_frame(rows.calls, policy=spec.name, scenario=place)).where(run=name)
    if not len(table):
        known = nodes["run"].unique().tolist()
        raise InputError("run", expected=f"one of {', '.join(known[:5])}{' ...' if len(known) > 5 else ''}", got=run)
    events = with_agents(_events_of(tracing, name), table)
    return Timeline(
        run=name, policy=spec.name, scenario=place, events=events, settlements=table,
        manifest=manifest_of(experiment, engines={(0, 0): Choice("kernel", "it tells every decision")}),
    )  # fmt: skip


def with_agents(events: pd.DataFrame, table: Settlements) -> pd.DataFrame:
    """Return events with the role of each node beside its name."""
    agents = dict(zip(table.nodes["node"], table.nodes["agent"], strict=True))
    events.insert(3, "agent", events["node"].map(agents).astype("string"))
    return events


def _events_of(tracing: Tracing, run: str) -> pd.DataFrame:
    """Return the events of one run: of its own policy, or of its tree under the policy that its period shares."""
    for name, traced in tracing.started:
        if name == run:
            return events_frame(traced.events)
    _, shared = tracing.started[0]
    number = int(run.partition(".")[2])
    return events_frame([event for event, tree in zip(shared.events, shared.trees, strict=True) if tree == number])


def _whole(text: str) -> object:
    return int(text) if text.isdecimal() else text


def named_policy(policies: tuple[PolicySpec, ...], name: str | None) -> PolicySpec:
    """Return a policy by name; the only one if no name is given.

    Raises
    ------
    InputError
        If there is none of that name, or several and no name.
    """
    names = [policy.name for policy in policies]
    if name is None and len(policies) == 1:
        return policies[0]
    if name not in names:
        raise InputError("policy", expected=f"one of {', '.join(names)}", got=name)
    return policies[names.index(name)]
