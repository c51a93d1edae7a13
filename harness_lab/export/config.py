"""The tuned config: a policy, the evidence behind each tuned value, and where it came from, as one JSON file."""

from __future__ import annotations

import hmac
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness_lab import files
from harness_lab.errors import InputError, ReadError
from harness_lab.export.canonical import digest, signature
from harness_lab.export.document import (
    MODES,
    SCHEMA_VERSION,
    AgentLimits,
    Document,
    Evidence,
    Mode,
    Provenance,
    Seal,
    in_one_line,
)
from harness_lab.policies import PolicySpec
from harness_lab.pricing import PriceTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.analyze.ceilings import CeilingChoice
    from harness_lab.analyze.frames import Data
    from harness_lab.export.diff import ConfigDiff

_INHERITED = {"config_sha256": "experiment_sha256"}
_OWN = ("seed", "config_sha256", "data_sha256", "date", "harness_lab", "stale_after")


class TunedConfig:
    """A policy with its evidence.

    Parameters
    ----------
    policy : PolicySpec
        What is enforced: budgets, floors, limits, and how each of them answers.
    evidence : sequence of Evidence
        One entry a tuned value.
    provenance : Provenance
        Where it came from.
    mode : {"enforce", "warn", "shadow"}
        What the limits do where they are loaded.
    agents : sequence of AgentLimits
        What holds for single agents, by name; names differ.
    prices : PriceTable or None
        Prices that the money in it rests on; None: not stated.
    """

    __slots__ = ("agents", "evidence", "mode", "policy", "prices", "provenance")

    def __init__(
        self,
        policy: PolicySpec,
        *,
        provenance: Provenance,
        evidence: Sequence[Evidence] = (),
        mode: Mode = "enforce",
        agents: Sequence[AgentLimits] = (),
        prices: PriceTable | None = None,
    ) -> None:
        if mode not in MODES:
            raise InputError("mode", expected=f"one of {', '.join(MODES)}", got=mode)
        names = [agent.name for agent in agents]
        if len(set(names)) < len(names):
            raise InputError("agents", expected="different names", got=names)
        self.policy = policy
        self.provenance = provenance
        self.evidence = tuple(evidence)
        self.mode: Mode = mode
        self.agents = tuple(agents)
        self.prices = prices

    def evidence_of(self, value: str) -> Evidence | None:
        """Return what stands behind a value (``module.parameter``), what it does not state filled in from the file."""
        found = next((one for one in self.evidence if one.value == value), None)
        if found is None:
            return None
        inherited = {name: getattr(self.provenance, _INHERITED.get(name, name)) for name in _OWN}
        return found.model_copy(update={k: v for k, v in inherited.items() if getattr(found, k) is None})

    def digest(self) -> str:
        """Return the hex SHA-256 of the config's canonical JSON (RFC 8785)."""
        return digest(self._plain())

    def to_json(self, *, key: bytes | None = None) -> str:
        """Return the file's content: sorted keys, two spaces, a final newline; equal configs are equal bytes.

        Parameters
        ----------
        key : bytes, optional
            Signs the file: an HMAC stands beside the digest. At least 16 bytes.
        """
        plain = self._plain()
        seal = Seal(sha256=digest(plain), hmac_sha256=None if key is None else signature(plain, key))
        plain["seal"] = seal.model_dump(mode="json", exclude_none=True)
        return json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, path: str | Path, *, key: bytes | None = None) -> Path:
        """Write the file, whole or not at all, and return its path; see :func:`harness_lab.files.replacing`."""
        return files.write_text(path, self.to_json(key=key))

    @classmethod
    def from_json(cls, text: str, *, key: bytes | None = None) -> TunedConfig:
        """Read a file's content.

        Parameters
        ----------
        text : str
            The content.
        key : bytes, optional
            The file must be signed with it.

        Raises
        ------
        InputError
            If it is no tuned config, of a newer version, holds a policy that does not exist, or is not what was
            sealed or signed.
        """
        try:
            document = Document.model_validate_json(text)
        except ValidationError as error:
            raise in_one_line(error, "tuned config") from None
        if document.schema_version > SCHEMA_VERSION:
            raise InputError("schema_version", expected=f"at most {SCHEMA_VERSION}", got=document.schema_version)
        _check_seal(json.loads(text), document.seal, key)
        document = document.upgraded()
        return cls(
            PolicySpec.from_dict(document.policy),
            provenance=document.provenance,
            evidence=document.evidence,
            mode=document.mode,
            agents=document.agents,
            prices=None if document.prices is None else PriceTable.from_dict(document.prices),
        )

    @classmethod
    def read(cls, path: str | Path, *, key: bytes | None = None) -> TunedConfig:
        """Read a file.

        Raises
        ------
        ReadError
            If it cannot be read.
        InputError
            See :meth:`from_json`.
        """
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise ReadError(str(path), expected="a tuned config (JSON)", got=str(error)) from None
        return cls.from_json(text, key=key)

    @classmethod
    def from_ceiling(cls, choice: CeilingChoice, records: Data, **options: Any) -> TunedConfig:
        """Put a chosen ceiling into a policy, with its evidence; see :func:`harness_lab.export.tuned.config_of`."""
        from harness_lab.export.tuned import config_of

        return config_of(choice, records, **options)

    def diff(self, other: TunedConfig) -> ConfigDiff:
        """Say in words what `other` changes; see :func:`harness_lab.export.diff.diff`."""
        from harness_lab.export.diff import diff

        return diff(self, other)

    def _plain(self) -> dict[str, Any]:
        document = Document(
            mode=self.mode,
            policy=self.policy.to_dict(),
            agents=self.agents,
            prices=None if self.prices is None else self.prices.to_dict(),
            evidence=self.evidence,
            provenance=self.provenance,
        )
        return document.model_dump(mode="json", exclude={"seal"})

    def __repr__(self) -> str:
        return f"TunedConfig({self.policy.name!r}, {self.mode}, evidence for {len(self.evidence)} values)"


def _check_seal(plain: dict[str, Any], seal: Seal | None, key: bytes | None) -> None:
    """Hold the content against its seal; files of version 1 have none."""
    body = {name: value for name, value in plain.items() if name != "seal"}
    if seal is not None and seal.sha256 != digest(body):
        hint = "It was changed after it was written; delete `seal` to take it as it is"
        raise InputError("tuned config", expected=f"content with the digest {seal.sha256}", got=digest(body), hint=hint)
    if key is None:
        return
    signed = None if seal is None else seal.hmac_sha256
    if signed is None or not hmac.compare_digest(signed, signature(body, key)):
        raise InputError("tuned config", expected="a signature by this key", got=signed or "no signature")
