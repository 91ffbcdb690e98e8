"""What is fixed before a run of the experiment: seeds, settings, and the comparison that decides."""

from dataclasses import asdict, dataclass
from typing import Any

from fgrpo.theory import _validation as check

BASELINE = "grpo_n8"
"""The arm that the others are compared with."""
PRIMARY_ARM = "focal_g1_n8"
PRIMARY_METRIC = "retained_mass"
EVALUATION, GROUP = "evaluation", "group"
"""The values of the column `table` of the rows of a run."""


@dataclass(frozen=True)
class Protocol:
    """The settings of the experiment, fixed in code before its runs.

    Primary comparison: the paired difference of the mean retained mass M_ret over the 16 trained prompts, F-GRPO with
    gamma = 1 and N = 8 (`PRIMARY_ARM`) minus GRPO with N = 8 (`BASELINE`), after `steps` updates; pairs share the seed,
    which is that of the base model, of its world and of the training alike. It is 'shown' if the t interval over the
    seeds at `level` lies above 0. Everything else is secondary and has intervals of the same level without correction
    for their number: of twenty comparisons without any difference one excludes 0 on average.

    Values were chosen from the literature of the method and from trial runs on seeds 100 and above, none of which is
    among the seeds 0, 1, ... of the experiment.

    Attributes:
        seeds: Number of seeds, from 0 on.
        steps: Optimizer updates of every arm.
        evaluate_every: Updates between exact evaluations.
        tail_miss_updates: Generations up to this update enter the tail-miss test and the change of unsampled mass.
        prompts_per_update: Prompts of an update in arms with one update per generation; half of the world.
        learning_rate: AdamW, constant, no weight decay.
        sgd_learning_rate: Of the arms with plain gradient descent.
        pretraining_steps: Of the base model.
        level: Level of the intervals.
        tail_miss_false_alarm: Probability that the tail-miss test rejects, at any of its group sizes, if the closed
            form is right (two-sided normal, Bonferroni over the group sizes).
        matched_pass_at_1: Mean correct masses at which arms are compared.
        matched_kl: Mean divergences from the start, in nats, at which arms are compared.

    Raises:
        ValueError: If a number is out of range.

    Source: this project.
    """

    seeds: int = 5
    steps: int = 150
    evaluate_every: int = 10
    tail_miss_updates: int = 60
    prompts_per_update: int = 8
    learning_rate: float = 3e-4
    sgd_learning_rate: float = 0.1
    pretraining_steps: int = 400
    level: float = 0.95
    tail_miss_false_alarm: float = 0.01
    matched_pass_at_1: tuple[float, ...] = (0.8, 0.9, 0.95)
    matched_kl: tuple[float, ...] = (0.5, 1.0)

    def __post_init__(self) -> None:
        """Check what the command line can set."""
        for name in ("seeds", "steps", "evaluate_every"):
            check.whole(name, getattr(self, name), 1, f"pass a number of {name} such as {type(self).__dict__[name]}")

    def training_settings(self) -> dict[str, Any]:
        """The settings that decide a run, by name: seeds and what the report alone uses are left out."""
        of_report = ("seeds", "level", "tail_miss_false_alarm", "matched_pass_at_1", "matched_kl")
        return {name: value for name, value in asdict(self).items() if name not in of_report}

    def evaluated_steps(self) -> list[int]:
        """Updates after which a run is evaluated, from 0 to the last one."""
        return sorted({*range(0, self.steps + 1, self.evaluate_every), self.steps})
