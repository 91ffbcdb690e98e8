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
# # 1. The tail-miss curve and its regimes
#
# After this page you can
#
# - say how often a group of N rollouts is *active* (some right, some wrong) and yet misses a rare right answer,
# - find the group size at which that happens most, and the one from which on it is rare,
# - place your own prompts: inactive, miss-prone or covered.
#
# You bring two numbers: the **success rate** mu of one rollout, and the **rare mass** tau, the probability of the
# right answers that you are afraid to lose. The second is an assumption; no data show it.

# %%
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fgrpo import theory
from fgrpo.cli import main
from fgrpo.figures import Picture, figure_2, figure_2_alt_text, figure_2_data, figure_style
from fgrpo.figures.style import group_size_axis

# %% [markdown]
# ## Every curve has one peak
#
# Figure 2 of the paper: at N = 2 few groups are active, at large N the rare answers are sampled, and in between
# updates are active without them. Each curve has one peak (starred), which moves up and to the right as the rare
# fraction tau / mu falls.

# %%
curves = figure_2_data()
Picture(figure_2(curves), figure_2_alt_text(curves))

# %% [markdown]
# *Probability of a tail miss against the group size, for success rates .8, .5 and .2 and four rare fractions.*
#
# ## Your own prompt

# %%
success_rate, rare_mass, level = 0.3, 0.03, 0.5
group_size = np.array([2, 4, 8, 16, 32, 64, 128])
pd.DataFrame(
    {
        "N": group_size,
        "Pr(active)": theory.active_probability(success_rate, group_size),
        "Pr(tail miss)": theory.tail_miss_probability(success_rate, rare_mass, group_size),
        "per rollout": theory.tail_miss_per_rollout(success_rate, rare_mass, group_size),
        "regime": theory.tail_miss_regime(success_rate, rare_mass, group_size, level=level),
    }
).round(4)

# %%
print(f"peak: N = {theory.peak_group_size(success_rate, rare_mass):.0f}")
low, high = theory.risk_interval(success_rate, rare_mass, level)
print(f"Pr(tail miss) at least {level:g}: N = {low:.0f} to {high:.0f}")
print(f"at or below {level:g} from: N = {theory.coverage_group_size(success_rate, rare_mass, level):.0f}")
print(f"at or below .01 from: N = {theory.coverage_group_size(success_rate, rare_mass, 0.01):.0f}")

# %% [markdown]
# The regimes are the interval between those two numbers and its two sides. A 'covered' N is dear: for a level of .01
# it is about ln(.01) / ln(1 - tau), whatever the success rate.

# %%
n = np.arange(1, 257)
with figure_style():
    figure = Figure(figsize=(7, 2.6))
    left, right = figure.subplots(1, 2)
    for ax in (left, right):
        group_size_axis(ax, 1, 256, label_every=2)
    left.axvspan(low, high, color="C4", alpha=0.15, lw=0)
    left.text((low * high) ** 0.5, 0.08, "miss-prone", ha="center")
    left.text(1.1, 0.92, "inactive")
    left.text(90, 0.92, "covered")
    left.plot(n, theory.active_probability(success_rate, n), "k--", label="active")
    left.plot(n, theory.tail_miss_probability(success_rate, rare_mass, n), "C0", label="tail miss")
    left.axhline(level, color="black", lw=0.7, ls=":")
    left.set_ylabel("probability per step")
    left.legend(loc="center right")
    right.plot(n[1:], theory.tail_miss_per_rollout(success_rate, rare_mass, n[1:]), "C0")
    right.set_ylabel("tail misses per rollout")
Picture(
    figure, "Left: tail misses peak at N = 8 between an inactive and a covered side; right: per rollout they only fall."
)

# %% [markdown]
# *The same prompt (mu = .3, tau = .03). Left: per step, with the three regimes at level 1/2. Right: per generated
# rollout.* The peak is a statement about **steps**. For a given number of rollouts, larger groups miss less, at every
# N.
#
# ## Several rare modes
#
# With several rare modes one asks how many of them an active group misses. Ten modes that share the rare mass:

# %%
modes = np.full(10, rare_mass / 10)
pd.DataFrame(
    {
        "N": group_size,
        "misses the whole rare region": theory.tail_miss_probability(success_rate, rare_mass, group_size),
        "misses at least one mode": theory.any_mode_missed_probability(success_rate, modes, group_size),
        "modes missed, on average": theory.expected_modes_missed(success_rate, modes, group_size),
    }
).round(3)

# %% [markdown]
# An N that covers the region as a whole does not cover its parts: at N = 128 the region is nearly always hit, and
# still most modes are missed.
#
# ## A whole data set
#
# `fgrpo advise` does this for a file of per-prompt counts (columns `samples` and `correct`). Success rates of four
# prompts, from 16 samples each:

# %%
Path("results").mkdir(exist_ok=True)
pd.DataFrame({"prompt": ["a", "b", "c", "d"], "samples": 16, "correct": [1, 5, 12, 16]}).to_csv(
    "results/counts.csv", index=False
)
_ = main(["advise", "--counts", "results/counts.csv", "--rare-fraction", "0.1", "--group-size", "8"])

# %% [markdown]
# Next: [the lemmas behind these curves, tested live](2_lemmas.ipynb).
