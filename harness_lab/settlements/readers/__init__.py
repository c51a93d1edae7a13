"""One reader per record format; a new one is one file here and one line in ``READERS``."""

from __future__ import annotations

from typing import Final

from harness_lab.settlements.readers.agents_sdk import AgentsSdkReader
from harness_lab.settlements.readers.aider import AiderAnalyticsReader, AiderBenchmarkReader
from harness_lab.settlements.readers.base import Reader, ReaderOutput, ReadOptions
from harness_lab.settlements.readers.claude_code import ClaudeCodeReader
from harness_lab.settlements.readers.claude_result import ClaudeResultReader
from harness_lab.settlements.readers.codex import CodexReader
from harness_lab.settlements.readers.codex_exec import CodexExecReader
from harness_lab.settlements.readers.flat import FlatReader
from harness_lab.settlements.readers.gemini_cli import GeminiCliReader
from harness_lab.settlements.readers.harbor import HarborReader
from harness_lab.settlements.readers.inspect_ai import InspectReader
from harness_lab.settlements.readers.langfuse import LangfuseReader
from harness_lab.settlements.readers.mini_swe_agent import MiniSweAgentReader
from harness_lab.settlements.readers.openhands import OpenHandsReader
from harness_lab.settlements.readers.otel import OtelReader
from harness_lab.settlements.readers.otel_logs import OtelLogsReader
from harness_lab.settlements.readers.pi import PiReader
from harness_lab.settlements.readers.presets import PRESETS
from harness_lab.settlements.readers.swe_agent import SweAgentReader
from harness_lab.settlements.readers.terminal_bench import TerminalBenchReader
from harness_lab.settlements.readers.trae import TraeReader

READERS: Final[tuple[Reader, ...]] = (
    ClaudeCodeReader(),
    CodexReader(),
    PiReader(),
    GeminiCliReader(),
    ClaudeResultReader(),
    CodexExecReader(),
    MiniSweAgentReader(),
    SweAgentReader(),
    OtelReader(),
    OtelLogsReader(),
    InspectReader(),
    HarborReader(),
    TerminalBenchReader(),
    TraeReader(),
    OpenHandsReader(),
    AiderAnalyticsReader(),
    AiderBenchmarkReader(),
    AgentsSdkReader(),
    LangfuseReader(),
    FlatReader(),
)
"""All readers, in the order in which they are asked whether a file is theirs."""

__all__ = ["PRESETS", "READERS", "FlatReader", "MiniSweAgentReader", "ReadOptions", "Reader", "ReaderOutput"]
