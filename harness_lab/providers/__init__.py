"""What answers model calls: the stochastic mock."""

from harness_lab.providers.mock import MockModel, MockProvider, ModelProfile
from harness_lab.providers.tables import Table

__all__ = ["MockModel", "MockProvider", "ModelProfile", "Table"]
