"""The table of what a limit means, limiter by limiter, and a page of scenarios for each, from stored answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.conformance.foreign import REFUSED
from harness_lab.conformance.report import WORDS
from harness_lab.conformance.runner import shipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.conformance.foreign import AdapterReport
    from harness_lab.conformance.report import Result

HEAD: Final = """# What a limit means, limiter by limiter

Written by `harness-lab conformance --table docs/conformance-table.md` from the answers in [conformance](conformance),
each of which was found where its package is installed (`docs/conformance/refresh`); nothing here is written by hand.
The questions are the cases of the area `ruler`; [adapters](adapters.md) says how a limiter of your own gets a column.
"""
KEY: Final = """`=` answers as ours does, which is the column *ours*. A **bold** answer deviates: the number is the
calls that were let through (with what was billed, where that differs), `+` and `-` are its answers in turn, *refused*
says that no such limit can be built. `·` does not apply: there is no such limit, or it cannot be asked. `?` failed: it
broke off with an error of its own. That an answer deviates is no judgement. The page of a limiter shows each deviation
in a few lines that run without harness_lab.
"""


def table(reports: Sequence[AdapterReport]) -> str:
    """Return the table as Markdown."""
    parts = [HEAD, _packages(reports), "\n## What a limit means\n", KEY, _ruler(reports)]
    return "\n".join(parts) + "\n"


def page(report: AdapterReport) -> str:
    """Return the page of one limiter: what it takes, where it deviates with a scenario, what does not apply and why."""
    lines = [f"# {report.adapter}", "", _about(report), "", "| limit | there |", "| --- | --- |"]
    lines += [f"| `{limit}` | {_cell(knob)} |" for limit, knob in report.limits.items()]
    lines += ["", _counts(report)]
    for word, title in (("deviating", "Deviates"), ("failed", "Failed")):
        found = [r for r in report.results if r.word == word]
        lines += ["", f"## {title}", ""] if found else []
        for result in found:
            lines += _shown(result)
    lines += ["", "## Does not apply", "", *_not_applicable(report)]
    return "\n".join(lines).rstrip() + "\n"


def _packages(reports: Sequence[AdapterReport]) -> str:
    head = "| limiter | package | version | " + " | ".join(word.replace("_", " ") for word in WORDS) + " |"
    lines = [head, "| --- | --- | --- |" + " ---: |" * len(WORDS)]
    for report in reports:
        counts = [sum(r.word == word for r in report.results) for word in WORDS]
        name = f"[{report.adapter}](conformance/{report.adapter}.md)"
        package = report.package or "none: a counter of ours"
        lines.append(f"| {name} | {package} | {report.version or ''} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)


def _ruler(reports: Sequence[AdapterReport]) -> str:
    lines = ["| question | ours | " + " | ".join(report.adapter for report in reports) + " |"]
    lines.append("| --- | --- |" + " --- |" * len(reports))
    for case in shipped("ruler"):
        cells = [_answer(report, case) for report in reports]
        lines.append(f"| {_cell(case['about'])} | {_ours(case['then'])} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _ours(then: dict[str, Any]) -> str:
    if "answers" in then:
        return "".join("+" if one == "admitted" else "-" for one in then["answers"])
    return str(then["admitted"]) + (f" ({_amount(then['billed'])})" if "billed" in then else "")


def _answer(report: AdapterReport, case: dict[str, Any]) -> str:
    result = next((r for r in report.results if r.area == "ruler" and r.id == case["id"]), None)
    if result is None:
        return ""
    if result.word != "deviating":
        return {"passed": "=", "not_applicable": "·", "failed": "?"}[result.word]
    if result.reason.startswith(REFUSED):
        return "**refused**"
    told = dict(re.findall(r"(\w+): (\S+) instead of", result.reason))
    short = told.get("answers") or told.get("admitted", "")
    billed = f" ({_amount(told['billed'])})" if "billed" in told else ""
    return f"**{short}{billed}**"


def _amount(value: Any) -> str:
    number = float(value)
    return f"{number:,.0f}" if number >= 100 else f"${number:.2f}"


def _about(report: AdapterReport) -> str:
    if not report.package:
        return "A counter of ours, as most small packages are."
    return f"{report.package} {report.version}"


def _counts(report: AdapterReport) -> str:
    lines = [
        "| area | " + " | ".join(word.replace("_", " ") for word in WORDS) + " |",
        "| --- |" + " ---: |" * len(WORDS),
    ]
    for area, counts in report.to_dict().items():
        lines.append(f"| {area} | " + " | ".join(str(counts[word]) for word in WORDS) + " |")
    return "\n".join(lines)


def _shown(result: Result) -> list[str]:
    command = result.scenario.startswith("harness-lab ")
    block = [f"```{'sh' if command else 'python'}", result.scenario, "```"] if result.scenario else []
    return [f"### {result.area} / {result.id}", "", f"{_cell(result.reason)}", "", *block, ""]


def _not_applicable(report: AdapterReport) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for result in report.results:
        if result.word == "not_applicable":
            reasons.setdefault(result.reason, []).append(result.id)
    rest = [f"- cases about parts of other systems: all {many} of {area}" for area, many in report.not_asked.items()]
    return [f"- {_cell(reason)}: {', '.join(ids)}" for reason, ids in reasons.items()] + rest


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
