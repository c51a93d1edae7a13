"""One row at the boundary: the pydantic models that what comes from outside has to pass.

The models have the columns of :mod:`harness_lab.settlements.columns` as fields. They are lenient in form (numbers may
be text, ids may be numbers, outcomes may be spelt in the usual ways) and strict in substance: a value that does not
fit is an error with a reason, never a guess.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from pydantic import model_validator as validates

from harness_lab.outcome import Cause, Outcome
from harness_lab.settlements.columns import CALL_COLUMNS, MAX_TEXT, NODE_COLUMNS, PARTS, SIGNED, SUBSETS, Column

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_COUNT: Final = 2**62
_WITH_COMMA: Final = re.compile(r"[-+$€]?\s*\d[\d.,' ]*,\d[\d.,' ]*\s*[€$]?")

OUTCOME_WORDS: Final[Mapping[str, Outcome]] = {
    **{member.value: member for member in Outcome},
    **dict.fromkeys(("complete", "success", "succeeded", "ok", "done", "finished", "submitted"), Outcome.COMPLETED),
    **dict.fromkeys(("limit", "limit_reached", "limitsexceeded", "max_steps", "max_turns"), Outcome.EXHAUSTED),
    **dict.fromkeys(("budget_exceeded", "budget-exhausted", "steps-exhausted", "cost-exhausted"), Outcome.EXHAUSTED),
    **dict.fromkeys(("timeout", "timed-out", "timeexceeded", "deadline"), Outcome.TIMED_OUT),
    **dict.fromkeys(("canceled", "aborted", "interrupted", "killed"), Outcome.CANCELLED),
    **dict.fromkeys(("failure", "fail", "error", "errored", "exception", "crashed"), Outcome.FAILED),
    **dict.fromkeys(("refused", "rejected"), Outcome.DENIED),
}
"""How sources spell an outcome (lower case); anything else is an error, not ``unknown``."""


def _outcome(value: object) -> str:
    if value is None:
        return Outcome.UNKNOWN.value
    word = str(value).strip().lower().replace(" ", "_")
    if word not in OUTCOME_WORDS:
        raise ValueError(f"should be one of {', '.join(Outcome)}")
    return OUTCOME_WORDS[word].value


def _cause(value: str) -> str:
    if value not in set(Cause):
        raise ValueError(f"should be one of {', '.join(Cause)}")
    return value


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("should be a number, not true or false")
    return value


def _unknown_is_none(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() in {"", "unknown", "na", "none", "null"} else value


_Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=0, le=_MAX_COUNT)]
_Instant = Annotated[int, BeforeValidator(_no_bool), Field(ge=-_MAX_COUNT, le=_MAX_COUNT)]
_Number = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
_Flag = Annotated[bool | None, BeforeValidator(_unknown_is_none)]
_Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
_Outcome = Annotated[str, BeforeValidator(_outcome)]
_Cause = Annotated[_Text, AfterValidator(_cause)]


class Row(BaseModel):
    """What node rows and call rows have in common: the token counts and how they hang together."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, str_strip_whitespace=True)

    @validates(mode="after")
    def _tokens(self) -> Self:
        """Fill in what follows from what is known, and refuse what contradicts itself."""
        get = self.__dict__
        for part, whole in SUBSETS:
            if None not in (get[part], get[whole]) and get[part] > get[whole]:
                raise ValueError(f"{part} {get[part]} exceeds {whole} {get[whole]}")
        fresh, read, write = (get[name] for name in PARTS)
        total = get["input_total"]
        if total is not None and read is not None and write is not None:
            derived = total - read - write
            if derived < 0:
                raise ValueError(f"cache_read {read} + cache_write {write} exceed input_total {total}")
            if fresh is None:
                get["input_fresh"] = derived
            elif fresh != derived:
                raise ValueError(f"input_total {total} is not the sum of its parts, {fresh + read + write}")
        if total is None and None not in (fresh, read, write):
            get["input_total"] = fresh + read + write
        return self


def _model(name: str, doc: str, columns: tuple[Column, ...]) -> type[Row]:
    fields: dict[str, Any] = {column.name: _field(column) for column in columns}
    return create_model(name, __base__=Row, __doc__=doc, __module__=__name__, **fields)


def _field(column: Column) -> tuple[Any, Any]:
    if column.name in {"run", "node"}:
        return _Text, Field(description=column.meaning)
    if column.name == "outcome":
        return _Outcome, Field(default=Outcome.UNKNOWN.value, description=column.meaning)
    count = _Instant if column.name in SIGNED else _Count
    kinds: dict[str, Any] = {"Int64": count, "string": _Text, "boolean": _Flag, "Float64": _Number}
    kind = _Cause if column.name == "cause" else kinds[column.dtype]
    return kind | None, Field(default=None, description=column.meaning)


NodeRow: Final = _model("NodeRow", "One node's settlement.", NODE_COLUMNS)
"""One node's settlement, as it comes in; every field but ``run`` and ``node`` may be None (unknown)."""

CallRow: Final = _model("CallRow", "One model call.", CALL_COLUMNS)
"""One model call, as it comes in; every field but ``run`` and ``node`` may be None (unknown)."""


def why_not(error: ValidationError) -> str:
    """Return a validation error's first reason on one line: field, what was wrong, what came.

    Text that came is shown only when it is short (words and figures), so that no prose gets into a report.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input ").partition(", unable")[0]
    if not field:
        return message
    if "integer" in message or "number" in message:
        message += comma(first["input"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{field}: {message}, got {shown(first['input'])}{more}"


def comma(value: object) -> str:
    """Return what to say of a number written with a comma, decimal or between thousands; empty for anything else.

    Examples
    --------
    >>> comma("1,5"), comma("1,5 or so")
    (', with a decimal point and without commas', '')
    """
    written = isinstance(value, str) and _WITH_COMMA.fullmatch(value.strip()) is not None
    return ", with a decimal point and without commas" if written else ""


def shown(value: object) -> str:
    """Return a short form of a value for a message; long text is only measured."""
    if isinstance(value, str) and len(value) > 24:
        return f"a text of {len(value):,} characters"
    if isinstance(value, (dict, list, tuple)):
        return f"a {type(value).__name__} of {len(value):,}"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
