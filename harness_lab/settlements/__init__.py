"""The settlement table: its schema, its store, one reader per record format, and finding records on this computer.

>>> from harness_lab.settlements import Settlements
>>> table = Settlements.from_columns({"run": ["a", "b"], "node": "0", "input_total": [31_211, None]})
>>> int(table.nodes["input_total"].sum())
31211
"""

from __future__ import annotations

from harness_lab.settlements.columns import CALL_COLUMNS, NODE_COLUMNS, Column
from harness_lab.settlements.context import context_digest
from harness_lab.settlements.costs import Recomputed, recompute
from harness_lab.settlements.dataset import Appended, SettlementStore
from harness_lab.settlements.discover import Found, discover
from harness_lab.settlements.quality import Finding, Quality, quality
from harness_lab.settlements.read import formats, read
from harness_lab.settlements.readers import PRESETS
from harness_lab.settlements.reconcile import BILLS, Reconciled, reconcile
from harness_lab.settlements.report import ReadReport, SetAside
from harness_lab.settlements.rows import CallRow, NodeRow
from harness_lab.settlements.schema import SCHEMA_VERSION, conform_calls, conform_nodes, empty_calls, empty_nodes
from harness_lab.settlements.settlements import Settlements

__all__ = [
    "BILLS",
    "CALL_COLUMNS",
    "NODE_COLUMNS",
    "PRESETS",
    "SCHEMA_VERSION",
    "Appended",
    "CallRow",
    "Column",
    "Finding",
    "Found",
    "NodeRow",
    "Quality",
    "ReadReport",
    "Recomputed",
    "Reconciled",
    "SetAside",
    "SettlementStore",
    "Settlements",
    "conform_calls",
    "conform_nodes",
    "context_digest",
    "discover",
    "empty_calls",
    "empty_nodes",
    "formats",
    "quality",
    "read",
    "recompute",
    "reconcile",
]
