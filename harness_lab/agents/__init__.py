"""Agents in production: modes, tools, subagents, sessions, the loop that the simulator runs too, and its runtimes."""

from harness_lab.agents.approvals import PendingApproval, record_approval
from harness_lab.agents.asyncio_runtime import AsyncioRuntime
from harness_lab.agents.capped import CappedClient
from harness_lab.agents.client import ModelClient, ModelError, ModelRequest, ModelResponse, ToolCall, ToolSpec
from harness_lab.agents.driver import Driven, Turn, drive
from harness_lab.agents.envelope import RunUsage, SubagentResult
from harness_lab.agents.errors import AgentError
from harness_lab.agents.events import Event, Events, RunFailed, RunFinished, RunStarted
from harness_lab.agents.groups import Agents, Cancelled, Group, Operation, Settled, StartRefused
from harness_lab.agents.harness_agent import HarnessAgent, HarnessStopped
from harness_lab.agents.loop import Harness
from harness_lab.agents.modes import AgentMode, ModeRegistry, ModeReport
from harness_lab.agents.ports import Call, Child, Children, Model, PartialReply, Reply, Rest, Runtime, Work
from harness_lab.agents.readout import BudgetLeft
from harness_lab.agents.record import NodeRecord, Sink
from harness_lab.agents.recorder import SettlementRecorder
from harness_lab.agents.response import AgentResponse
from harness_lab.agents.rules import RULES, AgentRules
from harness_lab.agents.runner import SubagentRunner
from harness_lab.agents.service import AgentRuntime
from harness_lab.agents.session import Participant, RunRow, Session, Sessions
from harness_lab.agents.subagent_tool import SubagentTool
from harness_lab.agents.subagents import Subagent
from harness_lab.agents.tools import AgentTool, Tool, ToolAuthorizer, ToolRegistry

__all__ = [
    "RULES",
    "AgentError",
    "AgentMode",
    "AgentResponse",
    "AgentRules",
    "AgentRuntime",
    "AgentTool",
    "Agents",
    "AsyncioRuntime",
    "BudgetLeft",
    "Call",
    "Cancelled",
    "CappedClient",
    "Child",
    "Children",
    "Driven",
    "Event",
    "Events",
    "Group",
    "Harness",
    "HarnessAgent",
    "HarnessStopped",
    "ModeRegistry",
    "ModeReport",
    "Model",
    "ModelClient",
    "ModelError",
    "ModelRequest",
    "ModelResponse",
    "NodeRecord",
    "Operation",
    "PartialReply",
    "Participant",
    "PendingApproval",
    "Reply",
    "Rest",
    "RunFailed",
    "RunFinished",
    "RunRow",
    "RunStarted",
    "RunUsage",
    "Runtime",
    "Session",
    "Sessions",
    "Settled",
    "SettlementRecorder",
    "Sink",
    "StartRefused",
    "Subagent",
    "SubagentResult",
    "SubagentRunner",
    "SubagentTool",
    "Tool",
    "ToolAuthorizer",
    "ToolCall",
    "ToolRegistry",
    "ToolSpec",
    "Turn",
    "Work",
    "drive",
    "record_approval",
]
