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
# # Which policy, and how sure is that?
#
# The same agents under several policies, on the same luck. Differences are taken run by run; a policy is called better
# only where the corrected test tells it apart.

# %% tags=["parameters"]
experiment_file = None  # an experiment file (TOML) of your own; None: the shipped one
n_runs = 300
seed = 20_260_301

# %%
from dataclasses import replace

from IPython.display import display

import harness_lab as lab
from harness_lab import datasets, widgets
from harness_lab.analyze import pareto

file = datasets.data_dir() / "experiment.toml" if experiment_file is None else experiment_file
experiment = replace(lab.load_experiment(file), runs=n_runs, seed=seed)
result = experiment.run(progress=False)
comparison = lab.compare(result)
print(comparison.verdict())

# %% [markdown]
# ## Side by side
#
# Choose a metric, hold completion against spend, waste or time, and list the runs of a policy.

# %%
panel = widgets.compare(result)
panel.metric.value = "spend"
display(panel, panel.picture.still())

# %% [markdown]
# ## The front
#
# A policy is on the front if against every other one it is surely better in something. What cannot be told is said.

# %%
front = pareto(result.settlements)
print(front.summary())

# %% [markdown]
# ## One run under each policy
#
# The same run, the same luck: what each policy did to it.

# %%
hurt = result.settlements.nodes.query("parent.isna() and outcome != 'completed'")["run"]
number = str(hurt.value_counts().index[0]) if len(hurt) else "0"
viewers = {policy.name: widgets.run_viewer(experiment, number, policy=policy.name) for policy in experiment.policies}
for name, viewer in viewers.items():
    print(f"{name}: {viewer.timeline.summary().splitlines()[0]}")
last = viewers[experiment.policies[-1].name]
display(last, last.picture.still())

# %%
assert comparison.paired == n_runs
assert set(front.policies) == {policy.name for policy in experiment.policies}
assert str(comparison.policies[0].spend.n) in panel.readout.value
print("Every claim holds.")
