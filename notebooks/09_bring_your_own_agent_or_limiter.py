# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your own agent, your own limiter
#
# An agent is ordinary asyncio code; a limiter is any object with the four questions. Both run in virtual time,
# against a provider whose luck is fixed, and give the same rows as everything else.

# %% tags=["parameters"]
n_runs = 100
seed = 7

# %%
import asyncio

import harness_lab as lab
from harness_lab import widgets
from harness_lab.adapters import Adapter, policy
from harness_lab.conformance import run_adapter
from harness_lab.policies import call_holds
from harness_lab.simulate import Limiter, from_gallery, simulate_agent

provider = from_gallery("coding-agent").provider

# %% [markdown]
# ## An agent
#
# It looks, starts two helpers at once, and writes up. A call that is refused raises; an agent that does not catch it
# ends there. docs/own-agent.md has every method of a seat.


# %%
async def helper(seat):
    for _ in range(6):
        await seat.call(4_000, model="small")
        await asyncio.sleep(2)  # a tool


async def lead(seat):
    await seat.call(9_000, model="large")
    await asyncio.gather(seat.child(helper, name="helper"), seat.child(helper, name="helper"))
    await seat.call(16_000, model="large")


ours = simulate_agent(
    lead, provider=provider, policies=[lab.unlimited(), lab.shared_ledger(10)], runs=n_runs, seed=seed
)
print(lab.compare(ours.settlements).verdict())

# %% [markdown]
# ## A limiter
#
# `Limiter` lets everything through; override what yours has an opinion on.


# %%
class SmallCalls(Limiter):
    """Refuses calls whose prompt is large."""

    def admit(self, ask, now):
        prompt = ask.bound[self.channels.index("input")]
        return self.no("prompt too large") if prompt is not None and prompt > 12_000 else self.yes(ask, now)


theirs = simulate_agent(
    lead, provider=provider, policies={"small calls": lambda run: SmallCalls()}, runs=n_runs, seed=seed
)
print(theirs.summary())

# %% [markdown]
# ## A limiter that only counts
#
# Most do: they are asked before a call and told after it. An adapter of a few lines makes a policy of one, which stands
# beside ours in any experiment (docs/adapters.md; pydantic-ai, LiteLLM, LangGraph and more are there by name).


# %%
class Purse(Adapter):
    """A counter in dollars that looks before a call and adds after it."""

    name = "purse"

    def __init__(self, *, cost_usd=None):
        self.left = float("inf") if cost_usd is None else cost_usd

    def before_call(self, call):
        return "the purse is empty" if self.left <= 0 else None

    def after_call(self, call, used):
        self.left -= used.cost_usd or 0.0


purse, cap = policy(Purse, cost_usd=0.1), call_holds(cost_usd=0.1)
beside = simulate_agent(lead, provider=provider, policies=[cap, purse], runs=n_runs, seed=seed)
print(lab.compare(beside.settlements).verdict())

# %% [markdown]
# What it means by a limit, held against the cases that every limiter is asked:

# %%
answers = run_adapter(Purse)
for result in answers.results:
    if result.area == "ruler" and result.word == "deviating":
        print(f"{result.id}: {result.reason}")

# %%
panel = widgets.compare(ours)
panel.picture.still()

# %%
ends = ours.settlements.nodes.query("parent.isna()").groupby("policy")["outcome"].value_counts()
assert ends.sum() == 2 * n_runs
assert (theirs.settlements.nodes.query("parent.isna()")["outcome"] != "completed").all()
deviating = {result.id for result in answers.results if result.word == "deviating"}
assert {"cost-at-once", "cost-last-call", "cost-unknown"} <= deviating
assert not answers.failed
print("Every claim holds.")
