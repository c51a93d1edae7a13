"""The application: its commands, and how errors are said."""

from __future__ import annotations

import sys
from typing import Any

import typer

from harness_lab.cli import (
    analysis,
    ceilings,
    conformance,
    delegation,
    evidence,
    export,
    lab,
    measures,
    prices,
    records,
    runs,
    searches,
    shadow,
    simulation,
    tour,
    translate,
    worlds,
)
from harness_lab.errors import HarnessLabError

USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""The base of all usage errors. It is click's, or the one of the copy of click that newer typers carry."""

app = typer.Typer(
    name="harness-lab",
    help="A lab for the budgets of AI agents: from recorded runs to a tuned config that was checked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(tour.tour)
app.command()(records.read)
app.command()(records.quality)
app.command()(evidence.floors)
app.command()(evidence.preflight)
app.command()(measures.distribution)
app.command()(measures.symptoms)
app.command()(measures.caps)
app.command("floor-costs")(measures.floor_costs)
app.command()(measures.holds)
app.command()(measures.matters)
app.command("check-fit")(worlds.check_fit)
app.command()(simulation.simulate)
app.command()(simulation.compare)
app.command()(runs.sweep)
app.command()(runs.explain)
app.command()(runs.replay)
app.command()(analysis.check)
app.command()(analysis.drift)
app.command()(ceilings.ceiling)
app.command()(analysis.price)
app.command()(analysis.reprice)
app.command("price-changes")(prices.price_changes)
app.command()(prices.period)
app.command()(analysis.limits)
app.command()(analysis.best)
app.command()(analysis.steps)
app.command()(worlds.race)
app.command()(worlds.sensitivity)
app.command()(searches.tune)
app.command()(export.export)
app.command()(translate.translate)
app.command()(export.targets)
app.command()(export.diff)
app.command("config-schema")(export.schema)
app.add_typer(delegation.journal, name="journal")
app.add_typer(delegation.audit, name="audit")
app.command()(conformance.conformance)
app.command("shadow-report")(shadow.shadow_report)
app.command()(lab.bench)
app.command()(lab.lab)
app.command()(lab.report)
app.command()(lab.dashboard)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit; misuse is one line on standard error and exit code 2."""
    try:
        code = app(arguments, standalone_mode=False)
    except HarnessLabError as error:
        _fail(str(error))
    except USAGE_ERROR as error:
        _fail(error.format_message())
    except typer.Abort:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    print(f"harness-lab: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)
