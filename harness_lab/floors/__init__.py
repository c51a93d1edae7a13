"""What a path costs before it works: the floor table and preflight."""

from harness_lab.floors.preflight import Preflight, preflight
from harness_lab.floors.table import FloorKey, FloorRow, FloorTable

__all__ = ["FloorKey", "FloorRow", "FloorTable", "Preflight", "preflight"]
