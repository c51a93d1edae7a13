"""The strict check: the jsonschema library, loaded only here and only when asked for.

References are resolved inside the schema alone: nothing is fetched, whatever address a schema names.
"""

from __future__ import annotations

from typing import Any

from harness_lab.delegation.errors import NativeResultRejected, SchemaViolation


def check_strictly(schema: dict[str, Any], payload: dict[str, Any]) -> None:
    """Check a payload against a schema as the JSON Schema standard means it.

    Raises
    ------
    NativeResultRejected
        If it does not fit; the message names the place and the rule.
    SchemaViolation
        If the schema is none, or refers to what it does not hold.
    """
    from jsonschema.exceptions import SchemaError, best_match
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
        checker = kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER)
        found = best_match(checker.iter_errors(payload))
    except SchemaError as error:
        raise SchemaViolation(f"result_schema is no JSON Schema: {_short(error.message)}") from None
    except Unresolvable as error:
        raise SchemaViolation(f"result_schema refers to what it does not hold: {_short(str(error))}") from None
    except RecursionError:
        raise SchemaViolation("result_schema refers to itself without end") from None
    except Exception as error:  # regular expressions and keywords of a hostile schema can fail in any way
        raise SchemaViolation(f"result_schema cannot be applied: {_short(repr(error))}") from None
    if found is not None:
        place = "/".join(str(step) for step in found.absolute_path) or "<root>"
        raise NativeResultRejected(f"native result at {place} fails {found.validator}: {_short(found.message)}")


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}..."
