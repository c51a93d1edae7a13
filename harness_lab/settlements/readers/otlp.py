"""OTLP in JSON: attributes as plain values, and the spans or log records of a file one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE, RecordFile
from harness_lab.settlements.readers.json_lines import objects
from harness_lab.settlements.readers.values import Json, document, inside, items, whole

if TYPE_CHECKING:
    from harness_lab.settlements.readers.base import ReaderOutput

Signal = Literal["spans", "logRecords"]

_PATHS: Final[Mapping[Signal, tuple[str, str]]] = {
    "spans": ("resourceSpans", "scopeSpans"),
    "logRecords": ("resourceLogs", "scopeLogs"),
}
_OLDER: Final = {"scopeSpans": "instrumentationLibrarySpans", "scopeLogs": "instrumentationLibraryLogs"}
_MAX_NS: Final = 2**62


def records(
    file: RecordFile, signal: Signal, output: ReaderOutput
) -> Iterator[tuple[int | None, dict[str, Any], str, Json]]:
    """Yield (line, resource attributes, scope name, record) for every span or log record of a file.

    The collector's file exporter writes one object a line; a file that is one object over several lines, or an array
    of objects, is read as one document. What is no OTLP object is set aside; other signals are counted in a note.
    """
    outer, inner = _PATHS[signal]
    others = 0
    for line, batch in _batches(file, output):
        found = batch.get(outer)
        if not isinstance(found, list):
            others += 1
            continue
        for resource in items(found):
            about = attributes(inside(resource, "resource"))
            for scope in items(resource.get(inner) or resource.get(_OLDER[inner])):
                name = inside(scope, "scope", "name")
                for record in items(scope.get(signal)):
                    yield line, about, name if isinstance(name, str) else "", record
    if others:
        output.notes.append(f"{file.name}: {others:,} object(s) without {outer} were left alone")


def _batches(file: RecordFile, output: ReaderOutput) -> Iterator[tuple[int | None, Json]]:
    first = file.head.lstrip().partition(b"\n")[0].rstrip()
    if first.startswith(b"{") and (first.endswith(b"}") or len(first) > len(file.head) // 2) and first != b"{}":
        yield from objects(file, output)
        return
    try:
        whole_file = document(file)
    except (Unfit, *UNREADABLE) as error:
        output.reject(file.name, None, str(error))
        return
    for batch in whole_file if isinstance(whole_file, list) else [whole_file]:
        if isinstance(batch, Mapping):
            yield None, batch
        else:
            output.reject(file.name, None, "an OTLP object was expected")


def attributes(holder: object) -> dict[str, Any]:
    """Return the attributes of a span, record or resource by name; of a repeated name the last.

    Examples
    --------
    >>> attributes({"attributes": [{"key": "n", "value": {"intValue": "7"}}]})
    {'n': 7}
    """
    found: dict[str, Any] = {}
    for pair in items(inside(holder, "attributes")):
        key = pair.get("key")
        if isinstance(key, str):
            found[key] = value_of(pair.get("value"))
    return found


def value_of(value: object) -> Any:
    """Return an OTLP value as a plain one; kinds that hold no single value are None."""
    if not isinstance(value, Mapping):
        return None
    if "intValue" in value:
        number = value["intValue"]
        digits = isinstance(number, str) and number.removeprefix("-").isdecimal() and len(number) <= 20
        return int(number) if digits else number
    for name in ("stringValue", "doubleValue", "boolValue"):
        if name in value:
            return value[name]
    listed = inside(value, "arrayValue", "values")
    return [value_of(item) for item in listed if not _nested(item)] if isinstance(listed, list) else None


def _nested(item: object) -> bool:
    return isinstance(item, Mapping) and "arrayValue" in item


def nanoseconds(what: str, value: object) -> int | None:
    """Return a time in nanoseconds since 1970, a number or its text; 0 stands for "not set" and is None.

    Raises
    ------
    Unfit
        If it is no such time.
    """
    found = whole(what, value)
    if found is not None and found > _MAX_NS:
        raise Unfit(f"{what}: should be nanoseconds since 1970")
    return found or None
