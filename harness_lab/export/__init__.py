"""Tuned configs with provenance, one writer per target, and the HTML report."""

from harness_lab.export.config import Evidence, Provenance, TunedConfig
from harness_lab.export.targets.base import Loss
from harness_lab.export.writers import TARGETS, Export, export

__all__ = ["TARGETS", "Evidence", "Export", "Loss", "Provenance", "TunedConfig", "export"]
