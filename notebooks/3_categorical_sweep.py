# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 3. The categorical sweep: from one run to Figure 4
#
# After this page you can
#
# - simulate the paper's softmax policy with 128,000 actions: one run, or a sweep that goes on where it broke off,
# - draw the paper's Figure 4 from it,
# - see what hangs on the update rule that the paper leaves open (the table of readings),
# - compare runs where they have come equally far, instead of after equally many steps.
#
# The policy starts with 10,000 correct actions, one of them common. **Correct mass** Q_pos is their probability;
# **retained mass** M_ret is how much of the probability that each correct action had at the start is still there (Eq
# 26).

# %%
import os
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from fgrpo import figures
from fgrpo.figures import Picture, group_size_style
from fgrpo.figures.style import probability_axis
from fgrpo.simulate import RunConfig, collapse_zone, paper_sweep, run_sweep, simulate
from fgrpo.simulate.comparison import compare_arms, comparison_arms, comparison_text
from fgrpo.simulate.readings import readings_sweep, readings_table, readings_text
from fgrpo.simulate.sweep import quick_sweep

OUT = Path("results/sweep")
FAST = os.environ.get("FGRPO_FAST") == "1"  # a tenth of the actions and fewer seeds: seconds instead of minutes
policy = {"actions": 12_800, "correct": 1_000} if FAST else {}
largest = 8192 if FAST else 131_072

# %% [markdown]
# ## One run
#
# A `RunConfig` is all that decides a run: equal ones give equal numbers.

# %%
runs = [simulate(RunConfig.preset("figure_matching", group_size=size, **policy)) for size in (2, 512, largest)]
pd.DataFrame(
    {
        "N": [run.config.group_size for run in runs],
        "correct mass": [run.correct_mass[-1] for run in runs],
        "retained mass": [run.retained_mass[-1] for run in runs],
        "entropy of correct actions": [run.correct_entropy[-1] for run in runs],
    }
).round(3)

# %%
with figures.figure_style():
    figure = Figure(figsize=(7, 2.4))
    for ax, name in zip(figure.subplots(1, 2), ("correct_mass", "retained_mass"), strict=True):
        for run in runs:
            size = run.config.group_size
            ax.plot(run.step, getattr(run, name), color=group_size_style(size).color, label=f"N = {size}")
        ax.set_xlabel("step")
        probability_axis(ax, name.replace("_", " "))
    ax.legend()
Picture(
    figure,
    "Correct and retained mass over 1000 steps: at N = 512 the correct mass rises and the retained mass collapses; the "
    "largest N reaches as much correct mass and retains it; N = 2 moves little.",
)

# %% [markdown]
# *Correct and retained mass over training, for a small, a middle and a large group size.* A small N has hardly moved,
# a middle one becomes right by putting all its mass on a few correct answers, a large one has kept them, so far.
#
# ## The sweep, and Figure 4
#
# 17 group sizes, gamma 0 and 1, four seeds. `run_sweep` stores each run when it is finished and computes only what is
# missing. `fgrpo sweep run` does the same in the shell, on one machine or many.

# %%
results = run_sweep(quick_sweep() if FAST else paper_sweep(), OUT, workers=1)
data = figures.figure_4_data(results, group_sizes=(2, 64, 1024, 16384) if FAST else None)
Picture(figures.figure_4(data), figures.figure_4_alt_text(data))

# %%
print("collapse zone, N =", *collapse_zone(results))

# %% [markdown]
# *Figure 4: masses over training (a, b) and after the last step (c); solid without the focal weight, dashed with
# gamma 1.*
#
# The three regimes of the paper are there. Mind two things before you quote them: the zone is one of **learning rate
# times steps** (every group size that was run on far enough collapses), and the thin line in c, the tail-miss
# probability at the start, does not locate it. `fgrpo sweep zone` and the log of experiments have both.
#
# ## What hangs on the update rule
#
# The paper's text leaves open whether the surrogate is a ratio, which optimizer is meant, and the decay. Some
# readings, and which of the paper's sentences about the figure they make true (S1: Q_pos rises at all N; S2: the
# middle collapses, both ends retain; S3: the largest N retains throughout; S4: it alone does):

# %%
names = ("figure_matching", "appendix_j_literal", "hu2025", "ratio, AdamW", "ratio, SGD", "p distinct, Adam eps 1e-15")
plan = readings_sweep(names, group_sizes=(2, 32, 512, 8192, largest), seeds=range(2 if FAST else 4), **policy)
results = run_sweep([run for of_reading in plan.values() for run in of_reading], OUT, workers=1)
readings = readings_table(results, plan)
print(readings_text(readings))

# %%
Picture(figures.figure_readings(readings), figures.readings_alt_text(readings))

# %% [markdown]
# *Final correct and retained mass by group size, one panel per reading, with the sentences that it makes true.* No
# reading makes all four true; `fgrpo sweep readings` has twelve.
#
# ## Matched progress
#
# A focal weight also makes steps smaller, so after equally many steps a weighted run is behind. `compare_arms` reads
# retained mass where runs have the same correct mass, or the same distance (KL) from the start, beside a control: no
# weight, but the paper's low learning rate.

# %%
arms = comparison_arms(
    group_sizes=(512,), gammas=(1.0,), seeds=range(3 if FAST else 8), steps=1500, record_every=25, **policy
)
results = run_sweep([run for arm in arms for run in arm.runs], OUT, workers=1)
comparison = compare_arms(results, arms, levels={"correct_mass": (0.7, 0.8, 0.9, 0.95), "start_kl": (0.5, 1.0, 2.0)})
print(comparison_text(comparison))

# %%
Picture(figures.figure_comparison(comparison), figures.comparison_alt_text(comparison))

# %% [markdown]
# *Retained mass against rollouts, correct mass and KL to the start, without a weight, with gamma 1, and with the
# controls.* In brackets: the difference to no weight, with half its 95 % interval; a star where that excludes 0. What
# to make of it: [what focal weighting changes](5_focal_weighting.ipynb).
#
# Next: [regime diagrams](4_regime_diagrams.ipynb).
