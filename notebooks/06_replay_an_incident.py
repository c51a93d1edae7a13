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
# # A run got out of hand. Which limit would have stopped it?
#
# One recorded run is played again under other limits: where would each have stopped it, what would that have saved, and
# which good runs of the same records would the same limit have cut? Then the other complaint: *my budget runs out too
# early*. Which of these is it?

# %% tags=["parameters"]
records = None  # a file of your own settlements or records; None: the shipped synthetic ones
run = None  # its name, as in the column run; None: the one that spent most

# %%
import harness_lab as lab
from harness_lab import datasets, plots
from harness_lab.analyze import limit_report, symptoms

runs = datasets.load_synthetic_runs() if records is None else lab.read(records)
table = lab.run_table(runs)
if run is None:
    run = str(table.loc[table["cost_nusd"].astype("float64").idxmax(), "run"])
print(f"the run: {run}")
ax = plots.plot_timeline(runs.nodes[runs.nodes["run"] == run])

# %% [markdown]
# ## The same run under other limits

# %%
tried = (
    lab.shared_ledger(10**6, 0.5, name="half a dollar"),
    lab.shared_ledger(10**6, 1.0, name="a dollar"),
    lab.shared_ledger(40, name="40 calls"),
)
incident = lab.replay(runs, run, tried)
print(incident.summary())
ax = incident.plot()

# %%
print(incident.explain())

# %% [markdown]
# ## "My budget runs out too early": which of these is it?
#
# Children below their floor, one call that takes all, a context that grows, a cache that is cold: each is looked for,
# and what cannot be looked for is said.

# %%
found = symptoms(runs)
print(found.summary())
ax = plots.plot_symptoms(found.to_frame())

# %%
print(limit_report(runs).summary())

# %%
assert set(incident.to_frame()["policy"]) == {policy.name for policy in tried}
if records is None:
    cut = incident.to_frame().set_index("policy")
    assert run == "run-0792"
print("Every claim holds.")
