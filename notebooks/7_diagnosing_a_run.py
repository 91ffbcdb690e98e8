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
# # 7. Diagnosing a finished run
#
# After this page you can
#
# - judge a run from the rollouts that it logged, whatever framework made it: success, active groups, distinct
#   answers,
# - estimate how often its groups probably missed a rare right answer,
# - say what a focal weight would have changed in its updates, before you run it.
#
# The run is the one without weights of [page 6](6_trl_training.ipynb); if it is not there, it is made first.

# %%
import os
from pathlib import Path

import pandas as pd

from fgrpo.cli import main
from fgrpo.diagnosis.diagnose import diagnose
from fgrpo.diagnosis.page import regime_table, window_table, write_page
from fgrpo.diagnosis.text import diagnosis_text
from fgrpo.figures import Picture
from fgrpo.figures.diagnosis import plot_shares_over_time, plot_tail_misses_over_time

RUN = Path("results/runs/gamma-0")
steps = "10" if os.environ.get("FGRPO_FAST") == "1" else "60"
if not (RUN / "completions").is_dir():
    assert main(["train", "--focal_gamma", "0", "--max_steps", steps, "--output_dir", str(RUN)]) == 0

# %% [markdown]
# ## All of it in one call
#
# `fgrpo diagnose results/runs/gamma-0` prints this. It reads TRL's folders, and plain rows (JSONL, CSV, parquet) of
# any framework. **Which right answers are rare no log shows**: the rare fractions are assumptions.

# %%
diagnosis = diagnose(RUN, windows=5, rare_fractions=(0.05, 0.15))
print(diagnosis_text(diagnosis))

# %% [markdown]
# ## Over the run

# %%
windows = window_table(diagnosis.windows)
first, last = diagnosis.windows[0], diagnosis.windows[-1]
Picture(
    plot_shares_over_time(windows),
    f"Success rate from {first.success_rate.estimate:.2f} to {last.success_rate.estimate:.2f} and active share from "
    f"{first.active_share.estimate:.2f} to {last.active_share.estimate:.2f}, with the zero-variance groups.",
)

# %% [markdown]
# *Left: success rate and share of active groups, with 95 % intervals. Right: groups without any signal.* A run whose
# active share falls towards 0 has run out of prompts that teach it something; a focal weight does not bring them
# back.

# %%
rare_fractions = [miss.rare_fraction for miss in diagnosis.run.tail_miss]
before, after = (part.tail_miss[0].probability.estimate for part in (first, last))
Picture(
    plot_tail_misses_over_time(windows, regime_table(diagnosis.windows), rare_fractions),
    f"Estimated tail-miss probability at rare fraction {rare_fractions[0]:g} from {before:.2f} to {after:.2f}, "
    f"and the share of prompts in each regime at N = {diagnosis.group_size}.",
)

# %% [markdown]
# *Left: estimated probability that a group was active and had no rollout from the rare part of the right answers.
# Right: regimes of the prompts.* In this toy the rare part is known, 15 % of each prompt's right answers at the
# start; in yours it is not, so read a range of fractions.
#
# ## Which prompts

# %%
pd.DataFrame(
    [
        {
            "prompt": prompt.prompt,
            "rollouts": prompt.rollouts,
            "success rate": round(prompt.success_rate.estimate, 3),
            "tail miss": round(prompt.tail_miss[0], 3),
            "regime in the last window": prompt.regimes[0],
            "distinct right answers": prompt.distinct_correct,
        }
        for prompt in diagnosis.prompts[:8]
    ]
)

# %% [markdown]
# ## What a focal weight would have done
#
# Recomputed on the run's own groups. A run that really had the weight would have gone elsewhere; this says how its
# updates would have been shared out, and the step size that a fair control needs (`matched scale`).

# %%
pd.DataFrame(
    [
        {
            "gamma": row.gamma,
            "mean weight, active": row.mean_weight_given_active,
            "effective share of groups": row.effective_share,
            "matched scale": row.strength[0].matched_scale,
            **{
                f"strength, {band.low:g} to {band.high:g}": share
                for band, share in zip(diagnosis.bands, row.strength[0].shares, strict=True)
            },
        }
        for row in diagnosis.what_if
    ]
).round(3)

# %% [markdown]
# ## A page to send
#
# One file with the plots, no script, nothing from the network: `fgrpo diagnose RUN --html diagnosis.html`.

# %%
write_page(diagnosis, Path("results/diagnosis.html"))
