"""What came of a run of behaviour cases: one result a case, counted by area."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

if TYPE_CHECKING:
    import pandas as pd

Word = Literal["passed", "deviating", "not_applicable", "failed"]
WORDS: Final[tuple[str, ...]] = get_args(Word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one case.

    Parameters
    ----------
    area : str
        Name of the file that the case belongs to, without ``.json``.
    id : str
        The case.
    word : {"passed", "deviating", "not_applicable", "failed"}
        What came of it.
    reason : str
        Why it deviates, does not apply or failed; for a case that passed, empty.
    preset : str or None
        The compatibility preset under which it was answered; None: our own defaults.
    scenario : str
        Of a foreign limiter that deviates: what shows it, as Python lines or a command; else empty.
    """

    area: str
    id: str
    word: Word
    reason: str = ""
    preset: str | None = None
    scenario: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of a run.

    Parameters
    ----------
    results : tuple of Result
        In the order of the cases.
    """

    results: tuple[Result, ...]

    @property
    def failed(self) -> int:
        """Cases that failed."""
        return sum(result.word == "failed" for result in self.results)

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return the counts: area → word → cases."""
        areas = dict.fromkeys(result.area for result in self.results)
        counted = Counter((result.area, result.word) for result in self.results)
        return {area: {word: counted[area, word] for word in WORDS} for area in areas}  # type: ignore[index]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a case: area, id, word, reason and preset."""
        return [
            {"area": r.area, "id": r.id, "word": r.word, "reason": r.reason, "preset": r.preset} for r in self.results
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return one row a case as a table."""
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=["area", "id", "word", "reason", "preset"])

    def summary(self) -> str:
        """Return the counts as a plain table."""
        lines = [f"{'area':<24}" + "".join(f"{word:>16}" for word in WORDS)]
        for area, counts in self.to_dict().items():
            lines.append(f"{area:<24}" + "".join(f"{counts[word]:>16}" for word in WORDS))
        verdict = "no case failed" if not self.failed else f"{self.failed} of {len(self.results)} cases failed"
        return "\n".join([*lines, verdict])

    def explain(self) -> str:
        """Say what the words mean and what to do next."""
        return (
            "passed: our answer is the case's, as our defaults are or under the preset of its system. deviating: ours "
            "differs on purpose, for the reason given. not_applicable: the case is about another language's runtime or "
            "lists constants. failed: ours differs without a reason, or nothing here answers a case of that shape. "
            "It says nothing about behaviour that no case asks for. Next: read the rows of what failed."
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"
