"""The agent loop, its ports, and the runtime of production."""

from harness_lab.agents.asyncio_runtime import AsyncioRuntime
from harness_lab.agents.loop import Harness
from harness_lab.agents.ports import Call, Child, Children, Model, Reply, Rest, Runtime
from harness_lab.agents.record import NodeRecord, Sink

__all__ = [
    "AsyncioRuntime",
    "Call",
    "Child",
    "Children",
    "Harness",
    "Model",
    "NodeRecord",
    "Reply",
    "Rest",
    "Runtime",
    "Sink",
]
