"""What readers of JSON records share: bounded documents, and values that are checked or left out, never guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from harness_lab.errors import InputError
from harness_lab.outcome import Cause
from harness_lab.settlements.context import text_digest
from harness_lab.settlements.convert import Unfit, money, span
from harness_lab.settlements.files import MAX_JSON_BYTES, RecordFile, open_bytes
from harness_lab.settlements.rows import shown
from harness_lab.usage import MAX_TOKENS, count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness_lab.settlements.readers.base import Record

Json = Mapping[str, Any]

SUMS: Final = ("input_total", "input_fresh", "cache_read", "cache_write", "cache_write_1h", "output", "reasoning")
"""The token columns that a node's row sums up over its calls."""

_NAME: Final = re.compile(r"[\w.+:/@()\[\]~-]{1,200}", re.ASCII)
_ID: Final = re.compile(r"[\w.+:/@~=#-]{1,200}", re.ASCII)
_SURROGATE: Final = b"\\ud"
_DIGITS: Final = re.compile(r"\d{1,19}(\.0*)?")
_MAX_ID: Final = 400

_INFRASTRUCTURE: Final = re.compile(
    r"API|RateLimit|Rate limit|Timeout|timed out|Connection|ServiceUnavailable|Authentication|Environment|Docker|"
    r"Setup|Install|OSError|Error code: [45]\d\d|(Client|Server) error|auth error|Verifier|Network|Credential"
)


def parsed(text: bytes) -> Any:
    """Return the JSON value in `text`.

    Raises
    ------
    Unfit
        If it is none; the reason quotes no text.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _tolerant(text)


def _tolerant(text: bytes) -> Any:
    """Return what the standard library makes of a text: half a surrogate pair, NaN, numbers beyond 64 bits."""
    try:
        return json.loads(text)
    except RecursionError:
        raise Unfit("nested too deeply") from None
    except ValueError as error:
        where = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else "wrong encoding"
        raise Unfit(f"not valid JSON ({where}); cut short?") from None


def lenient(line: bytes) -> object:
    """Return what JavaScript writes and orjson refuses (half a surrogate pair inside a text); None for any other."""
    if _SURROGATE not in line.lower():
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def document(file: RecordFile, *, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Return a file's one JSON value, at most `max_bytes` of it unpacked.

    Raises
    ------
    Unfit, OSError, EOFError, zlib.error
        If it is larger, or no JSON, or cannot be read.
    """
    with open_bytes(file.path) as opened:
        text = opened.read(max_bytes + 1)
    if len(text) > max_bytes:
        raise Unfit(f"larger than {max_bytes:,} bytes")
    return parsed(text.removeprefix(b"\xef\xbb\xbf"))


def obj(value: object, what: str) -> Json:
    """Return `value` if it is a JSON object; `what` says what it should have been."""
    if not isinstance(value, Mapping):
        raise Unfit(f"{what} was expected, got {shown(value)}")
    return value


def inside(value: object, *keys: str) -> Any:
    """Follow `keys` into nested objects; None as soon as one is missing.

    Examples
    --------
    >>> inside({"a": {"b": 1}}, "a", "b"), inside({"a": 3}, "a", "b")
    (1, None)
    """
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def kind_of(record: object) -> str:
    """Return the word in a record's ``type``; empty where there is none."""
    kind = inside(record, "type")
    return kind if isinstance(kind, str) else ""


def items(value: object) -> list[Json]:
    """Return the objects in a JSON array; anything else in it, or no array, is left out."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def whole(what: str, value: object) -> int | None:
    """Return a count, which may be written as text; None and empty text stay None.

    Raises
    ------
    Unfit
        If it is no whole number, at least 0.
    """
    if value is None or value == "":
        return None
    number = int(value.partition(".")[0]) if isinstance(value, str) and _DIGITS.fullmatch(value) else value
    try:
        return count(what, number)
    except InputError:
        raise Unfit(f"{what}: should be a whole number, at least 0, got {shown(value)}") from None


def tokens(what: str, value: object) -> int | None:
    """Return a token count; None stays None.

    Raises
    ------
    Unfit
        If it is no whole number from 0 to a thousand million.
    """
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value <= MAX_TOKENS:
        raise Unfit(f"{what}: should be a whole number from 0 to {MAX_TOKENS:,}, got {shown(value)}")
    return value


def first(what: str, *values: object) -> int | None:
    """Return the first count that is there."""
    return whole(what, next((value for value in values if value is not None and value != ""), None))


def dollars(what: str, value: object) -> int | None:
    """Return dollars as nano-dollars; None and empty text stay None."""
    if value is None or value == "":
        return None
    try:
        return money(value)
    except Unfit as error:
        raise Unfit(f"{what}: {error}") from None


def seconds(what: str, value: object) -> int | None:
    """Return seconds as nanoseconds; None and empty text stay None."""
    if value is None or value == "":
        return None
    try:
        return span(value)
    except Unfit as error:
        raise Unfit(f"{what}: {error}") from None


def short_name(value: object) -> str | None:
    """Return a name (model, version, class, status); anything that could be prose is left out."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def ident(*values: object) -> str | None:
    """Return the first id that is there: short text or a whole number."""
    for value in values:
        if isinstance(value, str) and 0 < len(value.strip()) <= _MAX_ID:
            return value.strip()
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
            return str(value)
    return None


def identifier(value: object) -> str | None:
    """Return an id as it is; a digest of one that has odd characters; None if there is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        return None
    return value if _ID.fullmatch(value) else text_digest(value)


def folder(value: object) -> str | None:
    """Return a working directory as the id of a project; a digest where it cannot be written as text."""
    if not isinstance(value, str) or not value.strip():
        return None
    good = len(value) <= 500 and value.isprintable()
    return value if good else text_digest(value)


def served(names: Iterable[object]) -> str | None:
    """Return the models that answered, sorted and joined by `` + ``; None if none is known."""
    return " + ".join(sorted({name for name in names if isinstance(name, str)})) or None


def summed(values: Iterable[int | None]) -> int | None:
    """Return the sum; a sum with an unknown part is unknown, and so is one without parts."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if known and len(known) == len(listed) else None


def totals(calls: Sequence[Record], *, made: int | None = None) -> Record:
    """Return a node's sums over its calls: counts, tokens, cost, and whether every call told its usage.

    The rule of all readers: a call that did not tell its usage, failed or answered, is left out of the sums, which then
    are lower bounds, and ``usage_known`` is false. A count that only some of the telling calls have is unknown.

    Parameters
    ----------
    calls : sequence of call rows
        All calls that the record has.
    made : int or None
        Calls that were made, if the record counts them; if it has fewer rows, the sums are unknown.
    """
    made = len(calls) if made is None else made
    listed = calls if made == len(calls) else ()
    sums = {name: _lower_bound(listed, name) for name in (*SUMS, "cost_nusd")}
    source = None if sums["cost_nusd"] is None else "recorded"
    usage = bool(listed) and all(_told(call) for call in listed) if calls else None
    return {"calls": made, "usage_known": usage, **sums, "cost_source": source}


def _lower_bound(calls: Sequence[Record], name: str) -> int | None:
    """Return the sum over the calls that tell their usage; None if one of these lacks the figure, or none has it."""
    return summed(call.get(name) for call in calls if call.get(name) is not None or _input_known(call))


def _told(call: Record) -> bool:
    return call.get("output") is not None and _input_known(call)


def _input_known(call: Record) -> bool:
    return call.get("input_total") is not None or call.get("input_fresh") is not None


def cause_of(error: str) -> Cause | None:
    """Return what an exception's name or message speaks for: infrastructure, or unknown."""
    return Cause.INFRASTRUCTURE if _INFRASTRUCTURE.search(error) else None
