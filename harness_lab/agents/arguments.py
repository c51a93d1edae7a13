"""Whether a call's arguments are what its tool says it takes: names that have to be there, and types of values.

Source: JSON Schema's ``required`` and ``type``. The rest of a schema is the tool's own to hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (Mapping,),
    "array": (list, tuple),
    "null": (type(None),),
}


def misfit(tool: object, arguments: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a call's arguments, None when they fit.

    Parameters
    ----------
    tool : AgentTool
        Its ``parameters`` are a JSON schema; a tool without them takes anything.
    arguments : mapping
        As the model wrote them.

    Examples
    --------
    >>> from harness_lab.agents.tools import Tool
    >>> search = Tool("search", str, parameters={"required": ["q"], "properties": {"q": {"type": "string"}}})
    >>> misfit(search, {"query": "x"})
    'argument [q] is missing; given: query'
    >>> misfit(search, {"q": 5})
    'argument [q] must be string, got int'
    """
    schema = getattr(tool, "parameters", None)
    if not isinstance(schema, Mapping):
        return None
    for name in _names(schema.get("required")):
        if name not in arguments:
            given = ", ".join(str(key) for key in arguments) or "none"
            return f"argument [{name}] is missing; given: {given}"
    properties = schema.get("properties")
    for name, about in properties.items() if isinstance(properties, Mapping) else ():
        allowed = _names(about.get("type")) if isinstance(about, Mapping) else []
        if name in arguments and allowed and not any(_is(arguments[name], each) for each in allowed):
            return f"argument [{name}] must be {' or '.join(allowed)}, got {type(arguments[name]).__name__}"
    return None


def _names(found: object) -> list[str]:
    """Return one name or several as a list; what is neither names nothing."""
    if isinstance(found, str):
        return [found]
    return [each for each in found if isinstance(each, str)] if isinstance(found, Sequence) else []


def _is(value: object, kind: str) -> bool:
    """Whether a value is of a JSON type; true and false are no numbers, 2.0 is an integer, an unknown type is any."""
    if isinstance(value, bool):
        return kind == "boolean" or kind not in _TYPES
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return kind not in _TYPES or isinstance(value, _TYPES[kind])
