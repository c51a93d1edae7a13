"""LiteLLM's limits of a session: its proxy's own hooks and cache, asked in this process without a proxy around them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.protocol import Adapter, No
from harness_lab.adapters.watched import note

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from harness_lab.adapters.protocol import Call, Used

_LOCAL = "LITELLM_LOCAL_MODEL_COST_MAP"
_PARAMS = {"calls": "max_iterations", "cost_usd": "max_budget_per_session"}
_SCRIPT = """\
import asyncio, os
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from litellm.caching.caching import DualCache
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.agent_endpoints.agent_registry import global_agent_registry
from litellm.proxy.hooks.max_budget_per_session_limiter import PROXY_MaxBudgetPerSessionHandler
from litellm.proxy.hooks.max_iterations_limiter import PROXY_MaxIterationsHandler
from litellm.proxy.utils import InternalUsageCache
from litellm.types.agents import AgentResponse
cache, session = InternalUsageCache(DualCache()), {"session_id": "s", "agent_id": "a"}
hooks = PROXY_MaxIterationsHandler(cache), PROXY_MaxBudgetPerSessionHandler(cache)
card = {"name": "a", "url": "http://127.0.0.1", "version": "1", "description": "", "skills": []}
def before():
    for hook in hooks:
        request = {"metadata": session}
        asyncio.run(hook.async_pre_call_hook(UserAPIKeyAuth(agent_id="a"), cache.dual_cache, request, "completion"))
def after(cost):
    ended = {"litellm_params": {"metadata": session}, "response_cost": cost}
    asyncio.run(hooks[1].async_log_success_event(ended, None, None, None))"""
"""What shows a scenario: the hooks as the adapter asks them."""


class LiteLLM(Adapter):
    """One session for the tree: requests of children carry their parent's session, as the proxy passes it on.

    Every request takes from ``max_iterations`` when it is asked, also one that is refused or never leaves. Only what
    succeeded is charged to ``max_budget_per_session``, after it ended. A session is forgotten an hour after its first
    request, on the wall clock: no run in virtual time sees that. The budgets of keys, teams and users live in the
    proxy's database and cannot be asked here.
    """

    name = "litellm"
    package = "litellm"
    requires = "litellm[proxy]>=1.110"
    knobs: ClassVar[Mapping[str, str]] = {
        "calls": "max_iterations: requests of a session, refused ones too",
        "cost_usd": "max_budget_per_session: dollars of requests that succeeded",
    }

    def __init__(self, *, calls: int | None = None, cost_usd: float | None = None) -> None:
        given = {"calls": calls, "cost_usd": cost_usd}
        params = {_PARAMS[name]: value for name, value in given.items() if value is not None}
        self._hooks = _hooks()
        self._cache, self._auth = self._hooks[0].internal_usage_cache.dual_cache, _agent(params)
        self._session = {"session_id": "s", "agent_id": self._auth.agent_id}
        note(_SCRIPT)
        agent = f'AgentResponse(agent_id="a", agent_name="a", agent_card_params=card, litellm_params={params})'
        note(f"global_agent_registry.agent_list = [{agent}]")

    def before_call(self, call: Call) -> No | None:
        """Let both hooks look; the first one counts."""
        from litellm.proxy.common_utils.proxy_rate_limit_error import (  # type: ignore[import-not-found]
            ProxyRateLimitError,
        )

        request = {"metadata": self._session}
        for hook, limit in zip(self._hooks, _PARAMS, strict=True):
            try:
                _at_once(hook.async_pre_call_hook(self._auth, self._cache, request, "completion"))
            except ProxyRateLimitError as error:
                said = str(error.detail)
                note(f"try:\n    before()\nexcept Exception as error:\n    print(error.detail)  # {said}")
                return No(said, limit)
        note("before()")
        return None

    def after_call(self, call: Call, used: Used) -> None:
        """Charge a request that succeeded."""
        if used.status != "completed":
            return
        note(f"after({used.cost_usd})")
        ended = {"litellm_params": {"metadata": self._session}, "response_cost": used.cost_usd}
        _at_once(self._hooks[1].async_log_success_event(ended, None, None, None))


def _hooks() -> tuple[Any, Any]:
    """Return a session's two limiters, on a cache of their own."""
    os.environ.setdefault(_LOCAL, "True")  # it fetches prices when it is imported otherwise
    from litellm.caching.caching import DualCache  # type: ignore[import-not-found]
    from litellm.proxy.hooks.max_budget_per_session_limiter import (  # type: ignore[import-not-found]
        PROXY_MaxBudgetPerSessionHandler,
    )
    from litellm.proxy.hooks.max_iterations_limiter import PROXY_MaxIterationsHandler  # type: ignore[import-not-found]
    from litellm.proxy.utils import InternalUsageCache  # type: ignore[import-not-found]

    cache = InternalUsageCache(DualCache())
    return PROXY_MaxIterationsHandler(cache), PROXY_MaxBudgetPerSessionHandler(cache)


def _agent(params: dict[str, Any]) -> Any:
    """Register an agent with such limits, once, and return the key of its requests."""
    from litellm.proxy._types import UserAPIKeyAuth  # type: ignore[import-not-found]
    from litellm.proxy.agent_endpoints.agent_registry import (  # type: ignore[import-not-found]
        global_agent_registry,
    )
    from litellm.types.agents import AgentResponse  # type: ignore[import-not-found]

    name = f"harness-lab {params}"
    if all(agent.agent_id != name for agent in global_agent_registry.agent_list):
        card = {"name": name, "url": "http://127.0.0.1", "version": "1", "description": "", "skills": []}
        agent = AgentResponse(agent_id=name, agent_name=name, litellm_params=params, agent_card_params=card)
        global_agent_registry.agent_list.append(agent)
    return UserAPIKeyAuth(agent_id=name)


def _at_once(asked: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine that never waits, without a loop."""
    try:
        asked.send(None)
    except StopIteration:
        return
    asked.close()
    raise RuntimeError("a hook of the proxy waited for something outside this process")


ADAPTER = LiteLLM
