"""The check at the boundary: a native result held against its node's schema, before anything is written.

The names check looks at keys alone: objects are closed, so a key that the schema does not declare is refused, and so is
a missing required one. Types, enumerations, items and formats need `strict`, which asks the jsonschema library as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_lab.delegation.canonical import plain_json
from harness_lab.delegation.errors import NativeResultRejected, SchemaViolation
from harness_lab.delegation.rules import OURS, DelegationRules

_ONE = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_ONE_MORE = ("additionalItems", "contentSchema", "unevaluatedItems", "unevaluatedProperties")
_MANY = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
"""Where a schema has schemas below it: alone, in a list, under names."""


def seal_schema(schema: Mapping[str, Any], *, rules: DelegationRules = OURS) -> dict[str, Any]:
    """Return a copy in which every object with declared properties permits no others.

    Raises
    ------
    SchemaViolation
        If one permits others on purpose: with declared properties beside it that cannot be checked.

    Examples
    --------
    >>> seal_schema({"properties": {"a": {}}})
    {'properties': {'a': {}}, 'additionalProperties': False}
    """
    sealed = plain_json(schema, what="result_schema", rules=rules)
    below = _mappings if rules.sealing == "anywhere" else _subschemas
    _seal(sealed, "", below)
    return dict(sealed)


def check_result(schema: Mapping[str, Any], result: Any, *, strict: bool = False, rules: DelegationRules = OURS) -> Any:
    """Return a checked copy of a native result.

    Parameters
    ----------
    schema : mapping
        JSON Schema; it is sealed first.
    result : mapping
        What came.
    strict : bool
        Ask the jsonschema library too: types, enumerations, items, formats, references inside the schema.
    rules : DelegationRules
        Which values and which seals.

    Raises
    ------
    NativeResultRejected
        At the first violation; undeclared keys come before missing ones.
    SchemaViolation
        If the schema itself cannot be used.
    InputError
        If schema or result cannot be held as JSON.
    """
    sealed = seal_schema(schema, rules=rules)
    if isinstance(result, Mapping) and not isinstance(result, dict):
        raise NativeResultRejected("native result at <root> is not an object")
    payload = plain_json(result, what="native result", rules=rules)
    _check(sealed, payload, "")
    if not isinstance(payload, dict):
        raise NativeResultRejected("native result at <root> is not an object")
    if strict:
        from harness_lab.delegation.strict import check_strictly

        check_strictly(plain_json(schema, what="result_schema", rules=rules), payload)
    return payload


def _seal(node: Any, path: str, below: Any) -> None:
    if isinstance(node, dict) and "properties" in node:
        node.setdefault("additionalProperties", False)
        if node["additionalProperties"] is not False:
            raise SchemaViolation(f"object node at {path or '<root>'} does not seal additionalProperties")
    for step, item in below(node):
        _seal(item, f"{path}/{step}" if path else step, below)


def _mappings(node: Any) -> list[tuple[str, Any]]:
    """Return everything below a value, whatever its place."""
    if isinstance(node, dict):
        return [(str(key), item) for key, item in node.items()]
    return [(str(i), item) for i, item in enumerate(node)] if isinstance(node, list) else []


def _subschemas(node: Any) -> list[tuple[str, Any]]:
    """Return the schemas right below a schema."""
    if not isinstance(node, dict):
        return []
    found = [(key, node[key]) for key in (*_ONE, *_ONE_MORE) if isinstance(node.get(key), dict)]
    for key in _MANY:
        if isinstance(node.get(key), list):
            found += [(f"{key}/{i}", item) for i, item in enumerate(node[key])]
    for key in _NAMED:
        if isinstance(node.get(key), dict):
            found += [(f"{key}/{name}", item) for name, item in node[key].items()]
    return found


def _check(schema: dict[str, Any], value: Any, path: str) -> None:
    if schema.get("type") != "object" and "properties" not in schema:
        return
    here = path or "<root>"
    if not isinstance(value, dict):
        raise NativeResultRejected(f"native result at {here} is not an object")
    declared, required = _declared(schema, here)
    if schema.get("additionalProperties", False) is False:
        extra = sorted(str(key) for key in value if key not in declared)
        if extra:
            text = f"native result has additional properties not permitted at {here}: {extra}"
            raise NativeResultRejected(text, fields=tuple(extra))
    missing = sorted(key for key in required if key not in value)
    if missing:
        text = f"native result missing required fields at {here}: {missing}"
        raise NativeResultRejected(text, fields=tuple(missing))
    for key, below in declared.items():
        if key in value and isinstance(below, dict):
            _check(below, value[key], f"{path}/{key}" if path else key)


def _declared(schema: dict[str, Any], here: str) -> tuple[dict[str, Any], list[str]]:
    declared, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(declared, dict):
        raise SchemaViolation(f"schema at {here}: properties must be a mapping of names to schemas")
    if not isinstance(required, list) or not all(isinstance(key, str) for key in required):
        raise SchemaViolation(f"schema at {here}: required must be a list of names")
    return declared, required
