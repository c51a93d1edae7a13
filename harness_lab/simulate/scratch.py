"""State that runs share, made afresh for a simulation: never the file that production keeps its account in."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from harness_lab.simulate.trace import Tracing

if TYPE_CHECKING:
    from harness_lab.policies import OpenPolicy


class Scratch:
    """A policy's shared state for one period: opened empty, and gone afterwards.

    Parameters
    ----------
    spec : PolicySpec
        A policy whose state outlives a run. A durable account in it gets an empty file of its own, so that every period
        begins alike, on every backend, and no real account is touched.
    """

    __slots__ = ("_folder", "open")

    def __init__(self, spec: Any) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self.open: OpenPolicy = self._alone(spec).open()

    def _alone(self, spec: Any) -> Any:
        if isinstance(spec, Tracing):
            spec.spec = self._alone(spec.spec)
            return spec
        if spec.module("durable_account") is None:
            return spec
        self._folder = TemporaryDirectory(prefix="harness-lab-")
        path = str(Path(self._folder.name) / "account.db")
        return spec.with_module("durable_account", path=path, if_missing="create", synchronous="normal")

    def close(self) -> None:
        """Close the state and remove what it left."""
        self.open.close()
        if self._folder is not None:
            self._folder.cleanup()
