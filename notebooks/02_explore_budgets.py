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
# # What do these limits do?
#
# Agents of a known kind run under limits that you move. All settings meet the same luck, so a difference is never
# chance between two sets of runs. The panel simulates a part at once and the rest while you read; it says how many
# runs its figures rest on. The picture below it is what the panel shows at the end of this notebook.

# %% tags=["parameters"]
workload = "coding-agent"  # a name from harness_lab.simulate.gallery()
experiment_file = None  # or an experiment file (TOML) of your own, such as one with [workload] fit = "records.parquet"
n_runs = 400
seed = 0

# %%
from IPython.display import display

import harness_lab as lab
from harness_lab import widgets
from harness_lab.simulate import gallery

world = workload if experiment_file is None else lab.load_experiment(experiment_file)
name = workload if experiment_file is None else "your own"
for one, what in gallery().items():
    print(f"{one}: {what}")

# %% [markdown]
# ## A budget, and half of it
#
# Pinned: a dollar a run and 60 calls. Then half a dollar. The readout says the change with its interval, pair by pair.

# %%
panel = widgets.explore(world, settings=widgets.Settings(workload=name, cost_usd=1.0, calls=60), runs=n_runs, seed=seed)
panel.controls["cost_usd"].value = 0.5
panel.finish()
display(panel, panel.picture.still())

# %%
found = panel.effect()
print("completed:", found.completed)
print("change:   ", found.differences["completed"])
print("spend:    ", found.spend)
print("change:   ", found.differences["spend"])

# %% [markdown]
# ## Take the settings along
#
# As an experiment file; `harness-lab compare FILE` runs it. The panel's list *Copy settings as* has code and a config
# too.

# %%
print(panel.settings_as("TOML (experiment file)") if experiment_file is None else panel.settings_as("Python"))

# %%
assert found.completed.n == n_runs
assert found.pairs == n_runs
if experiment_file is None:
    assert found.differences["spend"].high < 0  # half the budget spends less: the interval lies below 0
    again = panel.settings.experiment(runs=n_runs, seed=seed).run(progress=False)
    assert (again.settlements.nodes["outcome"] == "completed").mean() == found.completed.value
print("Every claim holds.")
