"""How many prompts and rollouts an update and a generation hold, in the words of TRL and in those of the paper."""

from dataclasses import dataclass
from fractions import Fraction

from fgrpo.theory import _validation as check


@dataclass(frozen=True)
class BatchArithmetic:
    """The five numbers of a TRL configuration, and the number of processes, that decide what a batch is.

    Attributes:
        group_size: N, rollouts of a prompt (`num_generations`), >= 2.
        world_size: Processes, >= 1.
        per_device_train_batch_size: Rollouts of one forward pass on one process, >= 1.
        gradient_accumulation_steps: Forward passes of an update on one process, >= 1.
        steps_per_generation: Forward passes that one generation feeds on one process, >= 1.
        num_iterations: Times that a generation is gone through, >= 1.

    Source: TRL's GRPOConfig.
    """

    group_size: int
    world_size: int
    per_device_train_batch_size: int
    gradient_accumulation_steps: int
    steps_per_generation: int
    num_iterations: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.group_size, int) or self.group_size < 2:
            raise ValueError(
                f"num_generations must be at least 2, got {check.shown(self.group_size)}: "
                "a rollout is compared with the others of its prompt"
            )
        for name in _COUNTS:
            value = getattr(self, name)
            check.whole(name, value, 1, "pass a whole number")
        if self.rollouts_per_generation % self.group_size:
            raise ValueError(self._misfit())

    @property
    def rollouts_per_update(self) -> int:
        """Rollouts whose gradients one optimizer step adds up, over all processes."""
        return self.per_device_train_batch_size * self.world_size * self.gradient_accumulation_steps

    @property
    def rollouts_per_generation(self) -> int:
        """Rollouts drawn from one version of the policy, over all processes."""
        return self.per_device_train_batch_size * self.world_size * self.steps_per_generation

    @property
    def prompts_per_generation(self) -> int:
        """Prompts of a generation: the paper's global batch."""
        return self.rollouts_per_generation // self.group_size

    @property
    def prompts_per_update(self) -> Fraction:
        """Prompts' worth of rollouts in an update: the paper's mini-batch.

        TRL shuffles rollouts over the updates of a generation, so that a group can be split between them.
        """
        return Fraction(self.rollouts_per_update, self.group_size)

    @property
    def updates_per_generation(self) -> Fraction:
        """Optimizer steps on one generation; below 1, an update spans several generations of one policy."""
        return Fraction(self.steps_per_generation * self.num_iterations, self.gradient_accumulation_steps)

    def _misfit(self) -> str:
        per_step = self.per_device_train_batch_size * self.world_size
        steps = _next_fitting(self.steps_per_generation, per_step, self.group_size)
        size = _next_fitting(
            self.per_device_train_batch_size, self.world_size * self.steps_per_generation, self.group_size
        )
        return (
            f"the rollouts of a generation must be a multiple of num_generations {self.group_size}, got "
            f"{self.per_device_train_batch_size} per device x {counted('process', self.world_size)} x "
            f"{self.steps_per_generation} steps = {self.rollouts_per_generation}: what fits is "
            f"steps_per_generation {steps} ({steps * per_step // self.group_size} prompts) or "
            f"per_device_train_batch_size {size} "
            f"({size * self.world_size * self.steps_per_generation // self.group_size} prompts)"
        )


def counted(noun: str, count: int) -> str:
    """`1 process`, `2 processes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}es"


_COUNTS = (
    "world_size",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "steps_per_generation",
    "num_iterations",
)


def _next_fitting(start: int, factor: int, group_size: int) -> int:
    """The smallest number from `start` on whose product with `factor` is a multiple of the group size."""
    return next(n for n in range(start, start + group_size) if n * factor % group_size == 0)


def fit_batches(
    prompts_per_generation: int,
    prompts_per_update: int,
    group_size: int,
    *,
    world_size: int = 1,
    most_per_device: int = 2,
) -> BatchArithmetic:
    """The configuration in which a generation and its updates hold so many prompts.

    Args:
        prompts_per_generation: Prompts drawn from one version of the policy (verl's train_batch_size), a multiple of
            `prompts_per_update`.
        prompts_per_update: Prompts of an optimizer step (verl's ppo_mini_batch_size), >= 1.
        group_size: N, >= 2.
        world_size: Processes, which must divide the prompts_per_update * N rollouts of an update.
        most_per_device: Most rollouts of a forward pass on a device, what its memory holds, >= 1.

    Returns:
        The arithmetic with the largest batch per device up to `most_per_device`.

    Raises:
        ValueError: If an argument is out of range, or the prompts or processes do not divide.

    Source: this project.
    """
    for name, value in (
        ("prompts_per_update", prompts_per_update),
        ("world_size", world_size),
        ("most_per_device", most_per_device),
    ):
        check.whole(name, value, 1, "pass a whole number")
    check.integer_group_size(group_size, 2)
    if prompts_per_generation % prompts_per_update or prompts_per_generation < 1:
        nearest = max(1, prompts_per_generation // prompts_per_update) * prompts_per_update
        raise ValueError(
            f"prompts_per_generation must be a multiple of prompts_per_update {prompts_per_update}, got "
            f"{prompts_per_generation}: the nearest is {nearest}"
        )
    rollouts = prompts_per_update * group_size
    if rollouts % world_size:
        fitting = max(n for n in range(1, min(world_size, rollouts) + 1) if rollouts % n == 0)
        raise ValueError(
            f"the number of processes must divide the {rollouts} rollouts of an update ({prompts_per_update} prompts x "
            f"{group_size}), got {world_size}: start {fitting}"
        )
    of_a_device = rollouts // world_size
    size = max(n for n in range(1, min(most_per_device, of_a_device) + 1) if of_a_device % n == 0)
    accumulation = of_a_device // size
    return BatchArithmetic(
        group_size=group_size,
        world_size=world_size,
        per_device_train_batch_size=size,
        gradient_accumulation_steps=accumulation,
        steps_per_generation=accumulation * (prompts_per_generation // prompts_per_update),
    )
