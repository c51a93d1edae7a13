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
# # What does a path cost before it works?
#
# A child agent reads instructions, tools and workspace before it reaches its task. The smallest settlement that was
# ever seen for an agent, on a backend, with a model and a starting context, is the **floor** of that path. An ask below
# it is refused before it starts. A floor has two costs: it can refuse runs that would have completed, and it lets runs
# through that do not.

# %% tags=["parameters"]
records = None  # a file of your own settlements or records; None: the shipped synthetic ones
unit = "input-total"  # or "total", "newly-presented"

# %%
from IPython.display import display

import harness_lab as lab
from harness_lab import datasets, widgets
from harness_lab.analyze import plan_probes

runs = datasets.load_synthetic_runs() if records is None else lab.read(records)
floors = lab.derive_floors(runs, unit=unit)
print(floors.summary())
ax = floors.plot()

# %% [markdown]
# ## Move the floor
#
# Pick a path and move its floor. Where paths are mixed or the evidence is old, the panel says so.

# %%
panel = widgets.floor_explorer(runs)
panel.unit.value = unit
agents = runs.nodes["agent"].value_counts()
if len(agents):
    panel.pick["agent"].value = str(agents.index[0])
display(panel, panel.picture.still())
if (costs := panel.costs()) is not None:
    print(costs.summary())
print(*panel.marks(), sep="\n")

# %% [markdown]
# ## Which paths need more evidence?
#
# A floor from few settlements promises little. Cheap runs, made on purpose, are planned where they say most.

# %%
print(plan_probes(runs, floors).summary())

# %%
assert all(row["floor"] is None or row["floor"] > 0 for row in floors.records())
if records is None:
    assert len(floors) == 3
    assert costs is not None
    assert float(costs.frame["falsely_refused"].iloc[0]) == 0.0  # at the smallest settlement no good run is refused
print("Every claim holds.")
