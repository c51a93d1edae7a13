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
# # What may a run cost?
#
# A flat price per run, the chance of a loss on one run and on a month, and a budget for many runs: when is it gone?

# %% tags=["parameters"]
records = None  # a file of your own settlements or records; None: the shipped synthetic ones
margin = 0.2  # share of the price that shall remain on average
period_runs = 500  # runs in a period
budget_usd = 150.0  # for the period
month_runs = 1000

# %%
import harness_lab as lab
from harness_lab import datasets, plots
from harness_lab.analyze import flat_price, period_budget

runs = datasets.load_synthetic_runs() if records is None else lab.read(records)
spend = lab.distribution(runs, "cost_nusd")
print(spend.summary())
ax = spend.plot()

# %% [markdown]
# ## A flat price

# %%
price = flat_price(runs, margin=margin, month_runs=month_runs)
print(price.summary())
cost = lab.run_table(runs)["cost_nusd"].dropna().to_numpy(dtype=float) / 1e9
ax = plots.plot_spread({"recorded runs": cost})
if price.price_usd is not None:
    line = ax.axvline(price.price_usd, color="#D55E00", linewidth=2)

# %%
print(price.explain())

# %% [markdown]
# ## A budget for many runs

# %%
period = period_budget(runs, budget_usd=budget_usd, period_runs=period_runs)
print(period.summary())
print(period.explain())

# %%
if records is None:
    assert price.price_usd is not None
    assert price.price_usd > price.cost.value
    assert 0 <= period.exceeded.value <= 1
print("Every claim holds.")
