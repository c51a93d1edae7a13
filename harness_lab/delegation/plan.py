"""A plan as data: nodes, their order, and what identifies them.

The identity of a node or plan depends on plan fields alone, never on what a native subagent returned, so a plan that
is replayed has the same identity although its results differ.

Source: the outer plan of Bernstein 3.23: same canonical form, same hashes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.delegation.canonical import content_hash, plain_json
from harness_lab.delegation.errors import PlanError
from harness_lab.delegation.rules import BERNSTEIN_3_23, OURS, DelegationRules
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

Tier = Literal["batch", "interactive"]


@dataclass(frozen=True, slots=True)
class DispatchNode:
    """One leaf of a plan, handed to a native subagent.

    Parameters
    ----------
    name : str
        Its name in the plan.
    target : str
        The native subagent that runs it, such as ``claude`` or ``codex``.
    model, effort : str
        Handed on as they are.
    prompt : str
        The instruction.
    result_schema : mapping
        JSON Schema of the result. Copied, so that nobody changes the node's identity by changing his own dict.
    tools : sequence of str
        Tools that the subagent may use; their order is part of the identity.
    background : bool
        Whether nobody waits for it.
    batch : bool
        Whether it runs on the batch tier, which is cheaper and not interactive.

    Raises
    ------
    InputError
        If the schema is no mapping, contains itself or is nested too deeply; if `tools` is one text.
    """

    name: str
    target: str
    model: str
    effort: str
    prompt: str
    result_schema: Mapping[str, Any]
    tools: tuple[str, ...] = ()
    background: bool = False
    batch: bool = False

    def __post_init__(self) -> None:
        copied = plain_json(self.result_schema, what="result_schema", rules=BERNSTEIN_3_23)
        if not isinstance(copied, dict):
            raise InputError("result_schema", expected="a mapping", got=self.result_schema)
        if isinstance(self.tools, str):
            raise InputError("tools", expected="a sequence of names", got=self.tools)
        object.__setattr__(self, "result_schema", copied)
        object.__setattr__(self, "tools", tuple(self.tools))

    @property
    def tier(self) -> Tier:
        """``batch`` or ``interactive``."""
        return "batch" if self.batch else "interactive"

    def node_hash(self, *, rules: DelegationRules = OURS) -> str:
        """Return the identity: the hash of the nine fields, the schema as it was given."""
        return content_hash(self.to_dict(), what=f"node {self.name!r}", rules=rules)

    def to_dict(self) -> dict[str, Any]:
        """Return the nine fields as JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "tools": list(self.tools)}


@dataclass(frozen=True, slots=True)
class OuterPlan:
    """An ordered plan; it may be empty.

    Parameters
    ----------
    nodes : sequence of DispatchNode
        In the order in which they are dispatched.

    Raises
    ------
    PlanError
        If two nodes have the same name.

    Examples
    --------
    >>> OuterPlan(()).plan_hash()
    'sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945'
    """

    nodes: tuple[DispatchNode, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen:
                raise PlanError(f"duplicate dispatch node name in plan: {node.name!r}")
            seen.add(node.name)

    def plan_hash(self, *, rules: DelegationRules = OURS) -> str:
        """Return the identity: the hash of the list of node hashes, in order."""
        return content_hash([node.node_hash(rules=rules) for node in self.nodes], rules=rules)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {"nodes": [node.to_dict() for node in self.nodes]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OuterPlan:
        """Build a plan from what :meth:`to_dict` gave.

        Raises
        ------
        InputError
            If a node lacks a field or has one that does not exist.
        """
        try:
            return cls(tuple(DispatchNode(**node) for node in data["nodes"]))
        except (KeyError, TypeError) as error:
            names = ", ".join(field.name for field in fields(DispatchNode))
            raise InputError("plan", expected=f"nodes, each with {names}", got=str(error)) from None


def node_hash(node: DispatchNode, *, rules: DelegationRules = OURS) -> str:
    """Return a node's identity; see :meth:`DispatchNode.node_hash`."""
    return node.node_hash(rules=rules)


def plan_hash(plan: OuterPlan, *, rules: DelegationRules = OURS) -> str:
    """Return a plan's identity; see :meth:`OuterPlan.plan_hash`."""
    return plan.plan_hash(rules=rules)


def result_content_hash(payload: Any, *, rules: DelegationRules = OURS) -> str:
    """Return the hash of a validated result.

    Examples
    --------
    >>> result_content_hash({})
    'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    return content_hash(payload, what="native result", rules=rules)
