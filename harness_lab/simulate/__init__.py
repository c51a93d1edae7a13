"""The simulator: workloads under real policies, in virtual time."""

from harness_lab.simulate.arrivals import Arrivals
from harness_lab.simulate.config import build_experiment, load_experiment
from harness_lab.simulate.experiment import Experiment
from harness_lab.simulate.explain import Timeline, explain
from harness_lab.simulate.faults import ClockJumps, Fault, ParentCancelled, SlowStore, WorkerDies
from harness_lab.simulate.fit import FittedWorld, fit_world
from harness_lab.simulate.fit_check import FitCheck, check_fit
from harness_lab.simulate.gallery import Scene, from_gallery, gallery
from harness_lab.simulate.incident import replay
from harness_lab.simulate.incident_result import Incident
from harness_lab.simulate.kernel import Kernel
from harness_lab.simulate.limiter import Limiter
from harness_lab.simulate.own_agent import Refused, Seat, explain_agent, simulate_agent
from harness_lab.simulate.plan import plan_provider, plan_workload
from harness_lab.simulate.plan_result import simulate_plan, sum_of_percentiles_error
from harness_lab.simulate.precision import Precision
from harness_lab.simulate.profile import Reaction, Retry
from harness_lab.simulate.recording import RecordedNode, recorded_runs
from harness_lab.simulate.replay import Replay
from harness_lab.simulate.replay_result import ReplayResult
from harness_lab.simulate.result import DecisionCheck, Result
from harness_lab.simulate.runtime import SimRuntime
from harness_lab.simulate.scenario import Scenario
from harness_lab.simulate.stream import StoredResult
from harness_lab.simulate.sweep import sweep
from harness_lab.simulate.sweep_result import Sweep
from harness_lab.simulate.virtual_loop import VirtualLoop
from harness_lab.simulate.workload import AgentProfile, Spawn, Workload

__all__ = [
    "AgentProfile",
    "Arrivals",
    "ClockJumps",
    "DecisionCheck",
    "Experiment",
    "Fault",
    "FitCheck",
    "FittedWorld",
    "Incident",
    "Kernel",
    "Limiter",
    "ParentCancelled",
    "Precision",
    "Reaction",
    "RecordedNode",
    "Refused",
    "Replay",
    "ReplayResult",
    "Result",
    "Retry",
    "Scenario",
    "Scene",
    "Seat",
    "SimRuntime",
    "SlowStore",
    "Spawn",
    "StoredResult",
    "Sweep",
    "Timeline",
    "VirtualLoop",
    "WorkerDies",
    "Workload",
    "build_experiment",
    "check_fit",
    "explain",
    "explain_agent",
    "fit_world",
    "from_gallery",
    "gallery",
    "load_experiment",
    "plan_provider",
    "plan_workload",
    "recorded_runs",
    "replay",
    "simulate_agent",
    "simulate_plan",
    "sum_of_percentiles_error",
    "sweep",
]
