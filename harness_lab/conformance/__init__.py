"""Behaviour cases of the systems that we bring together, run through our public API.

:func:`run` says of each case whether our answer is the same, differs on purpose, does not apply or fails; the cases
come with the package, and any file of the same shapes can be run.
"""

from harness_lab.conformance.areas import AREAS
from harness_lab.conformance.deviations import DEVIATIONS, Deviation
from harness_lab.conformance.foreign import AdapterReport, picked, run_adapter
from harness_lab.conformance.report import WORDS, Report, Result
from harness_lab.conformance.runner import Adapter, differing, read_cases, run, shipped
from harness_lab.conformance.shapes import Answer, Case, UnknownShape

__all__ = [
    "AREAS",
    "DEVIATIONS",
    "WORDS",
    "Adapter",
    "AdapterReport",
    "Answer",
    "Case",
    "Deviation",
    "Report",
    "Result",
    "UnknownShape",
    "differing",
    "picked",
    "read_cases",
    "run",
    "run_adapter",
    "shipped",
]
