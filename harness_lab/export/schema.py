"""The published JSON Schema of a tuned config: shipped as ``tuned-config.schema.json``, made from the types."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from functools import cache
from importlib.resources import files
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from harness_lab.export.document import Document
from harness_lab.floors import FloorTable
from harness_lab.policies.at_limit import AtLimit
from harness_lab.policies.spec import MODULES

FILE = "tuned-config.schema.json"
ID = "https://harness-lab.example/tuned-config.schema.json"
_TEXT_OR_NULL = {"type": ["string", "null"]}
_COUNT_OR_NULL = {"type": ["integer", "null"], "minimum": 0}


@cache
def schema() -> dict[str, Any]:
    """Return the schema as it is shipped.

    Examples
    --------
    >>> schema()["title"]
    'harness-lab tuned config'
    """
    return dict(json.loads(files("harness_lab.export").joinpath(FILE).read_text("utf-8")))


def make_schema() -> dict[str, Any]:
    """Make the schema from the types: what :func:`schema` has to be equal to."""
    made = Document.model_json_schema()
    made["properties"]["policy"] = _policy()
    made["properties"]["prices"] = {"type": ["object", "null"], "description": "Price table, as PriceTable.to_dict()."}
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID}
    return dialect | made | {"title": "harness-lab tuned config"}


def _policy() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["name", "modules"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "modules": {"type": "array", "items": {"oneOf": [_module(kind, spec) for kind, spec in MODULES.items()]}},
            "max_wait_s": {"type": ["number", "null"], "minimum": 0},
            "at_limit": _plain(AtLimit),
        },
    }


def _module(kind: str, spec: type[Any]) -> dict[str, Any]:
    made = _plain(spec)
    made["properties"]["kind"] = {"const": kind}
    made["required"] = ["kind", *made["required"]]
    return made


def _plain(spec: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(spec, localns=_names())
    kept = [field for field in fields(spec) if field.name not in ("kind", "observer")]
    properties = {field.name: _type(hints[field.name]) for field in kept}
    required = [f.name for f in kept if f.default is MISSING and f.default_factory is MISSING]
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": required}


def _type(hint: Any) -> dict[str, Any]:
    if hint is FloorTable:
        return {"type": "array", "items": _floor_row()}
    if "PeriodBudgetSpec" in str(hint):
        return {"type": "array", "items": _plain(MODULES["period_budget"])}
    return TypeAdapter(hint).json_schema()


def _floor_row() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["backend", "model"],
        "properties": {
            "backend": {"type": "string"},
            "model": {"type": "string"},
            "agent": _TEXT_OR_NULL,
            "context": _TEXT_OR_NULL,
            "unit": {"enum": ["input-total", "total", "newly-presented"]},
            "floor": _COUNT_OR_NULL,
            "n": {"type": "integer", "minimum": 0},
        },
    }


def _names() -> dict[str, Any]:
    """Return the types that the modules name only for type checkers."""
    from harness_lab.budget import _pots, durable_store, period, windows

    homes = (_pots, durable_store, period, windows)
    return {name: getattr(home, name) for home in homes for name in vars(home) if name[:1].isupper()}


def text() -> str:
    """Return the schema's file as it is to be shipped."""
    return json.dumps(make_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
