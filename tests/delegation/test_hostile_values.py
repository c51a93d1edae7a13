"""Hostile schemas and payloads give one clear error, and nothing is written."""

from __future__ import annotations

import pickle
from collections import UserDict
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.delegation import (
    BERNSTEIN_3_23,
    DispatchNode,
    NativeResultRejected,
    RunJournal,
    SchemaViolation,
    SpendLedger,
    canonical_json,
    check_result,
    dispatch_node,
    node_hash,
    seal_schema,
)
from harness_lab.errors import InputError


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def _cycle() -> Any:
    value: dict[str, Any] = {}
    value["a"] = [value]
    return value


def _bomb() -> Any:
    value: Any = ["x"] * 10
    for _ in range(12):
        value = [value] * 10
    return value


BAD = {
    "deep": (_deep(101), "levels of nesting"),
    "very deep": (_deep(100_000), "levels of nesting"),
    "cycle": (_cycle(), "contains itself"),
    "bomb": (_bomb(), "at most 1,000,000 values"),
    "nan": (float("nan"), "finite"),
    "infinity": (float("-inf"), "finite"),
    "surrogate": ("\ud800", "UTF-8"),
    "surrogate key": ({"\udfff": 1}, "UTF-8"),
    "huge int": (10**5000, "bits"),
    "set": ({1}, "JSON value"),
    "bytes": (b"x", "JSON value"),
    "path": (Path("/a"), "JSON value"),
    "decimal": (Decimal(1), "JSON value"),
    "int key": ({1: 2}, "keys that are text"),
    "mixed keys": ({1: 2, "a": 3}, "keys that are text"),
}
NOT_EVEN_PYTHON = ("deep", "very deep", "cycle", "bomb", "surrogate", "surrogate key", "huge int", "mixed keys")


@pytest.mark.parametrize("name", BAD)
def test_a_hostile_result_is_one_clear_error_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    value, words = BAD[name]
    journal, ledger = RunJournal("run-1", tmp_path), SpendLedger()
    with pytest.raises(InputError, match=words) as caught:
        dispatch_node(DispatchNode("n", "t", "m", "low", "p", {}), {"x": value}, journal=journal, ledger=ledger)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)
    assert not journal.path.exists()
    assert not ledger.charges


@pytest.mark.parametrize("name", BAD)
def test_a_hostile_schema_is_one_clear_error(name: str) -> None:
    value, words = BAD[name]
    with pytest.raises(InputError, match=words):
        node_hash(DispatchNode("n", "t", "m", "low", "p", {"const": value}))


@pytest.mark.parametrize("name", NOT_EVEN_PYTHON)
def test_the_preset_refuses_what_pythons_encoder_cannot_write_in_one_line_too(name: str) -> None:
    with pytest.raises(InputError):
        canonical_json(BAD[name][0], rules=BERNSTEIN_3_23)


def test_the_deepest_value_and_the_largest_integer_that_are_allowed_are_hashed() -> None:
    assert canonical_json(_deep(100)).count("{") == 100
    assert canonical_json(2**2048 - 1).startswith("3231700")


def test_tuples_and_subclasses_of_plain_values_are_written_as_what_they_are() -> None:
    class Word(StrEnum):
        YES = "yes"

    assert canonical_json({"a": (1, True, Word.YES)}) == '{"a":[1,true,"yes"]}'


@given(
    st.recursive(
        st.none() | st.text() | st.floats() | st.binary(), lambda i: st.dictionaries(st.text() | st.integers(), i)
    )
)
@settings(deadline=None)
def test_whatever_comes_is_hashed_or_refused_in_one_line(value: Any) -> None:
    for rules in (None, BERNSTEIN_3_23):
        try:
            canonical_json(value, **({"rules": rules} if rules else {}))
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017 - the law is about either way


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"a": {}}, "additionalProperties": True}, "object node at <root> does not seal"),
        ({"properties": {"a": {"properties": {}, "additionalProperties": {}}}}, "at properties/a does not seal"),
        ({"type": "object", "properties": ["a"]}, "properties must be a mapping"),
        ({"type": "object", "required": "a"}, "required must be a list"),
        ({"type": "object", "required": [1]}, "required must be a list"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaViolation, match=words):
        check_result(schema, {})


def test_a_property_called_properties_is_a_property() -> None:
    schema = {"properties": {"properties": {"type": "object", "properties": {"a": {}}}}}
    assert "additionalProperties" not in seal_schema(schema)["properties"]
    assert "additionalProperties" in seal_schema(schema, rules=BERNSTEIN_3_23)["properties"]
    with pytest.raises(NativeResultRejected, match=r"\['additionalProperties'\]"):
        check_result(schema, {"additionalProperties": 1})
    assert check_result(schema, {"additionalProperties": 1}, rules=BERNSTEIN_3_23) == {"additionalProperties": 1}


@pytest.mark.parametrize("result", [None, [], "text", 1, UserDict(a=1)])
def test_a_result_that_is_no_object_is_rejected(result: Any) -> None:
    with pytest.raises(NativeResultRejected, match="<root> is not an object"):
        check_result({}, result)


NUMBERS = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "to": {"enum": ["a"]}, "l": {"items": {"type": "string"}}},
}


@pytest.mark.parametrize("result", [{"n": "1"}, {"to": "b"}, {"l": [1]}])
def test_strict_checks_what_the_names_check_lets_pass(result: dict[str, Any]) -> None:
    assert check_result(NUMBERS, result) == result
    with pytest.raises(NativeResultRejected, match=rf"native result at {next(iter(result))}.* fails "):
        check_result(NUMBERS, result, strict=True)


def test_strict_passes_what_fits() -> None:
    result = {"n": 1, "to": "a", "l": ["x"]}
    assert check_result(NUMBERS, result, strict=True) == result


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "nothing"}, "no JSON Schema"),
        ({"$ref": "https://example.org/never-fetched"}, "refers to what it does not hold"),
        ({"$ref": "#/$defs/none"}, "refers to what it does not hold"),
        ({"$ref": "#"}, "refers to itself without end"),
        ({"properties": {"a": {"pattern": "("}}}, "cannot be applied|no JSON Schema"),
    ],
)
def test_strict_refuses_a_hostile_schema_in_one_line_and_fetches_nothing(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaViolation, match=words) as caught:
        check_result(schema, {"a": "x"} if "properties" in schema else {}, strict=True)
    assert not isinstance(caught.value, NativeResultRejected)
    assert "\n" not in str(caught.value)


def test_rejections_survive_pickling() -> None:
    error = NativeResultRejected("no", fields=("a",))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), str(again), again.fields) == (NativeResultRejected, "no", ("a",))
    assert isinstance(again, SchemaViolation)
    assert isinstance(again, ValueError)
