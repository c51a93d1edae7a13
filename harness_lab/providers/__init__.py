"""What answers model calls: the stochastic mock, a fit of records, and the records themselves."""

from harness_lab.providers.fitted import Provider
from harness_lab.providers.mock import MockModel, MockProvider
from harness_lab.providers.profile import ModelProfile, RateLimits
from harness_lab.providers.recorded import Answer, RecordedModel
from harness_lab.providers.tables import Table

__all__ = ["Answer", "MockModel", "MockProvider", "ModelProfile", "Provider", "RateLimits", "RecordedModel", "Table"]
