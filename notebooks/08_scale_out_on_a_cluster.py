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
# # Many runs on many machines, and the same result
#
# Draws are named by seed, run, node and call, never by the order in which they are made. So a run is the same alone,
# among others, in a worker process or on a cluster, and results can be checked against each other by their digest.

# %% tags=["parameters"]
n_runs = 400
seed = 1
workers = 2
backend = "loky"  # worker processes of this machine; or "dask" or "ray"
address = None  # of your cluster's scheduler; None: "dask" and "ray" start workers here

# %% [markdown]
# ## The cluster
#
# `run(backend="dask")` uses the client of this session and `run(backend="ray")` the cluster that it is connected to, so
# connecting is all there is to do.

# %%
if backend == "dask":
    from distributed import Client

    where = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    client = Client(address) if address else Client(**where)
elif backend == "ray":
    import ray

    ray.init(address, include_dashboard=False) if address else ray.init(num_cpus=workers, include_dashboard=False)

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import harness_lab as lab
from harness_lab.simulate import from_gallery

scene = from_gallery("map-reduce")
policies = (lab.shared_ledger(60, name="60 calls"), lab.unlimited())
experiment = lab.Experiment(workload=scene.workload, provider=scene.provider, policies=policies, runs=n_runs, seed=seed)
here = experiment.run(backend="serial", progress=False)
there = experiment.run(backend=backend, workers=workers, progress=False)
print(f"one process and {workers} workers agree: {here.digest() == there.digest()}")
print(there.summary())

# %% [markdown]
# ## More runs than fit into memory
#
# Each block is written as it is done; memory stays flat. The manifest is in the file.

# %%
with TemporaryDirectory() as folder:
    stored = experiment.stream(Path(folder) / "runs.parquet", backend="serial", progress=False)
    kept = lab.read(stored.path)
print(f"{len(kept.nodes):,} rows in the file; counted in passing: {stored.manifest['outcomes']}")

# %% [markdown]
# ## Stop when it is precise enough
#
# `until=` ends the work when an interval is narrow; `cancelled=` and Ctrl-C end it at once and keep what is done.

# %%
asked = iter([False, True])
part = experiment.run(backend="serial", progress=False, block=100, cancelled=lambda: next(asked, True))
print(f"runs done when it was stopped: {part.manifest['runs_done']}; ended: {part.manifest['ended']}")

# %%
assert here.digest() == there.digest()
assert len(kept.nodes) == len(here.settlements.nodes)
print("Every claim holds.")
