"""One run of the experiment: an arm and a seed, trained by TRL, measured exactly."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from datasets import Dataset
from transformers import Qwen2ForCausalLM

from fgrpo.llm.config import FocalGRPOConfig
from fgrpo.llm.experiment.arms import Arm
from fgrpo.llm.experiment.protocol import EVALUATION, GROUP, Protocol
from fgrpo.llm.experiment.recorder import EvaluationCallback, RecordedTrainer, Records
from fgrpo.llm.presets import METHODS
from fgrpo.llm.quiet import quiet, remove_chatty
from fgrpo.llm.tiny_world.modes import AnswerModes, answer_modes
from fgrpo.llm.tiny_world.pretraining import base_model_folder
from fgrpo.llm.tiny_world.task import MAX_COMPLETION_LENGTH, digit_sum_reward, rows
from fgrpo.llm.tiny_world.tokenizer import build_tokenizer


def run_arm(arm: Arm, seed: int, protocol: Protocol, bases: Path) -> pd.DataFrame:
    """Train the base model of a seed as an arm says and return what was measured.

    Args:
        arm: The arm.
        seed: Seed of base model, world and training.
        protocol: The settings that arms share.
        bases: Folder of base models, where that of the seed is made if it is missing.

    Returns:
        Rows of two kinds by the column `table`: 'evaluation' (exact numbers of a prompt after `step` updates, see
        `fgrpo.llm.tiny_world.exact.measures`) and 'group' (a prompt's rollouts in the generation at `step`, see
        `fgrpo.llm.experiment.recorder.Records.generation`), with `arm` and `seed`; columns of the other kind are NaN.

    Source: this project.
    """
    modes = answer_modes(seed)
    records = Records(arm, modes, protocol.evaluated_steps(), protocol.tail_miss_updates)
    with quiet(warnings.warn), tempfile.TemporaryDirectory() as scratch:
        base = base_model_folder(seed, protocol.pretraining_steps, cache=bases)
        trainer = RecordedTrainer(
            model=_model(base),
            reward_funcs=[digit_sum_reward],
            args=FocalGRPOConfig(**_settings(arm, seed, protocol, scratch)),
            train_dataset=Dataset.from_list(_prompts(arm, modes)),
            processing_class=build_tokenizer(),
            records=records,
        )
        remove_chatty(trainer)
        per_update = protocol.prompts_per_update * arm.group_size / arm.updates_per_generation
        trainer.add_callback(EvaluationCallback(records, per_update))
        trainer.train()
    table = pd.concat(
        [
            pd.DataFrame(records.evaluations).assign(table=EVALUATION),
            pd.DataFrame(records.groups).assign(table=GROUP),
        ],
        ignore_index=True,
    )
    return table.assign(arm=arm.name, seed=seed)


def _model(base: Path) -> Any:
    model = Qwen2ForCausalLM.from_pretrained(base, dtype=torch.float32)
    model.config._name_or_path = str(base)  # from which TRL loads the reference of a KL term
    return model


def _prompts(arm: Arm, modes: AnswerModes) -> list[dict[str, Any]]:
    repeats = [1 if easy else arm.hard_repeats for easy in modes.easy_P]
    return [row for row, count in zip(rows(), repeats, strict=True) for _ in range(count)]


def _settings(arm: Arm, seed: int, protocol: Protocol, scratch: str) -> dict[str, Any]:
    """Keys of TRL's configuration; whatever costs time and measures nothing is off."""
    rate = protocol.sgd_learning_rate if arm.optimizer == "sgd" else protocol.learning_rate
    rollouts = protocol.prompts_per_update * arm.group_size
    return {
        "output_dir": scratch,
        **METHODS[arm.method].keys,
        "beta": 0.0,
        "focal_gamma": 0.0,  # the weight is the arm's
        "num_generations": arm.group_size,
        "max_completion_length": MAX_COMPLETION_LENGTH,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "per_device_train_batch_size": rollouts // arm.updates_per_generation,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": arm.updates_per_generation,
        "max_steps": protocol.steps,
        "learning_rate": rate * arm.learning_rate_factor,
        "lr_scheduler_type": "constant",
        "optim": arm.optimizer,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "seed": seed,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        **arm.settings,
    }
