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

# %%
panel = widgets.compare(ours)
panel.picture.still()

# %%
ends = ours.settlements.nodes.query("parent.isna()").groupby("policy")["outcome"].value_counts()
assert ends.sum() == 2 * n_runs
assert (theirs.settlements.nodes.query("parent.isna()")["outcome"] != "completed").all()
print("Every claim holds.")
