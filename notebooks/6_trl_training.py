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
# # 6. Launching TRL fine-tuning with focal weights, and reading its diagnostics
#
# After this page you can
#
# - start a GRPO run with focal weights in one line, and the same run without them,
# - read what it logs: active groups, zero-variance groups, the weight, effective groups, estimated tail misses,
# - check from the logged rollouts that the weight is what it says.
#
# Everything here is offline and on the CPU: a character-level model of 84 thousand parameters, made in code, which is
# asked for three digits with a given sum. On the first use its base model is trained, once. Needs `pip install
# -c constraints.txt -e ".[llm]"` in the checkout.

# %%
import json
import os
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from fgrpo import figures
from fgrpo.cli import main
from fgrpo.figures import Picture
from fgrpo.figures.style import probability_axis
from fgrpo.llm.diagnostics import SUCCESS_KEYS, WEIGHT_KEYS
from fgrpo.theory import focal_weight

OUT = Path("results/runs")
FAST = os.environ.get("FGRPO_FAST") == "1"  # 10 updates instead of 60
steps = 10 if FAST else 60

# %% [markdown]
# ## What a run would be
#
# `--dry-run` resolves the configuration, which is TRL's with the focal keys, does the arithmetic of its batches, and
# says what theory expects of its N.

# %%
_ = main(["train", "--dry-run"])

# %% [markdown]
# ## Two runs
#
# `main([...])` is the command line: `fgrpo train --focal_gamma 1 ...`. Gamma 0 is TRL's own training, bit for bit. A
# line per log entry: `success` is the mean empirical success rate, `weight` the mean focal weight of the active
# groups, `effective groups` how many groups of equal weight they are worth.

# %%
for gamma in ("0", "1"):
    arguments = [
        "train",
        "--focal_gamma",
        gamma,
        "--max_steps",
        str(steps),
        "--output_dir",
        str(OUT / f"gamma-{gamma}"),
    ]
    assert main([*arguments, "--overwrite"]) == 0

# %% [markdown]
# ## The diagnostics
#
# All keys are logged wherever TRL logs (`report_to`); here from the state that the checkpoint keeps.

# %%
pd.set_option("display.max_colwidth", None)
pd.Series({**SUCCESS_KEYS, **WEIGHT_KEYS}, name="meaning").to_frame()


# %%
def log_of(gamma: str) -> pd.DataFrame:
    state = next((OUT / f"gamma-{gamma}").glob(f"checkpoint-{steps}/trainer_state.json"))
    return pd.DataFrame(json.loads(state.read_text())["log_history"]).dropna(subset="focal/success_rate")


logs = {gamma: log_of(gamma) for gamma in ("0", "1")}
panels = {
    "success rate": ["success_rate"],
    "share of groups": ["active_share", "all_right_share", "all_wrong_share"],
    "mean weight, active groups": ["mean_weight_given_active"],
    "mean |advantage|": ["advantage_magnitude"],
}
lines = ("-", "--", ":")
with figures.figure_style():
    figure = Figure(figsize=(7, 4.2))
    for ax, (title, keys) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
        for place, (gamma, log) in enumerate(logs.items()):
            for key, line in zip(keys, lines, strict=False):
                words = f", {key.removeprefix('share_').replace('_', ' ')}" if len(keys) > 1 else ""
                ax.plot(log["step"], log[f"focal/{key}"], f"C{place}{line}", label=f"gamma {gamma}{words}")
        probability_axis(ax, title)
        ax.set_xlabel("update")
        ax.legend(fontsize=6)
Picture(
    figure,
    "Over the updates of a run without and one with focal weights: success rates, shares of active, all-right and "
    "all-wrong groups, mean weight of active groups, mean size of advantages.",
)

# %% [markdown]
# *The two runs over their updates: success rate, kinds of groups, weight, and size of the advantages.* How to read
# it:
#
# - **Active share** falls as prompts get solved: all-right groups carry no signal, whatever the weight.
# - The **mean weight** falls as the success rate rises, and with it the size of the advantages. Adam undoes a
#   constant factor; what the weight changes is how groups count against each other.
# - With the weight a batch is worth fewer **effective groups**: those of easy prompts count little.
# - One seed, two runs: no difference between these curves means anything. For that run several seeds, and a low
#   learning rate beside them (`--config grpo_low_lr` is the recipe).

# %%
last = pd.DataFrame({f"gamma {gamma}": log.iloc[-1] for gamma, log in logs.items()})
shown = ["effective_groups", "mean_weight", "advantage_magnitude_unweighted"]
shown += [f"tail_miss_estimate/{rho}" for rho in ("0.01", "0.05", "0.2")]
last.loc[[f"focal/{key}" for key in shown]].astype(float).round(3)

# %% [markdown]
# ## Is the weight what it says?
#
# The tables of rollouts have each one's reward, the success rate of its group, its weight, and the advantage that the
# loss used. Recomputed from the rewards, N rows to a group:

# %%
table = pd.read_parquet(sorted((OUT / "gamma-1" / "completions").glob("*.parquet"))[-1])
success_rate = table.groupby(table.index // 8)["digit_sum_reward"].transform("mean")
error = (table["focal_weight"] - focal_weight(success_rate, 1.0)).abs().max()
print(f"{len(table)} rollouts, largest error of the weight {error:.0e}")
table.drop(columns="step").iloc[[0, 1, 8, 16, 24]].round(3)

# %% [markdown]
# ## Your own model
#
# The paper's recipes by name; `--dry-run` first. Any TRL YAML runs unchanged, and your reward as `module:function`.
#
# ```
# fgrpo train --recipes
# fgrpo train --config focal_grpo --model qwen3-4b-base --num_generations 16 --num_processes 8 --dry-run
# fgrpo train --config my_trl_run.yaml --focal_gamma 0.5 --success_reward accuracy_reward
# ```
#
# Next: [diagnosing the finished run](7_diagnosing_a_run.ipynb).
