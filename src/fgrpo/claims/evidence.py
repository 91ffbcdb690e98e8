"""Stored runs of the simulator in the form in which claims ask for them."""

import os
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from pandas import DataFrame, Series

from fgrpo.simulate import load_results
from fgrpo.simulate.config import PRESETS, PolicyConfig
from fgrpo.simulate.policy import initial_masses
from fgrpo.simulate.store import SWEEP
from fgrpo.simulate.summary import final_rows, seed_summary, start_policy, sweep_steps, zone_of

DEFAULT_READING = "figure_matching"
OTHER_READINGS = tuple(name for name in PRESETS if name != DEFAULT_READING)
FEWEST_SIZES = 3
"""Group sizes that a sentence about small, middle and large ones needs."""


def reading_words(name: str) -> str:
    """What a reading of the update is, in words; the learning rate only where it is not Appendix J's."""
    update = PRESETS[name]
    words = [
        "p_j means p_j / p_j^old" if update.surrogate == "importance_ratio" else "p_j as printed",
        f"weight decay {update.weight_decay:g}" if update.weight_decay else "no weight decay",
    ]
    if update.learning_rate != PRESETS["appendix_j_literal"].learning_rate:
        words.append(f"learning rate {update.learning_rate:g}")
    return ", ".join(words)


class MissingRunsError(ValueError):
    """The results do not hold the runs that a check needs."""


@dataclass(frozen=True)
class Runs:
    """Runs of one reading, one policy and one length, over group sizes, gammas and seeds.

    Attributes:
        rows: Tidy results, one row per run and recorded step, of at least `FEWEST_SIZES` group sizes at gamma 0.
    """

    rows: DataFrame

    @property
    def steps(self) -> int:
        """T, the number of updates of each run."""
        return int(self.rows["steps"].iloc[0])

    @property
    def group_sizes(self) -> list[int]:
        """N of the runs at gamma 0, ascending."""
        return sorted(int(n) for n in self.rows.loc[self.rows["gamma"] == 0, "group_size"].unique())

    def final(self, metric: str, gamma: float = 0.0) -> Series:
        """Mean over seeds of a metric after the last step, indexed by group size."""
        return self.at_step(self.steps, metric, gamma)

    def at_step(self, step: int, metric: str, gamma: float = 0.0) -> Series:
        """Mean over seeds of a metric after `step` updates, indexed by group size.

        Raises:
            MissingRunsError: If there are none.
        """
        chosen = self.rows[(self.rows["step"] == step) & (self.rows["gamma"] == gamma)]
        if chosen.empty:
            raise MissingRunsError(
                f"results must hold gamma {gamma:g} at step {step}, got none: run `fgrpo reproduce` with this folder as --out"
            )
        return chosen.groupby("group_size")[metric].mean()

    def lowest(self, metric: str, gamma: float = 0.0) -> Series:
        """Smallest value over the recorded steps of the mean over seeds, indexed by group size."""
        chosen = self.rows[self.rows["gamma"] == gamma]
        return chosen.groupby(["group_size", "step"])[metric].mean().groupby("group_size").min()

    @property
    def collapsed(self) -> list[int]:
        """The collapse zone of these runs, as `fgrpo.simulate.collapse_zone` has it."""
        return list(zone_of(seed_summary(final_rows(self.rows), ["retained_mass"])))


@dataclass(frozen=True)
class Evidence:
    """All stored runs of one results folder that start from one policy.

    Attributes:
        results: Tidy results, one row per run and recorded step.
        policy: The start that the runs share.
        steps: T of the sweep; longer runs of the same reading are kept apart.
    """

    results: DataFrame
    policy: PolicyConfig
    steps: int

    def runs(self, reading: str) -> Runs:
        """Runs of a reading that have the sweep's length."""
        return self._select(reading, self.results["steps"] == self.steps)

    @cached_property
    def long_runs(self) -> Runs:
        """The longest of the default reading's runs that go on after the sweep's last step."""
        later = self.results["steps"].where(self.results["steps"] > self.steps)
        return self._select(DEFAULT_READING, later == later.max())

    def _select(self, reading: str, of_length: "Series[bool]") -> Runs:
        rows = self.results[of_length & (self.results["reading"] == reading)]
        sizes = rows.loc[rows["gamma"] == 0, "group_size"].nunique()
        if sizes < FEWEST_SIZES:
            raise MissingRunsError(
                f"results must hold at least {FEWEST_SIZES} group sizes of the reading {reading!r} and {self.steps} steps, "
                f"got {sizes or 'none'}: run `fgrpo reproduce` with this folder as --out"
            )
        return Runs(rows)

    @property
    def start(self) -> dict[str, float]:
        """correct_mass, anchor_mass and leaf_mass (of one other correct action) at step 0."""
        return initial_masses(self.policy)


NO_RUNS = Evidence(DataFrame(columns=["reading", "steps", "gamma", "group_size"]), PolicyConfig(), 1000)
"""The evidence of who has not run the simulation."""


def stored_evidence(folder: str | os.PathLike[str]) -> Evidence:
    """The evidence that `fgrpo reproduce` left in a results folder; `NO_RUNS` if it holds no runs of the default reading.

    Of several policies the first counts, and of the weights the paper's: focal, of the sampled success rate.

    Raises:
        ValueError: If the folder's table is damaged.
    """
    if not Path(folder, SWEEP).is_file():
        return NO_RUNS
    results = load_results(folder)
    results = results[(results["weight"] == "focal") & (results["success_estimate"] == "empirical")]
    default = results[results["reading"] == DEFAULT_READING]
    if default.empty:
        return NO_RUNS
    policy = start_policy(default)
    start = default[list(asdict(policy))].iloc[0]
    results = results[(results[start.index] == start).all(axis=1)]
    return Evidence(results, policy, sweep_steps(results[results["reading"] == DEFAULT_READING]))
