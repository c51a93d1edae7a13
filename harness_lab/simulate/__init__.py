"""The simulator: workloads under real policies, in virtual time."""

from harness_lab.simulate.experiment import Experiment
from harness_lab.simulate.kernel import Kernel
from harness_lab.simulate.result import DecisionCheck, Result
from harness_lab.simulate.runtime import SimRuntime
from harness_lab.simulate.virtual_loop import VirtualLoop
from harness_lab.simulate.workload import AgentProfile, Spawn, Workload

__all__ = [
    "AgentProfile",
    "DecisionCheck",
    "Experiment",
    "Kernel",
    "Result",
    "SimRuntime",
    "Spawn",
    "VirtualLoop",
    "Workload",
]
