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
# # What do these limits do to agents?
#
# Move a limit. The agents, their provider and their luck stay the same, so that every difference comes from the limit.
# *Pin as baseline* compares what follows with the settings as they are. The lines in the table say how many simulated
# runs a figure rests on, and its interval.

# %%
from harness_lab.widgets import Settings, explore

explore("coding-agent", settings=Settings(cost_usd=1.0, calls=60))
