"""File names made of names that anybody chose."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST = 60


def slug(name: str) -> str:
    r"""Return a name of lower-case letters, digits and hyphens.

    Examples
    --------
    >>> slug("../Größe & \u202e<b>"), slug("模块")
    ('grosse-b', 'agent')
    """
    folded = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", folded).strip("-")[:_LONGEST].strip("-") or "agent"


def slugs(names: Iterable[str]) -> list[str]:
    """Return a slug for each name; those that would be the same are numbered.

    Examples
    --------
    >>> slugs(["a b", "a-b", "a-b-2", "a.b"])
    ['a-b', 'a-b-2', 'a-b-2-2', 'a-b-3']
    """
    found: list[str] = []
    for name in names:
        wanted = plain = slug(name)
        number = 1
        while wanted in found:
            number += 1
            wanted = f"{plain}-{number}"
        found.append(wanted)
    return found
