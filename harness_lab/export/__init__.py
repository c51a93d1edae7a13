"""Tuned configs with provenance, one writer per target, and the HTML report."""

from harness_lab.export.config import TunedConfig
from harness_lab.export.document import AgentLimits, Evidence, Provenance
from harness_lab.export.targets import TARGETS
from harness_lab.export.targets.base import Carried, Loss
from harness_lab.export.translation import Translation, translate
from harness_lab.export.writers import Export, export, read_back

__all__ = [
    "TARGETS",
    "AgentLimits",
    "Carried",
    "Evidence",
    "Export",
    "Loss",
    "Provenance",
    "Translation",
    "TunedConfig",
    "export",
    "read_back",
    "translate",
]
