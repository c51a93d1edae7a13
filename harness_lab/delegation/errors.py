"""Errors of delegation.

::

    HarnessLabError
    ├── PlanError (ValueError)            a plan that contradicts itself
    ├── SchemaViolation (ValueError)      a schema, or a result held against it, is not what it must be
    │   └── NativeResultRejected          what a native subagent returned does not fit its node's schema
    ├── NativeResultMissing (KeyError)    a node of the plan has no result
    ├── JournalPathError (ValueError)     a run id that must not become part of a path
    ├── ChainBroken (ValueError)          a journal or audit chain does not follow from its beginning
    └── UnfinishedDispatch (RuntimeError) an earlier dispatch was interrupted: resume first
"""

from __future__ import annotations

from harness_lab.errors import HarnessLabError


class PlanError(HarnessLabError, ValueError):
    """A plan that contradicts itself."""


class SchemaViolation(HarnessLabError, ValueError):
    """A schema, or a result held against it, is not what it must be.

    Attributes
    ----------
    fields : tuple of str
        The keys at fault, sorted; empty where no key is.
    """

    def __init__(self, message: str, *, fields: tuple[str, ...] = ()) -> None:
        self.fields = fields
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), str(self), self.fields))


def _rebuild(kind: type[SchemaViolation], message: str, fields: tuple[str, ...]) -> SchemaViolation:
    return kind(message, fields=fields)


class NativeResultRejected(SchemaViolation):
    """What a native subagent returned does not fit its node's schema; nothing was written."""


class NativeResultMissing(HarnessLabError, KeyError):
    """A node of the plan has no result."""

    def __str__(self) -> str:
        return str(self.args[0])


class JournalPathError(HarnessLabError, ValueError):
    """A run id that must not become part of a path."""


class ChainBroken(HarnessLabError, ValueError):
    """A journal or audit chain does not follow from its beginning, or its last line is torn."""


class UnfinishedDispatch(HarnessLabError, RuntimeError):
    """An earlier dispatch was interrupted before ledger and audit had what the journal has: resume first."""
