"""What answers model calls: the stochastic mock, and records."""

from harness_lab.providers.mock import MockModel, MockProvider, ModelProfile
from harness_lab.providers.recorded import Answer, RecordedModel
from harness_lab.providers.tables import Table

__all__ = ["Answer", "MockModel", "MockProvider", "ModelProfile", "RecordedModel", "Table"]
