"""Other people's limiters behind the four questions: simulated, compared and held against the same cases as ours.

:func:`policy` makes a policy of one, by name or from an :class:`Adapter` of your own; ``docs/adapters.md`` is the
recipe.
"""

from harness_lab.adapters.loops import LoopAdapter
from harness_lab.adapters.module import AdapterSpec, policy
from harness_lab.adapters.observed import loop_agent
from harness_lab.adapters.protocol import LIMITS, Adapter, Call, Child, No, NotApplicable, Used
from harness_lab.adapters.registry import address, found_version, installed, limits_of, named, names
from harness_lab.adapters.watched import note, noted, recorded, tried, unwatched, watched

__all__ = [
    "LIMITS",
    "Adapter",
    "AdapterSpec",
    "Call",
    "Child",
    "LoopAdapter",
    "No",
    "NotApplicable",
    "Used",
    "address",
    "found_version",
    "installed",
    "limits_of",
    "loop_agent",
    "named",
    "names",
    "note",
    "noted",
    "policy",
    "recorded",
    "tried",
    "unwatched",
    "watched",
]
