"""LiteLLM's ``BudgetManager``: a user's dollars, looked at before a call as its documentation says and added after."""

from __future__ import annotations

import os
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.protocol import Adapter, No
from harness_lab.adapters.watched import note
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.adapters.protocol import Call, Used

_MODEL = "nano-dollars"
_SCRIPT = """\
import os
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
from litellm import BudgetManager, ModelResponse, model_cost
from litellm.types.utils import Usage
price = {"input_cost_per_token": 0.0, "output_cost_per_token": 1e-9}  # a token is a nano-dollar here
model_cost["nano-dollars"] = price | {"litellm_provider": "openai", "mode": "chat"}
manager = BudgetManager(project_name="p", client_type="in memory")
manager.user_dict = {}
def fits():
    return manager.get_current_cost("u") <= manager.get_total_budget("u")
def after(nano_dollars):
    used = Usage(prompt_tokens=0, completion_tokens=nano_dollars, total_tokens=nano_dollars)
    manager.update_cost("u", ModelResponse(model="openai/nano-dollars", usage=used))"""
"""What shows a scenario: the manager as the adapter asks it."""


class LiteLLMBudgetManager(Adapter):
    """The object refuses nothing itself; its user asks ``get_current_cost(user) <= get_total_budget(user)``.

    So a call is let through that asks when the budget is just used up, and one that costs more than what is left. What
    failed is not told to it. Its windows (daily, weekly and so on) end by the wall clock and are not used here.
    """

    name = "litellm-budget-manager"
    package = "litellm"
    requires = "litellm>=1.110"
    knobs: ClassVar[Mapping[str, str]] = {
        "cost_usd": "total_budget: dollars of a user's responses, by its own price list; reached is not exceeded"
    }

    def __init__(self, *, cost_usd: float | None = None) -> None:
        self.manager = _manager()
        note(_SCRIPT)
        told = 'float("inf")' if cost_usd is None else cost_usd  # every user has a budget
        note(f'manager.create_budget(total_budget={told}, user="u")')
        self.manager.create_budget(total_budget=inf if cost_usd is None else cost_usd, user="u")

    def before_call(self, call: Call) -> No | None:
        """Look, as its documentation says."""
        fits = self.manager.get_current_cost("u") <= self.manager.get_total_budget("u")
        note(f"print(fits())  # {fits}")
        return None if fits else No("the user's budget is used up", "cost_usd")

    def after_call(self, call: Call, used: Used) -> None:
        """Add a response; what failed has none, and what reports no cost costs nothing."""
        if used.status != "completed":
            return
        nano = round((used.cost_usd or 0) * NUSD_PER_USD)
        note(f"after({nano})")
        self.manager.update_cost("u", _response(nano))


@cache
def _package() -> Any:
    """Return the package, with a model whose tokens are nano-dollars."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it fetches prices when it is imported otherwise
    import litellm  # type: ignore[import-not-found]

    price = {"input_cost_per_token": 0.0, "output_cost_per_token": 1e-9, "litellm_provider": "openai", "mode": "chat"}
    litellm.model_cost[_MODEL] = price
    return litellm


def _manager() -> Any:
    manager = _package().BudgetManager(project_name="harness-lab", client_type="in memory")  # else it writes a file
    manager.user_dict = {}
    return manager


def _response(nano: int) -> Any:
    from litellm.types.utils import Usage  # type: ignore[import-not-found]

    used = Usage(prompt_tokens=0, completion_tokens=nano, total_tokens=nano)
    return _package().ModelResponse(model=f"openai/{_MODEL}", usage=used)


ADAPTER = LiteLLMBudgetManager
