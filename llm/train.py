"""A run from its settings: `fgrpo train`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers.trainer_pt_utils import get_model_param_count
from transformers.utils import is_torch_bf16_gpu_available, is_torch_xla_available
from trl import ModelConfig, get_peft_config, get_quantization_config
from trl.trainer.utils import get_callable_name

from fgrpo.llm.batch_arithmetic import counted
from fgrpo.llm.config import FocalGRPOConfig
from fgrpo.llm.evaluation.models import refuse_missing, trainer_step
from fgrpo.llm.launch import is_main_process
from fgrpo.llm.quiet import quiet, remove_chatty
from fgrpo.llm.reward_loading import close_rewards, load_rewards
from fgrpo.llm.run_data import load_data, model_must_load
from fgrpo.llm.run_folder import RecordCallback, RunFolder
from fgrpo.llm.settings import Settings
from fgrpo.llm.summary import FocalSummaryCallback
from fgrpo.llm.tiny_world.tokenizer import build_tokenizer
from fgrpo.llm.trainer import FocalGRPOTrainer, success_index

TINY = "tiny"


def train(
    settings: Settings,
    *,
    overwrite: bool = False,
    resume: bool = False,
    write: Callable[[str], object] = print,
) -> Path:
    """Train, save checkpoints and the final model, and say in a line per log entry how it goes.

    Everything that can be refused is refused before the folder of the run is touched.

    Args:
        settings: The settings of the run (`fgrpo.llm.settings.read_settings`).
        overwrite: Whether an earlier run in the folder is replaced.
        resume: Whether to go on from the latest whole checkpoint in the folder.
        write: What takes a line of progress, on the main process.

    Returns:
        The folder of the run: the final model, checkpoints, `completions/` with the tables of rollouts.

    Raises:
        ValueError: If the settings, the data, the rewards or the folder are not fit for a run.
        OSError: If a file cannot be read or written.

    Source: the convention of TRL's command line; the rest: this project.
    """
    say = write if is_main_process() else _nothing
    with quiet(say):
        folder = RunFolder(settings)
        checkpoint = _checkpoint(settings, folder, overwrite=overwrite, resume=resume)
        rewards = _rewards(settings)
        try:
            trainer = _trainer(settings, rewards, say)
            trainer.add_callback(RecordCallback(folder))
            trainer.add_callback(FocalSummaryCallback(say))
            remove_chatty(trainer)
            trainer.accelerator.wait_for_everyone()  # every process has looked at the folder
            if is_main_process():
                folder.start(replace=overwrite)
            say(_opening(settings, trainer, checkpoint))
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
            trainer.save_model(str(folder.path))
            if trainer.args.push_to_hub:
                trainer.push_to_hub()
            say(f"model, checkpoints and completions: {folder.path}")
            _end(trainer)
        finally:
            close_rewards(rewards)
    return folder.path


def _checkpoint(settings: Settings, folder: RunFolder, *, overwrite: bool, resume: bool) -> Path | None:
    """Where to go on from; raises where the folder is not as the command says."""
    named = settings.get("resume_from_checkpoint")
    if overwrite and (resume or named):
        raise ValueError("--overwrite and --resume must not come together, got both: pass one of them")
    if resume or str(named).lower() == "true":
        checkpoint = folder.latest_checkpoint()
    elif named is None:
        folder.refuse_leftovers(overwrite=overwrite)
        return None
    else:
        checkpoint = Path(named)
        if not checkpoint.is_dir():
            raise ValueError(
                f"resume_from_checkpoint must be a folder, got {named!r}: check the path, or pass --resume"
            )
    folder.refuse_other_settings(checkpoint)
    _refuse_finished(settings, folder, checkpoint)
    return checkpoint


def _refuse_finished(settings: Settings, folder: RunFolder, checkpoint: Path) -> None:
    """Raise where no update is left to make: TRL would make one more."""
    done, steps = trainer_step(str(checkpoint)) or 0, settings.get("max_steps")
    if 0 < steps <= done:
        way_out = (
            "pass a larger --max_steps to go on" if folder.length_is_free else "its learning rate is for this length"
        )
        raise ValueError(
            f"max_steps must be above the {done} steps of {checkpoint}, got {steps}: the run is finished, {way_out}"
        )


def _rewards(settings: Settings) -> list[Any]:
    """Reward functions, and the name of a reward model where there is one, in TRL's order."""
    rewards: list[Any] = []
    if settings.get("reward_model_name_or_path"):
        rewards.append(settings.get("reward_model_name_or_path"))
    if settings.get("reward_funcs") or not rewards:
        rewards += load_rewards(settings.get("reward_funcs") or [])
    # of a reward model TRL keeps the last part of the name
    names = [reward.split("/")[-1] if isinstance(reward, str) else get_callable_name(reward) for reward in rewards]
    weights = settings.get("reward_weights")
    if weights is not None and len(weights) != len(names):
        raise ValueError(
            f"reward_weights must be one for each of the reward functions {', '.join(names)}, got {len(weights)}: "
            f"pass {len(names)} numbers"
        )
    success_index(names, settings.get("success_reward"))  # the trainer would say so too late: it makes the folder first
    return rewards


def _trainer(settings: Settings, rewards: list[Any], write: Callable[[str], object]) -> FocalGRPOTrainer:
    settings.refuse_misfits()
    model, tokenizer = _model(settings, write)
    _refuse_missing_gpu(settings)
    model_arguments = settings.build(ModelConfig)
    arguments = settings.build(FocalGRPOConfig)
    arguments.model_init_kwargs = {
        "revision": model_arguments.model_revision,
        "attn_implementation": model_arguments.attn_implementation,
        "dtype": model_arguments.dtype,
        **(arguments.model_init_kwargs or {}),
    }
    train_data, test_data = load_data(settings, [reward for reward in rewards if callable(reward)], write)
    if not Path(model).is_dir():
        write(f"model {model} from the hub or its cache")
    with model_must_load(model):
        return FocalGRPOTrainer(
            model=model,
            reward_funcs=rewards,
            args=arguments,
            train_dataset=train_data,
            eval_dataset=test_data,
            processing_class=tokenizer,
            quantization_config=get_quantization_config(model_arguments),
            peft_config=get_peft_config(model_arguments),
        )


def _refuse_missing_gpu(settings: Settings) -> None:
    """Raise where bfloat16 is asked of a GPU that is not there; TRL asks for it where nothing is said."""
    bf16 = settings.get("bf16")
    wanted = not settings.get("fp16") if bf16 is None else bf16
    if wanted and not (settings.get("use_cpu") or is_torch_bf16_gpu_available() or is_torch_xla_available()):
        raise ValueError(
            "bf16 must be false without a GPU that computes in bfloat16, got true: pass --bf16 false to train in "
            "float32, or --use_cpu true to train in bfloat16 on the CPU"
        )


def _model(settings: Settings, write: Callable[[str], object]) -> tuple[str, Any]:
    """Name or folder of the model, and its tokenizer where TRL would not find the right one by itself."""
    name = settings.get("model_name_or_path")
    if name is None:
        raise ValueError("model_name_or_path must be given, got None: pass --model with a name on the hub or a folder")
    if name != TINY:
        refuse_missing(name)
        return name, None
    from fgrpo.llm.tiny_world.pretraining import base_model_folder

    return str(base_model_folder(announce=write)), build_tokenizer()


def _opening(settings: Settings, trainer: FocalGRPOTrainer, checkpoint: Path | None) -> str:
    batches, arguments = settings.batches, trainer.args
    parameters = get_model_param_count(trainer.model)  # under ZeRO-3 each process holds a part
    line = (
        f"{settings.get('model_name_or_path')}: {parameters:,} parameters, {arguments.loss_type}, "
        f"focal_gamma {arguments.focal_gamma:g}, N = {batches.group_size}, "
        f"{batches.prompts_per_generation} prompts per generation, {counted('process', arguments.world_size)}"
    )
    return line if checkpoint is None else f"{line}\ngoing on from {checkpoint}"


def _end(trainer: FocalGRPOTrainer) -> None:
    """Finish trackers and the process group.

    The distributed wrapper of the model goes first: with the last reference to the process group it would wait, holding
    Python's lock, for a thread of the group that may need this lock to end.
    """
    trainer.model_wrapped = trainer.model
    trainer.accelerator.free_memory()
    if hasattr(trainer, "end"):
        trainer.end()
    else:
        trainer.accelerator.end_training()


def _nothing(line: str) -> None:
    """Where the lines of the other processes go."""
