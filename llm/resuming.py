"""What a run that goes on needs besides a checkpoint of transformers: the order of the prompts, and TRL's own count.

TRL's sampler draws a permutation of the prompts for each epoch from a generator that no checkpoint has: a new one
begins with the first permutation, whatever the epoch. TRL's count of forward passes, which says when a generation is
drawn, begins at 0, too. Both follow from the step of the checkpoint. What cannot be had again are the rollouts of a
generation of which not all updates were made: they are in memory only.
"""

import warnings
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl import GRPOTrainer
from trl.trainer.utils import RepeatSampler


class ResumingCallback(TrainerCallback):
    """Brings the sampler and the count of a trainer to where they were when the checkpoint was written.

    Without a checkpoint it does nothing.

    Args:
        trainer: The trainer that it belongs to.

    Raises:
        ValueError: At the start of training, if no update is left to make: TRL would make one more, or none and write
            the last table of completions anew, without rows.

    Warns:
        UserWarning: If the checkpoint lies inside a generation, so that the rest of it is drawn anew.
    """

    def __init__(self, trainer: GRPOTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        train_dataloader: Any = None,
        **_: Any,
    ) -> None:
        """Catch up with `state.global_step` updates, before the first batch is taken."""
        if state.global_step == 0:
            return
        if state.global_step >= state.max_steps:
            raise ValueError(
                f"the steps of a run must be above those of its checkpoint, got {state.max_steps} and "
                f"{state.global_step}: the run is finished, raise max_steps or num_train_epochs to go on"
            )
        batches = getattr(train_dataloader, "batch_sampler", None)
        sampler = getattr(getattr(batches, "batch_sampler", batches), "sampler", None)  # several processes have shards
        if args.ignore_data_skip or not isinstance(sampler, RepeatSampler):
            return
        updates_per_epoch = -(-len(train_dataloader) // args.gradient_accumulation_steps)
        epochs, updates = divmod(state.global_step, updates_per_epoch)
        for _epoch in range(epochs):
            next(iter(sampler))  # draws the permutation of an epoch
        passes = updates * args.gradient_accumulation_steps  # of this epoch: those before are of whole generations
        self.trainer._step = passes
        per_generation = args.steps_per_generation * args.num_iterations
        if passes % per_generation:
            warnings.warn(
                f"step {state.global_step} lies inside a generation ({passes % per_generation} of {per_generation} "
                "forward passes): its rollouts were not saved and are drawn again, so this is not the run without a "
                "break",
                stacklevel=1,
            )
