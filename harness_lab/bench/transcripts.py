"""Made-up Claude Code transcripts of any size, in the shape of real ones.

The shape was measured on 284 real sessions (40,834 assistant lines, 18,382 calls): 2.22 lines a call, 65 calls a
session, 127 characters in the median answer line (mean 464), 365 in the median result of a tool (mean 2,860), which is
written twice in its line. Lengths are log-normal with these medians and means; texts are cut out of one made-up page.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

ANSWER: Final = (4.84, 1.61)
"""Parameters of the length of an answer line's text: logarithms, characters."""

RESULT: Final = (5.90, 2.03)
"""Parameters of the length of a tool's result."""

LONGEST: Final = 80_000
LINES_A_CALL: Final = (1, 2, 2, 2, 2, 2, 3, 3, 3)
CALLS_A_SESSION: Final = (30, 100)
CALLS_A_TURN: Final = 10
_START: Final = 1_767_600_000
_PAGE: Final = 'def limit(self, tokens: int) -> bool:\n    return self.spent + tokens <= self.total  # "held"\n' * 900


def write_transcripts(folder: Path, *, size_mb: float, seed: int = 1) -> int:
    """Write transcripts under ``folder/projects`` until they have a given size.

    Parameters
    ----------
    folder : Path
        Where to write; made if it does not exist.
    size_mb : float
        Size of all files, megabytes (2**20 bytes).
    seed : int
        Seed of lengths and counts: the same seed and size give the same files.

    Returns
    -------
    int
        Model calls written.
    """
    place = folder / "projects" / "-work-demo"
    place.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)  # noqa: S311 - no secret depends on it
    written, calls, target = 0.0, 0, size_mb * 2**20
    while written < target:
        session = _Session(rng, first_call=calls)
        path = place / f"{session.ident}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for line in session.lines(most=target - written):
                file.write(line)
        written += path.stat().st_size
        calls = session.call
    return calls


class _Session:
    """One session: its clock, its context, and its lines."""

    def __init__(self, rng: random.Random, *, first_call: int) -> None:
        self.rng, self.call = rng, first_call
        bits = f"{rng.getrandbits(128):032x}"
        self.ident = "-".join((bits[:8], bits[8:12], bits[12:16], bits[16:20], bits[20:]))
        self._clock, self._number, self._context = _START + 60 * first_call, 0, 20_000

    def lines(self, *, most: float) -> list[str]:
        """Return the session's lines; it ends early when they have `most` characters."""
        made: list[str] = []
        size = 0
        for number in range(self.rng.randint(*CALLS_A_SESSION)):
            new = [self._prompt()] if number % CALLS_A_TURN == 0 else []
            new += [*self._answer(), self._result()]
            made += new
            size += sum(map(len, new))
            if size > most:
                break
        return made

    def _text(self, shape: tuple[float, float]) -> str:
        length = min(int(self.rng.lognormvariate(*shape)), LONGEST)
        at = self.rng.randrange(1_000)
        return _PAGE[at : at + length]

    def _line(self, kind: str, **more: object) -> str:
        self._number += 1
        self._clock += self.rng.randrange(1, 9)
        stamp = datetime.fromtimestamp(self._clock, UTC).strftime("%Y-%m-%dT%H:%M:%S.123Z")
        about = {
            "parentUuid": f"{self.ident[:24]}{self._number - 1:012x}",
            "isSidechain": False,
            "userType": "external",
        }
        about |= {"cwd": "/home/demo", "sessionId": self.ident, "version": "2.1.120", "gitBranch": "main", "type": kind}
        about |= {**more, "uuid": f"{self.ident[:24]}{self._number:012x}", "timestamp": stamp}
        return json.dumps(about, separators=(",", ":")) + "\n"

    def _prompt(self) -> str:
        return self._line("user", message={"role": "user", "content": self._text(ANSWER)})

    def _answer(self) -> list[str]:
        self.call += 1
        written = self.rng.randrange(200, 3_000)
        usage = {"input_tokens": self.rng.randrange(1, 20), "cache_creation_input_tokens": written}
        usage["cache_read_input_tokens"] = self._context
        self._context += written
        count = self.rng.choice(LINES_A_CALL)
        return [self._block(usage, written, last=number == count - 1) for number in range(count)]

    def _block(self, usage: dict[str, int], written: int, *, last: bool) -> str:
        kept = {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0}
        told = {**usage, "cache_creation": kept, "output_tokens": self.rng.randrange(50, 900) if last else 3}
        text = self._text(ANSWER)
        tool = {"type": "tool_use", "id": f"toolu_{self.call:020d}", "name": "Bash", "input": {"command": text}}
        message = {"model": "claude-opus-4-5-20251101", "id": f"msg_{self.call:020d}", "type": "message"}
        message |= {"role": "assistant", "content": [tool if last else {"type": "text", "text": text}]}  # type: ignore[dict-item]
        message |= {"stop_reason": "tool_use" if last else None, "usage": {**told, "service_tier": "standard"}}  # type: ignore[dict-item]
        return self._line("assistant", message=message, requestId=f"req_{self.call:020d}")

    def _result(self) -> str:
        text = self._text(RESULT)
        block = {"type": "tool_result", "tool_use_id": f"toolu_{self.call:020d}", "content": text}
        result = {"stdout": text, "stderr": "", "interrupted": False}
        return self._line("user", message={"role": "user", "content": [block]}, toolUseResult=result)
