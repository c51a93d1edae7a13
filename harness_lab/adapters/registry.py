"""Adapters by name, found when they are asked for, and what is said when a package is not there."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cloudpickle

from harness_lab.adapters.elsewhere import version_there
from harness_lab.adapters.protocol import LIMITS, Adapter
from harness_lab.adapters.watched import recorded
from harness_lab.errors import HarnessLabError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

_MODULES: Final[dict[str, str]] = {
    "check-then-add": "check_then_add",
    "prism-ai-harness": "prism",
    "hermes-agent": "hermes",
    "agent-tokenops": "tokenops",
    "agentbudget": "agentbudget",
    "pydantic-ai": "pydantic_ai",
    "litellm": "litellm",
    "litellm-budget-manager": "litellm_budget_manager",
    "openai-agents": "openai_agents",
    "langgraph": "langgraph",
    "bernstein": "bernstein",
}
"""Module of this room by the adapter's name; its class is called ``ADAPTER`` there."""
OURS: Final = {"max_depth": "max_depth", "max_concurrent": "max_concurrent", "max_children": "max_calls"}
"""Limits of a tree, which most packages do not have, and what ours call them."""
_FILES: Final[dict[str, str]] = {}
"""File of a module that was read from one, as it was written."""


def names() -> tuple[str, ...]:
    """Return the names of the adapters that come with the package."""
    return tuple(_MODULES)


def named(name: str) -> type[Adapter]:
    """Return an adapter by its name; the package that it is about is not imported yet.

    Parameters
    ----------
    name : str
        One of :func:`names`; or ``module:Class`` or ``file.py:Class`` for one of your own.

    Raises
    ------
    InputError
        If there is none.
    """
    if not isinstance(name, str):
        raise InputError("adapter", expected="a name, module:Class or file.py:Class", got=name)
    if ":" in name:
        return _own(name)
    if name not in _MODULES:
        hint = "Your own: module:Class or file.py:Class"
        raise InputError("adapter", expected=f"one of {', '.join(_MODULES)}", got=name, hint=hint)
    found: type[Adapter] = importlib.import_module(f"harness_lab.adapters.{_MODULES[name]}").ADAPTER
    return found


def found_version(adapter: type[Adapter]) -> str | None:
    """Return the version of the package that an adapter is about; None: not there, or it is about none."""
    try:
        return version(adapter.package) if adapter.package else None
    except PackageNotFoundError:
        return version_there(adapter.elsewhere, adapter.package)


def limits_of(adapter: type[Adapter]) -> tuple[str, ...]:
    """Return the names of the limits that an adapter takes."""
    parameters = inspect.signature(adapter).parameters.values()
    return tuple(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))


def needed_limits(adapter: type[Adapter]) -> tuple[str, ...]:
    """Return the limits that an adapter cannot be made without, though they may be None."""
    parameters = inspect.signature(adapter).parameters
    return tuple(name for name in limits_of(adapter) if parameters[name].default is inspect.Parameter.empty)


def installed(adapter: type[Adapter]) -> None:
    """Check that the package of an adapter is there.

    Raises
    ------
    InputError
        If not; it names the command that installs it.
    """
    if adapter.package and found_version(adapter) is None:
        wanted = f"the package {adapter.package}"
        hint = f"pip install '{adapter.requires or adapter.package}'"
        hint += f"; or {adapter.elsewhere}=PYTHON, one that has it" if adapter.elsewhere else ""
        raise InputError(f"adapter {adapter.name}", expected=wanted, got="no such package here", hint=hint)


def checked(adapter: type[Adapter], limits: Mapping[str, Any]) -> None:
    """Check that the package of an adapter is there, and that it takes such limits.

    Raises
    ------
    InputError
        If not.
    """
    name = adapter.name or adapter.__name__
    takes = limits_of(adapter)
    unknown = [limit for limit in limits if limit not in takes]
    if unknown:
        ours = f"compose(policy(...), tree_limits({', '.join(f'{OURS[one]}=...' for one in unknown if one in OURS)}))"
        hint = f"{ours} holds that beside it" if any(one in OURS for one in unknown) else ""
        raise InputError(f"limits of {name}", expected=f"some of {', '.join(takes)}", got=unknown, hint=hint)
    odd = {limit: value for limit, value in limits.items() if not _a_number(value)}
    if odd:
        raise InputError(f"limits of {name}", expected="numbers, or None", got=odd)
    installed(adapter)
    try:
        with recorded():
            adapter(**limits)  # what its own package refuses is refused here and not in the middle of a run
    except HarnessLabError:
        raise
    except Exception as error:
        got = f"{dict(limits)}: {error}"
        raise InputError(f"limits of {name}", expected="what its package takes", got=got) from error


def _a_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def address(adapter: type[Adapter]) -> str:
    """Return the name under which :func:`named` finds an adapter again."""
    home, _, module = adapter.__module__.rpartition(".")
    listed = next((name for name, where in _MODULES.items() if where == module), "")
    if home == "harness_lab.adapters" and listed:
        return listed
    return f"{_FILES.get(adapter.__module__, adapter.__module__)}:{adapter.__qualname__}"


def _own(name: str) -> type[Adapter]:
    where, _, attribute = name.rpartition(":")
    found = getattr(_module(where, name), attribute, None)
    if not (isinstance(found, type) and issubclass(found, Adapter)):
        raise InputError("adapter", expected=f"a subclass of Adapter called {attribute} in {where}", got=found)
    odd = [limit for limit in limits_of(found) if limit not in LIMITS]
    if odd:
        hint = f"Names that cases know: {', '.join(LIMITS)}"
        raise InputError(f"limits of {attribute}", expected="names that cases know", got=odd, hint=hint)
    return found


def _module(where: str, name: str) -> ModuleType:
    path = Path(where)
    try:
        if path.suffix != ".py":
            return importlib.import_module(where)
        return _from_file(path, where)
    except HarnessLabError:
        raise
    except Exception as error:  # the file is a stranger's: whatever it raises, it is told in one line
        got = f"{type(error).__name__}: {error}"
        raise InputError("adapter", expected=f"a module {where!r} that can be imported", got=got) from error


def _from_file(path: Path, where: str) -> ModuleType:
    key = f"_harness_lab_adapter_{path.stem}"
    spec = importlib.util.spec_from_file_location(key, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError("adapter", expected="a Python file", got=where)
    sys.modules[key] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)  # worker processes cannot import it by this name
    _FILES[key] = where
    return module
