"""What an import costs: the top loads nothing, enforcement only the standard library, analysis no pictures."""

from __future__ import annotations

import subprocess
import sys

import pytest

import harness_lab

ENFORCEMENT = ["budget", "floors", "limits", "pricing", "policies", "agents", "delegation"]
_LOADED = """
import sys
sys.path_importer_cache.clear()
before = set(sys.modules)
import {modules}
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""


def loaded(*modules: str) -> set[str]:
    """Return the top-level packages that importing `modules` loads in a fresh interpreter.

    The standard library's own build data (``_sysconfigdata...``), whose name differs by platform, are left out.
    """
    code = _LOADED.format(modules=", ".join(modules))
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split() if not name.startswith("_sysconfigdata")}


def test_the_package_itself_loads_nothing_but_itself() -> None:
    assert loaded("harness_lab") - sys.stdlib_module_names == {"harness_lab"}


def test_enforcement_loads_nothing_outside_the_standard_library() -> None:
    packages = [f"harness_lab.{name}" for name in ENFORCEMENT]
    assert loaded(*packages) - sys.stdlib_module_names == {"harness_lab"}


def test_enforcement_needs_no_event_loop_no_randomness_and_no_logging_below_the_agents() -> None:
    packages = [f"harness_lab.{name}" for name in ("budget", "floors", "limits", "policies", "draws")]
    assert not loaded(*packages) & {"asyncio", "random", "logging"}


def test_what_may_draw_loads_no_pictures_until_it_draws() -> None:
    packages = [f"harness_lab.{name}" for name in ("analyze", "settlements", "simulate", "stats", "tune", "providers")]
    assert not loaded(*packages) & {"matplotlib", "ipywidgets"}


def test_list_prices_are_looked_up_only_when_they_are_asked_for() -> None:
    assert "genai_prices" not in loaded("harness_lab.pricing")


def test_every_public_name_of_the_package_can_be_had_and_others_cannot() -> None:
    for name in harness_lab.__all__:
        assert getattr(harness_lab, name) is not None
    assert set(harness_lab.__all__) <= set(dir(harness_lab))
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(harness_lab, "no_such_name")  # noqa: B009 - the attribute is what is tested


@pytest.mark.parametrize("package", [*ENFORCEMENT, "providers", "simulate", "settlements", "analyze", "stats"])
def test_a_package_exports_names_that_exist_and_each_once(package: str) -> None:
    module = __import__(f"harness_lab.{package}", fromlist=["__all__"])
    assert len(module.__all__) == len(set(module.__all__))
    assert all(hasattr(module, name) for name in module.__all__)
