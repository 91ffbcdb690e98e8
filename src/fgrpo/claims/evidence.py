"""Stored runs of the simulator in the form in which claims ask for them."""

from dataclasses import dataclass
from functools import cached_property

from pandas import DataFrame, Series

from fgrpo.simulate.config import PRESETS, PolicyConfig
from fgrpo.simulate.policy import initial_masses

DEFAULT_READING = "figure_matching"
OTHER_READINGS = tuple(name for name in PRESETS if name != DEFAULT_READING)
RETAINED = 0.9
"""Retained mass from which on a run counts as keeping its correct modes, in the checks of sentences."""
COLLAPSED = 0.5
"""Retained mass below which a run counts as collapsed (the collapse zone's level)."""


@dataclass(frozen=True)
class Runs:
    """Runs of one reading, one policy and one length, over group sizes, gammas and seeds.

    Attributes:
        rows: Tidy results, one row per run and recorded step, not empty.
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
        """Mean over seeds of a metric after `step` updates, indexed by group size."""
        chosen = self.rows[(self.rows["step"] == step) & (self.rows["gamma"] == gamma)]
        return chosen.groupby("group_size")[metric].mean()

    def lowest(self, metric: str, gamma: float = 0.0) -> Series:
        """Smallest value over the recorded steps of the mean over seeds, indexed by group size."""
        chosen = self.rows[self.rows["gamma"] == gamma]
        return chosen.groupby(["group_size", "step"])[metric].mean().groupby("group_size").min()

    @property
    def collapsed(self) -> list[int]:
        """Group sizes whose mean final retained mass at gamma 0 is below 1/2."""
        final = self.final("retained_mass")
        return [int(n) for n in final.index[final < COLLAPSED]]


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
        """The default reading's runs that go on after the sweep's last step."""
        return self._select(DEFAULT_READING, self.results["steps"] > self.steps)

    def _select(self, reading: str, of_length: "Series[bool]") -> Runs:
        rows = self.results[of_length & (self.results["reading"] == reading)]
        if rows.empty:
            raise ValueError(
                f"results must hold runs of the reading {reading!r} and {self.steps} steps, got none: "
                "run `fgrpo reproduce` with this folder as --out"
            )
        return Runs(rows)

    @property
    def start(self) -> dict[str, float]:
        """correct_mass, anchor_mass and leaf_mass (of one other correct action) at step 0."""
        return initial_masses(self.policy)
