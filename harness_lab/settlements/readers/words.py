"""The words of a flat table: what a user says they mean, and outcomes that nobody understands.

A row whose outcome is not understood is kept with the outcome ``unknown``: its numbers are known, and leaving out just
the rows that ended in one way would bend every figure that follows.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from harness_lab.errors import InputError
from harness_lab.outcome import Outcome
from harness_lab.settlements.privacy import is_name
from harness_lab.settlements.rows import OUTCOME_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Values = dict[str, dict[str, str]]
"""Field → word of the source → word of the table."""

_MOST_SHOWN: Final = 8


class Words:
    """The words met while reading flat tables."""

    def __init__(self, values: Mapping[str, Mapping[str, str]] | None) -> None:
        self.values = values or {}
        self.strange: Counter[str] = Counter()

    def translate(self, row: dict[str, object]) -> None:
        """Replace the words that the user explained; an outcome that is still not understood becomes unknown."""
        for name, known in self.values.items():
            if name in row:
                row[name] = known.get(str(row[name]).strip(), row[name])
        word = str(row.get("outcome", Outcome.UNKNOWN)).strip()
        if not _understood(word):
            self.strange[word] += 1
            row["outcome"] = Outcome.UNKNOWN.value

    def note(self) -> str | None:
        """Return what a reader of the report should know about outcomes; None if all were understood."""
        if not self.strange:
            return None
        names = [word for word, _ in self.strange.most_common() if is_name(word)][:_MOST_SHOWN]
        rest = len(self.strange) - len(names)
        shown = [*names, *([f"{rest:,} more word(s) not shown"] if rest else [])]
        return (
            f"{self.strange.total():,} row(s) have an outcome that is not understood and are kept as unknown: "
            f"{'; '.join(shown)}. Understood: {', '.join(Outcome)} and their usual spellings; "
            "say what others mean with --map-value outcome:WORD=exhausted or values={...}"
        )


def _understood(word: str) -> bool:
    return word.lower().replace(" ", "_") in OUTCOME_WORDS


def check_values(values: Mapping[str, Mapping[str, str]] | None, fields: Collection[str]) -> None:
    """Refuse a map of values that names a field or an outcome which the table does not have.

    Raises
    ------
    InputError
        Naming what is not known.
    """
    for name, known in (values or {}).items():
        if name not in fields:
            raise InputError("map of values", expected="a field of the table, such as outcome", got=name)
        wrong = [word for word in known.values() if name == "outcome" and not _understood(word)]
        if wrong:
            raise InputError("map of values", expected=f"one of {', '.join(Outcome)}", got=wrong[0])


def parse_values(given: list[str]) -> Values:
    """Read ``FIELD:VALUE=MEANING`` arguments; the value may hold colons and equals signs.

    Raises
    ------
    InputError
        If one has another form.

    Examples
    --------
    >>> parse_values(["outcome:stopped: budget=exhausted"])
    {'outcome': {'stopped: budget': 'exhausted'}}
    """
    found: Values = {}
    for item in given:
        name, _, rest = item.partition(":")
        value, _, meaning = rest.rpartition("=")
        if not (name.strip() and value.strip() and meaning.strip()):
            raise InputError(
                "--map-value", expected="FIELD:VALUE=MEANING (outcome:aborted by user=cancelled)", got=item
            )
        found.setdefault(name.strip(), {})[value.strip()] = meaning.strip()
    return found
