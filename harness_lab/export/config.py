"""The tuned config: a policy, the evidence behind each tuned value, and where it came from, as one JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness_lab import files
from harness_lab.errors import InputError, ReadError
from harness_lab.policies import PolicySpec

SCHEMA_VERSION = 1


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Evidence(_Frozen):
    """Why a value is what it is.

    Parameters
    ----------
    value : str
        What it is about, as ``module.parameter``.
    chosen : float
        The value that was chosen, in `unit`.
    unit : str
        Unit and scope, such as ``USD per run``.
    target : str
        What was asked for.
    method : str
        How it was chosen.
    n : int
        Runs behind it.
    confidence : float or None
        Confidence of the promise; None where none is made.
    interval : tuple of float or None
        Interval of the estimate in `unit`, if there is one.
    note : str
        What a reader has to know.
    """

    value: str
    chosen: float
    unit: str
    target: str
    method: str
    n: int
    confidence: float | None = None
    interval: tuple[float, float] | None = None
    note: str = ""


class Provenance(_Frozen):
    """Where a config came from: enough to make it again.

    Parameters
    ----------
    date : str
        The day it was made, ISO format.
    seed : int or None
        Of the simulation behind it.
    experiment_sha256, data_sha256 : str or None
        Digests of the experiment's configuration and of the records.
    harness_lab : str
        Version of the code.
    stale_after : str or None
        The day from which the evidence should be looked at again, ISO format; None: not stated.
    """

    date: str
    harness_lab: str
    seed: int | None = None
    experiment_sha256: str | None = None
    data_sha256: str | None = None
    stale_after: str | None = None


class _Document(_Frozen):
    """The stored form."""

    kind: Literal["harness_lab/tuned-config"] = "harness_lab/tuned-config"
    schema_version: int = SCHEMA_VERSION
    policy: dict[str, Any]
    evidence: tuple[Evidence, ...] = ()
    provenance: Provenance


class TunedConfig:
    """A policy with its evidence.

    Parameters
    ----------
    policy : PolicySpec
        What is enforced.
    evidence : sequence of Evidence
        One entry a tuned value.
    provenance : Provenance
        Where it came from.
    """

    __slots__ = ("evidence", "policy", "provenance")

    def __init__(self, policy: PolicySpec, *, provenance: Provenance, evidence: tuple[Evidence, ...] = ()) -> None:
        self.policy = policy
        self.provenance = provenance
        self.evidence = tuple(evidence)

    def to_json(self) -> str:
        """Return the file's content: sorted keys, two spaces, a final newline; equal configs are equal bytes."""
        document = _Document(policy=self.policy.to_dict(), evidence=self.evidence, provenance=self.provenance)
        plain = document.model_dump(mode="json")
        return json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, path: str | Path) -> Path:
        """Write the file, whole or not at all, and return its path; see :func:`harness_lab.files.replacing`."""
        return files.write_text(path, self.to_json())

    @classmethod
    def from_json(cls, text: str) -> TunedConfig:
        """Read a file's content.

        Raises
        ------
        InputError
            If it is no tuned config, of a newer version, or holds a policy that does not exist.
        """
        try:
            document = _Document.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "tuned config"
            raise InputError(where, expected=first["msg"], got=first["input"]) from None
        if document.schema_version > SCHEMA_VERSION:
            raise InputError("schema_version", expected=f"at most {SCHEMA_VERSION}", got=document.schema_version)
        return cls(PolicySpec.from_dict(document.policy), provenance=document.provenance, evidence=document.evidence)

    @classmethod
    def read(cls, path: str | Path) -> TunedConfig:
        """Read a file.

        Raises
        ------
        ReadError
            If it cannot be read.
        """
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ReadError(str(path), expected="a tuned config (JSON)", got=str(error)) from None
        return cls.from_json(text)
