"""A model client that answers from a script: for tests, examples and dry runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harness_lab.agents.client import ModelResponse, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lab.agents.client import ModelRequest

Line = ModelResponse | BaseException


class ScriptedClient:
    """Answers each call with the next line of a script; an exception in it is raised.

    Parameters
    ----------
    script : sequence of ModelResponse or BaseException
        The lines, for every model that has none of its own.
    by_model : mapping of str to sequence
        Lines of single models.
    repeat_last : bool
        Whether the last line of a script is said for ever; otherwise a script that has run out is an error.

    Attributes
    ----------
    requests : list of ModelRequest
        Every call that was made, in order.
    """

    def __init__(
        self,
        script: Sequence[Line] = (),
        *,
        by_model: Mapping[str, Sequence[Line]] | None = None,
        repeat_last: bool = False,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self._scripts = {model: list(lines) for model, lines in (by_model or {}).items()}
        self._script = list(script)
        self._repeat = repeat_last

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Say the next line.

        Raises
        ------
        LookupError
            If the script has run out.
        """
        self.requests.append(request)
        script = self._scripts.get(request.model, self._script)
        if not script:
            raise LookupError(f"the script has no line left for model {request.model}")
        line = script[0] if self._repeat and len(script) == 1 else script.pop(0)
        await asyncio.sleep(0)  # as a real client: others go on meanwhile
        if isinstance(line, BaseException):
            raise line
        return line


def says(text: str, *, cost_usd: float | None = None) -> ModelResponse:
    """Return a line that ends a run."""
    return ModelResponse(text=text, cost_usd=cost_usd)


def calls(*tools: str, text: str = "", cost_usd: float | None = None, **arguments: object) -> ModelResponse:
    """Return a line that calls tools, each with the same arguments."""
    asked = [ToolCall(id=f"call-{i}", name=name, arguments=arguments) for i, name in enumerate(tools)]
    return ModelResponse(text=text, finish_reason="tool_calls", tool_calls=asked, cost_usd=cost_usd)
