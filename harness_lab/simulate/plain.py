"""Values as plain data: what a configuration's digest and manifest are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from harness_lab.stats.distributions import Distribution


def plain(value: Any) -> Any:
    """Turn dataclasses, mappings and tuples into dicts and lists of JSON values.

    Whatever knows its own stored form (``to_dict``) is asked for it.
    """
    if isinstance(value, Distribution) or (is_dataclass(value) and hasattr(value, "to_dict")):
        return plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
