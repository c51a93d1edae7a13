"""Limits of one system in the settings of another, and how many runs would be treated differently there."""

from harness_lab.export.translation.result import Searched, Translation
from harness_lab.export.translation.translate import translate

__all__ = ["Searched", "Translation", "translate"]
