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
# # A first look
#
# If I give my agents these budgets, floors and limits, what happens? This notebook takes the whole way once, by
# hand, on data that ship with the package: from recorded runs to floors, to a ceiling, to policies that are
# compared by simulation, to a panel in which you move the limit yourself. It takes less than a minute.
#
# Words: a *run* is one whole tree of agents, a *node* is one agent's execution in it, and a *settlement* is the
# record of what it used. What is unknown stays unknown and is never counted as zero.

# %% tags=["parameters"]
n_runs = 300  # simulated runs under each policy
seed = 20_260_301  # names the luck: the same seed gives the same numbers

# %%
from dataclasses import replace

from IPython.display import display

import harness_lab as lab
from harness_lab import datasets, plots, widgets

# %% [markdown]
# ## 1. What does a path cost before it works?
#
# Six settlements of one pairing of backend and model were published. A child agent spends tokens on instructions,
# tools and workspace before it reaches its task; the smallest settlement that was ever seen is the **floor** of
# that path. Six are few: the summary says how little they promise.

# %%
six = datasets.load_six_settlements()
floors = lab.derive_floors(six)
print(floors.summary())

# %% [markdown]
# Four parents had authored budgets for such a child. **Preflight** holds each ask against the floor before anything
# starts. A refused ask costs nothing; an ask that is let through is no promise of success.

# %%
asked = datasets.load_authored_budgets()
path = lab.FloorKey(backend="pi", model="tangle-router/glm-5.2")
answers = [lab.preflight(floors.to_table(), path, tokens) for tokens in asked]
for answer in answers:
    print(answer)
ax = floors.plot(asks=asked)

# %% [markdown]
# ## 2. What do runs spend until they complete?
#
# A larger set: 2,400 synthetic runs with 6,360 nodes, made so that the truth is known. Some runs were stopped by a
# limit. They are no completed runs, and no failures either: they would have used *more*. The curve allows for that,
# and it ends where the data end.

# %%
runs = datasets.load_synthetic_runs()
spend = lab.distribution(runs, "cost_nusd")
print(spend.summary())
ax = spend.plot()

# %% [markdown]
# ## 3. Which ceiling?
#
# The smallest limit on a run's spend within which 85 % of all runs complete, with 95 % confidence. Every limit has
# two sides: it avoids spend, and it cuts runs, some of which would have delivered. The dots are other limits.

# %%
choice = lab.ceiling(runs, "cost", target=0.85)
print(choice.summary())
ax = choice.plot()

# %% [markdown]
# ## 4. What would other policies do?
#
# The same agents, fitted to the records, run under three policies built from the very modules that a production
# harness imports. All policies meet the same luck, so they are compared run by run. Read the verdict before the
# picture: it claims no more than the data support.

# %%
experiment = replace(lab.load_experiment(datasets.data_dir() / "experiment.toml"), runs=n_runs, seed=seed)
result = experiment.run()
comparison = lab.compare(result.settlements)
print(comparison.verdict())
figure = comparison.plot()

# %% [markdown]
# One run, from the inside: the tree of agents over time, and what stopped whom.

# %%
nodes = result.settlements.where(policy="pool + tree limits").nodes
by_run = nodes["stopped_by"].notna().groupby(nodes["run"]).sum()
ax = plots.plot_timeline(nodes[nodes["run"] == by_run.idxmax()])

# %% [markdown]
# ## 5. Try it yourself
#
# Move the limit, or limit something else, and read what it would have done to the recorded runs. The picture below
# the panel shows the same runs as curves over all limits.

# %%
explorer = widgets.ceiling_explorer(runs, "cost", target=0.85)
curve = choice.curve([*choice.curve()["ceiling"], choice.ceiling])
ax = plots.plot_ceiling_curve(curve, chosen=choice.ceiling)
display(explorer)

# %% [markdown]
# ## 6. What this notebook claims
#
# The last cell checks it. Next: your own records, with `harness-lab read FILE` or `lab.read("FILE")`.

# %%
assert floors.records()[0]["floor"] == 31_211
assert not any(answer.admitted for answer in answers)
assert spend.sample.n + spend.sample.tally.unknown_value == 2_400
assert spend.quantile(0.5).estimable
assert spend.quantile(0.95).needs_n is not None
assert choice.ceiling is not None
assert explorer.limit == choice.ceiling
assert comparison.paired == n_runs
assert "cut" in explorer.readout.value
print("Every claim holds.")
