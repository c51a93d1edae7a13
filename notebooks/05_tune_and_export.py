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
# # From records to a config that is enforced
#
# A ceiling is chosen from records for a stated target, put into a config with its evidence, held against newer records,
# and written in the form of a target, which says what it cannot express.

# %% tags=["parameters"]
records = None  # a file of your own settlements or records; None: the shipped synthetic ones
channel = None  # "cost", "calls", "input", "tokens" or "time"; None: cost where it is recorded, else prompt tokens
share = 0.85  # of runs that shall complete
target = "claude-code"  # where the config goes; harness-lab targets lists all

# %%
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import harness_lab as lab
from harness_lab import datasets
from harness_lab.export import export

runs = datasets.load_synthetic_runs() if records is None else lab.read(records)
if channel is None:
    channel = "cost" if runs.nodes["cost_nusd"].notna().any() else "input"
choice = lab.ceiling(runs, channel, target=share)
print(choice.summary())
ax = choice.plot()

# %% [markdown]
# ## A config with its evidence
#
# Equal configs are equal bytes. Where the records support no ceiling, there is no config, and the summary above says
# what it would take.

# %%
day = date(2026, 3, 1) if records is None else None
config = None if choice.ceiling is None else lab.TunedConfig.from_ceiling(choice, runs, today=day)
if config is not None:
    for one in config.evidence:
        print(f"{one.value} = {one.chosen:.4f} {one.unit}; {one.target}; n = {one.n}; {one.method}")

# %% [markdown]
# ## Does it hold in simulation?
#
# A world fitted to the same records, under the config, on luck that the choice never saw. It needs recorded costs.

# %%
if config is not None and channel == "cost":
    world = lab.fit_world(runs)
    fresh = lab.Experiment(
        workload=world.workload, provider=world.provider, policies=(config.policy, lab.unlimited()), runs=300, seed=7
    )
    print(lab.compare(fresh.run(progress=False)).verdict())

# %% [markdown]
# ## In the target's own form

# %%
if config is not None:
    written = export(config, target)
    print(written.summary())
    print(written.text)
    with TemporaryDirectory() as folder:
        path = config.write(Path(folder) / "config.json")
        assert lab.TunedConfig.read(path).digest() == config.digest()

# %%
if records is None:
    assert config is not None
    assert config.evidence[0].n == choice.bound.n
    assert choice.ceiling == round(config.evidence[0].chosen * 1e9)
print("Every claim holds.")
