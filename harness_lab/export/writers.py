"""Export: one writer per target, each read back before it counts.

A writer turns a policy into text and says what the target cannot express; nothing is rounded or dropped silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from harness_lab.errors import InputError
from harness_lab.export.targets import env, prism, toml

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Loss
    from harness_lab.policies import PolicySpec


class Writer(Protocol):
    """A target: module-level functions of one file in ``targets``."""

    FORMS: tuple[str, ...]
    FILE: dict[str, str]

    def write(self, policy: PolicySpec, form: str) -> tuple[str, tuple[Loss, ...]]:
        """Return the text and what is lost."""

    def read(self, text: str, form: str) -> PolicySpec:
        """Read the text back."""


TARGETS: dict[str, Writer] = {"prism": prism, "env": env, "toml": toml}
"""Writers by name of the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A policy in the form of a target.

    Parameters
    ----------
    target, form : str
        Where it goes, and in which language.
    file : str
        Usual name of the file.
    text : str
        Its content.
    losses : tuple of Loss
        Values that the target cannot express, and what that loses. Empty: the file means the same.
    """

    target: str
    form: str
    file: str
    text: str
    losses: tuple[Loss, ...]

    def read_back(self) -> PolicySpec:
        """Return the policy that the text holds."""
        return TARGETS[self.target].read(self.text, self.form)


def export(policy: PolicySpec, target: str, *, form: str | None = None) -> Export:
    """Write a policy for a target, and read it back.

    Parameters
    ----------
    policy : PolicySpec
        What to write.
    target : str
        One of :data:`TARGETS`.
    form : str, optional
        Language of the file; the target's first if None.

    Raises
    ------
    InputError
        If the target or form does not exist, or the target can express no part of the policy.
    """
    if target not in TARGETS:
        raise InputError("target", expected=f"one of {', '.join(TARGETS)}", got=target)
    writer = TARGETS[target]
    chosen = form if form is not None else writer.FORMS[0]
    if chosen not in writer.FORMS:
        raise InputError(f"form of {target}", expected=f"one of {', '.join(writer.FORMS)}", got=chosen)
    text, losses = writer.write(policy, chosen)
    writer.read(text, chosen)
    return Export(target=target, form=chosen, file=writer.FILE[chosen], text=text, losses=losses)
