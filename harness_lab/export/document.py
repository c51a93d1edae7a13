"""The stored form of a tuned config, checked when it is read: what stands behind each value, and where it came from."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness_lab.errors import InputError

SCHEMA_VERSION = 3
"""Since 3 a promised share is a number (`target_share`); before, it stood in the words of `target` alone."""

Mode = Literal["enforce", "warn", "shadow"]
MODES: tuple[Mode, ...] = ("enforce", "warn", "shadow")
"""What a limit does where it is loaded: it refuses; it warns and admits; it only writes down what it would do."""

Figure = Annotated[float, Field(allow_inf_nan=False)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1)]


def in_one_line(error: ValidationError, what: str) -> InputError:
    """Return the first problem that pydantic found as one of our errors."""
    first = error.errors(include_url=False)[0]
    where = ".".join([what, *map(str, first["loc"])])
    missing = first["type"] == "missing"
    expected, got = ("a value", "nothing") if missing else (first["msg"], first["input"])
    return InputError(where, expected=expected, got=got)


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise in_one_line(error, type(self).__name__) from None


class Evidence(_Frozen):
    """Why a value is what it is.

    Parameters
    ----------
    value : str
        What it is about, as ``module.parameter`` or ``agents.NAME.parameter``.
    chosen : float
        The value that was chosen, in `unit`.
    unit : str
        Unit and scope, such as ``USD per run``.
    target : str
        What was asked for, in words.
    target_share : float or None
        The share of runs (or what `unit` is counted per) that was promised to complete; None where no share was.
    method : str
        How it was chosen.
    n : int
        Runs (or what `unit` is counted per) behind it.
    clusters : int or None
        Groups of runs that resemble each other; None: taken as independent.
    confidence : float or None
        Confidence of the promise; None where none is made.
    interval : tuple of float or None
        Interval of the estimate in `unit`, if there is one.
    note : str
        What a reader has to know.
    seed, config_sha256, data_sha256, date, harness_lab, stale_after
        As in :class:`Provenance`, where they differ from the file's for this value; None: the file's.
    stale_when : str
        What would make it stale, in words, such as ``a new model behind the same name``.
    """

    value: Name
    chosen: Figure
    unit: Name
    target: str
    target_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    method: str
    n: Annotated[int, Field(ge=0)]
    clusters: Annotated[int, Field(ge=0)] | None = None
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    interval: tuple[Figure, Figure] | None = None
    note: str = ""
    seed: int | None = None
    config_sha256: Hash | None = None
    data_sha256: Hash | None = None
    date: Day | None = None
    harness_lab: str | None = None
    stale_after: Day | None = None
    stale_when: str = ""


class Provenance(_Frozen):
    """Where a config came from: enough to make it again.

    Parameters
    ----------
    date : str
        The day it was made, ISO format.
    harness_lab : str
        Version of the code.
    seed : int or None
        Of the simulation behind it.
    experiment_sha256, data_sha256 : str or None
        Digests of the experiment's configuration and of the records.
    stale_after : str or None
        The day from which the evidence should be looked at again, ISO format; None: not stated.
    """

    date: Day
    harness_lab: Name
    seed: int | None = None
    experiment_sha256: Hash | None = None
    data_sha256: Hash | None = None
    stale_after: Day | None = None


class AgentLimits(_Frozen):
    """What holds for one named agent (a role or profile), beside the policy of the tree.

    Parameters
    ----------
    name : str
        Its name.
    description : str
        When it is used; some targets show it to the model that chooses.
    max_calls : int or None
        Model calls of one execution; None: no limit of its own.
    model : str or None
        Model it runs on; None: its parent's.
    disallowed_tools : tuple of str
        Tools it may not use, as the target names them.
    """

    name: Name
    description: str = ""
    max_calls: Annotated[int, Field(ge=0)] | None = None
    model: Name | None = None
    disallowed_tools: tuple[Name, ...] = ()


class Seal(_Frozen):
    """Digest of everything else in the file, and a signature where a key was given.

    Parameters
    ----------
    sha256 : str
        Of the canonical JSON (RFC 8785) of the file without its seal.
    hmac_sha256 : str or None
        The same under a key that writer and reader share; None: unsigned.
    """

    sha256: Hash
    hmac_sha256: Hash | None = None


class Document(_Frozen):
    """The file."""

    kind: Literal["harness_lab/tuned-config"] = "harness_lab/tuned-config"
    schema_version: Annotated[int, Field(ge=1)] = SCHEMA_VERSION
    mode: Mode = "enforce"
    policy: dict[str, Any]
    agents: tuple[AgentLimits, ...] = ()
    prices: dict[str, Any] | None = None
    evidence: tuple[Evidence, ...] = ()
    provenance: Provenance
    seal: Seal | None = None

    def upgraded(self) -> Document:
        """Return the file as this version writes it: a share that an older file promised in words becomes a number."""
        if self.schema_version >= SCHEMA_VERSION:
            return self
        evidence = tuple(
            one if one.target_share is not None else one.model_copy(update={"target_share": share_in_words(one.target)})
            for one in self.evidence
        )
        return self.model_copy(update={"evidence": evidence, "schema_version": SCHEMA_VERSION})


_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def share_in_words(target: str) -> float | None:
    """Read a promised share out of its words, as files before version 3 have it; None where there is no percentage.

    Examples
    --------
    >>> share_in_words("at least 85 % of runs complete"), share_in_words("cheap")
    (0.85, None)
    """
    match = _PERCENT.search(target)
    share = float(match[1]) / 100 if match else 0.0
    return share if 0 < share < 1 else None
