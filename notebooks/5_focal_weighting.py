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
# # 5. What focal weighting changes, and what it does not
#
# After this page you can
#
# - say what g = (1 - success rate)^gamma does to the groups of one prompt, and across prompts,
# - tell the part of its effect that a smaller step has too,
# - read a claim that 'focal weighting retains more' with the right question: at equal what?

# %%
import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fgrpo import figures, theory
from fgrpo.figures import Picture
from fgrpo.simulate import PolicyConfig, run_sweep
from fgrpo.simulate.comparison import against, compare_arms, comparison_arms, comparison_text

OUT = Path("results/sweep")
FAST = os.environ.get("FGRPO_FAST") == "1"  # a tenth of the actions, fewer seeds and arms: seconds instead of minutes

# %% [markdown]
# ## It changes: how much a group counts
#
# The weight of an active group with k of N = 8 rollouts right. It is never 0: at least N^-gamma.

# %%
successes = np.arange(1, 8)
pd.DataFrame(
    {f"gamma {gamma:g}": theory.focal_weight(successes / 8, gamma) for gamma in (0, 0.5, 1, 2)},
    index=[f"{k}/8" for k in successes],
).T.round(3)

# %%
rate = np.linspace(0.02, 0.98, 200)
with figures.figure_style():
    figure = Figure(figsize=(7, 2.5))
    left, right = figure.subplots(1, 2)
    figures.plot_advantage_magnitudes(figures.figure_3_data(), left)
    for gamma, colour in ((0.0, "black"), (0.5, "C0"), (1.0, "C1")):
        right.plot(rate, theory.mean_advantage_magnitude(rate, gamma=gamma), color=colour)
        peak = theory.strongest_success_rate(gamma)
        right.plot(peak, theory.mean_advantage_magnitude(peak, gamma=gamma), "*", ms=9, color=colour)
    right.set_ylabel("its mean over the group")
    right.set_xlabel("success rate of the group")
Picture(
    figure,
    "Left: size of the weighted advantage of a right and of a wrong rollout against the group's success rate; gamma "
    "0.5 ends the growth of wrong ones at high rates. Right: mean size, largest at 1/2, 1/3, 1/4 for gamma 0, .5, 1.",
)

# %% [markdown]
# *Left: weighted advantages of right (solid) and wrong (dashed) rollouts. Right: their mean over the group, in the
# same colours, peaks starred.* Weight moves from easy prompts towards prompts that are solved now and then. Not to
# the hardest ones: a group without a right rollout has no advantages, whatever the weight.
#
# ## It does not change: where one prompt goes
#
# For one prompt, many rollouts and small steps, the weight multiplies the whole update. The path is the same, only
# slower (proof `time_change`): retained mass *at equal correct mass* does not depend on gamma.

# %%
start = theory.ActionClasses.from_logits(
    [one.count for one in PolicyConfig().action_classes],
    [one.logit for one in PolicyConfig().action_classes],
    [one.correct for one in PolicyConfig().action_classes],
)
levels = [0.7, 0.8, 0.9, 0.99]
paths = {gamma: theory.mean_field_orbit(start, levels, gamma=gamma) for gamma in (0.0, 1.0, 2.0)}
pd.DataFrame(
    {f"retained mass, gamma {gamma:g}": path.retained_mass for gamma, path in paths.items()}
    | {f"time, gamma {gamma:g} : 0": path.time / paths[0.0].time for gamma, path in paths.items() if gamma},
    index=pd.Index(levels, name="correct mass"),
).round(4)

# %% [markdown]
# ## It does nothing of its own at N = 2
#
# Every active group of two is half right, so g = 2^-gamma, a constant. Under Adam a constant factor cancels.
#
# ## The simulation, at equal steps and at equal progress
#
# One prompt, finite N, Adam. Arms: no weight, gamma .5, 1 and 2, and as controls the *low learning rates* that leave
# the same mean advantage size, and a constant scale.

# %%
policy = {"actions": 12_800, "correct": 1_000} if FAST else {}
gammas = (1.0,) if FAST else (0.5, 1.0, 2.0)
arms = comparison_arms(
    group_sizes=(64, 512) if FAST else (64, 512, 8192),
    gammas=gammas,
    seeds=range(3 if FAST else 8),
    steps=2000,
    record_every=50,
    **policy,
)
results = run_sweep([run for arm in arms for run in arm.runs], OUT, workers=1)
table = compare_arms(results, arms, levels={"correct_mass": (0.7, 0.8, 0.9, 0.95, 0.98), "start_kl": (0.25, 0.5, 1, 2)})
Picture(figures.figure_comparison(table), figures.comparison_alt_text(table))

# %% [markdown]
# *Retained mass at matched rollouts (top), correct mass (middle) and KL to the start (bottom), with 95 % intervals
# over seeds.* At equal rollouts, focal arms lie far above no weight in the collapse. At equal correct mass they lie
# near it, or below. In numbers, at N = 512, with the difference to no weight in brackets:

# %%
at_512 = table[(table["group_size"] == 512) & (table["progress"] != "start_kl")]
print(comparison_text(at_512))

# %% [markdown]
# And against a smaller step, gamma 1 compared with the low learning rate that has its mean advantage size:

# %%
shown = [arm for arm in against(arms, "low learning rate 1") if arm.label in ("low learning rate 1", "focal 1")]
against_low = compare_arms(results, shown, levels={"correct_mass": (0.7, 0.8, 0.9), "start_kl": (0.5, 1)})
print(comparison_text(against_low[against_low["group_size"] == 512]))

# %% [markdown]
# ## In fair words
#
# - **At equal steps** a focal weight retains more in the collapse zone, often much more.
# - **At equal progress** no gain of that kind is seen here: at Q_pos up to .8 all arms are close together; later, at
#   N = 512 and 8192, gamma 1 and above retain *less* than no weight, and a low learning rate retains as much or more.
#   In this simulation, under Adam, the gain at equal steps is slower progress.
# - This is **one prompt**. Across prompts of different difficulty the weight does what a smaller step cannot: it
#   changes which prompts an update listens to (first picture). Whether that keeps rare answers in a language model is
#   for an experiment to say, with a low learning rate beside it.
# - The exception in the log: at N = 8 focal weights retain a little more than no weight at equal Q_pos, and late in
#   the collapse gamma 2 was a little ahead of its low learning rate too (+.04 +- .03 at Q_pos .9).
# - Noise of the sampled success rate costs no retained mass at N = 8.
#
# The log of experiments (docs/log.md) has the numbers, the commands and the intervals; `fgrpo sweep compare` repeats
# them.
#
# Next: [launching TRL fine-tuning](6_trl_training.ipynb).
