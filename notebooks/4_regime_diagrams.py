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
# # 4. Regime diagrams
#
# After this page you can
#
# - see at a glance for which prompts your N is inactive, miss-prone or covered,
# - put your own prompts into the picture, from a file of counts,
# - set beside it what a sweep of the simulator kept, for every N and gamma,
# - turn N, the rare fraction and the level with sliders (where `ipywidgets` is installed).
#
# In the shell: `fgrpo figure regime --group-size 8 --counts FILE --rare-fraction 0.1 --results DIR`.

# %%
import os
from pathlib import Path

import numpy as np
import pandas as pd

from fgrpo import figures
from fgrpo.counts import read_counts
from fgrpo.figures import Picture
from fgrpo.simulate import paper_sweep, run_sweep
from fgrpo.simulate.sweep import quick_sweep

FAST = os.environ.get("FGRPO_FAST") == "1"  # the simulator's panel from a tenth of the actions


def diagram(group_size: int = 8, rare_fraction: float = 0.1, level: float = 0.5, **more: pd.DataFrame) -> Picture:
    data = figures.regime_diagram_data(group_size, rare_fraction=rare_fraction, level=level, **more)
    return Picture(figures.regime_diagram(data), figures.regime_diagram_alt_text(data))


# %% [markdown]
# ## At N = 8

# %%
diagram()

# %% [markdown]
# *Left: success rate against rare fraction, coloured by regime. Right: group size against success rate at a rare
# fraction of .1, with contours of the tail-miss probability; dashed the group size at which it peaks.*
#
# - **Inactive**: a larger N is active, and misses, more often. **Miss-prone**: most steps are active and without a
#   rare right answer. **Covered**: the rare region is being sampled.
# - It is a picture of one step of one prompt. During training prompts move to the right.
#
# ## Your prompts
#
# Forty prompts with 16 samples each, made up here. The rare fraction is an assumption for all of them.

# %%
draws = np.random.default_rng(0)
correct = draws.binomial(16, draws.beta(1.2, 1.2, size=40))
Path("results").mkdir(exist_ok=True)
pd.DataFrame({"samples": 16, "correct": correct}).to_csv("results/prompts.csv", index=False)
counts = read_counts("results/prompts.csv")
diagram(group_size=16, counts=counts)

# %% [markdown]
# *The same with N = 16 and the prompts as circles at their shrunk success rate.*
#
# ## With sliders
#
# They need a running kernel: a page on the web shows none. Without `ipywidgets` the cell shows one picture.

# %%
try:
    from ipywidgets import FloatLogSlider, FloatSlider, Image, IntSlider, VBox
except ModuleNotFoundError:  # static: change the numbers of the call
    shown = diagram(group_size=32, rare_fraction=0.05, level=0.5, counts=counts)
else:
    sliders = {
        "group_size": IntSlider(32, 2, 128, description="N", continuous_update=False),
        "rare_fraction": FloatLogSlider(0.05, min=-2.5, max=-0.3, description="rare fraction", continuous_update=False),
        "level": FloatSlider(0.5, min=0.1, max=0.9, step=0.05, description="level", continuous_update=False),
    }
    image = Image(width=672)

    def draw(_: object = None) -> None:
        image.value = diagram(**{name: slider.value for name, slider in sliders.items()}, counts=counts).png()

    draw()
    for slider in sliders.values():
        slider.observe(draw, "value")
    shown = VBox([*sliders.values(), image])
shown

# %% [markdown]
# ## What a sweep kept
#
# The third panel is simulation, not theory: retained mass after 1000 steps by group size and gamma. The regimes do
# not predict it, and it depends on learning rate and steps (see [the sweep](3_categorical_sweep.ipynb)).

# %%
runs = quick_sweep() if FAST else paper_sweep(gammas=(0.0, 0.5, 1.0, 2.0))
diagram(results=run_sweep(runs, "results/sweep", workers=1))

# %% [markdown]
# *As the first picture, and below it the retained mass at the end of a sweep; bold below 1/2, the collapse zone at
# gamma 0.*
#
# Next: [what focal weighting changes](5_focal_weighting.ipynb).
