"""The paper's training settings in the words of TRL: functions, from which the YAML files of `recipes/` are written.

The paper trained with verl. Where TRL has no equal of a setting, the preset takes the nearest one and its note says
what differs; `fgrpo train` and the YAML files show the notes as comments.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from fgrpo.llm.batch_arithmetic import fit_batches
from fgrpo.llm.data import DEEPSCALER
from fgrpo.llm.groups import SUCCESS_THRESHOLD
from fgrpo.theory import _validation as check
from fgrpo.theory.advantages import matched_learning_rate

PROMPTS_PER_GENERATION = 256
PROMPTS_PER_UPDATE = 64
PAPER_WORLD_SIZE = 16
"""H100 of the paper's runs; the YAML files are written for as many processes."""
GROUP_SIZES = (2, 4, 8, 16, 32)
"""Group sizes of the paper's comparison in N, under GRPO."""
LEARNING_RATE = 1e-6


@dataclass(frozen=True)
class Model:
    """A model of the paper.

    Attributes:
        hub_name: Name of the weights on the Hugging Face hub.
        max_completion_length: Most tokens of a response.
        focal_gamma: Exponent that the paper selected, by base method.
        chat_template_kwargs: What the chat template needs besides the messages.
        notes: Comments by key.
    """

    hub_name: str
    max_completion_length: int
    focal_gamma: Mapping[str, float]
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "qwen2.5-7b": Model("Qwen/Qwen2.5-7B", 8192, {"grpo": 0.5, "dapo": 0.5, "cispo": 1.0}),
        "qwen3-4b-base": Model(
            "Qwen/Qwen3-4B-Base",
            4096,
            {"grpo": 0.5, "dapo": 0.5, "cispo": 0.5},
            {"enable_thinking": True},
            {"chat_template_kwargs": "thinking mode on, as in the paper's training"},
        ),
        "qwen2.5-1.5b-math": Model(
            "Qwen/Qwen2.5-Math-1.5B",
            3072,
            {"grpo": 0.5, "dapo": 0.5, "cispo": 0.5},
            notes={
                "model_name_or_path": "in version 1 of the paper only, in place of Qwen3-4B-Base",
                "focal_gamma": "version 2 reports no selection for this model: .5, which won most of the others",
            },
        ),
        "llama-3.2-3b-instruct": Model(
            "meta-llama/Llama-3.2-3B-Instruct",
            8192,
            {"grpo": 0.5, "dapo": 1.0, "cispo": 0.5},
            notes={"model_name_or_path": "gated on the hub: accept its licence and log in first"},
        ),
    }
)
"""The models of the paper by the name that `fgrpo train --model` takes."""


def find_model(name: str) -> Model | None:
    """The model of the paper with this name, here or on the hub; None if it has none such."""
    return next((model for key, model in MODELS.items() if name.lower() in (key, model.hub_name.lower())), None)


@dataclass(frozen=True)
class Method:
    """A training method of the paper: the keys in which it differs from GRPO.

    Attributes:
        summary: What it is, in a sentence.
        base: Whose selected gamma its focal version takes: grpo, dapo or cispo.
        keys: Keys of TRL's configuration.
        focal: Whether the focal weight is on.
        low_lr: Whether the learning rate is lowered to that at which GRPO has the mean advantage of F-GRPO.
        notes: Comments by key, above all where TRL cannot do what verl did.
    """

    summary: str
    base: str
    keys: Mapping[str, Any]
    focal: bool = False
    low_lr: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)


_TOKEN_MEAN = (
    "mean over tokens, in TRL the loss_type dapo: the sum over an update's tokens divided by the tokens of the "
    "generation per update; verl divides by those of the update itself, or of a micro-batch"
)
_CLIP = {"epsilon": 0.2, "epsilon_high": 0.2}
_GRPO = {"loss_type": "dapo", **_CLIP}
_DEEPSEEK = {"loss_type": "grpo", **_CLIP}
_DAPO = {"loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.28}
_CISPO = {"loss_type": "cispo", "epsilon_high": 6.0}
_GRPO_NOTES = {"loss_type": _TOKEN_MEAN}
_DEEPSEEK_NOTES = {"loss_type": "mean over the tokens of a response, then over responses; not what the paper ran"}
_DAPO_NOTES = {
    "loss_type": _TOKEN_MEAN + ". TRL has neither DAPO's dynamic sampling nor its penalty of long responses",
    "epsilon_high": "the wider upper clip of DAPO",
}
_CISPO_NOTES = {
    "loss_type": "clipped, detached ratio times advantage times log-probability, mean over tokens",
    "epsilon_high": "TRL's absolute ceiling of the ratio: the paper's clip(r, 1 - 1, 1 + 5) is [0, 6]; TRL has no "
    "lower bound, which 0 never needs. Left out, it would be .2",
}

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "grpo": Method("GRPO as the paper ran it (token mean)", "grpo", _GRPO, notes=_GRPO_NOTES),
        "deepseek_grpo": Method(
            "GRPO in the form of DeepSeekMath (response mean)", "grpo", _DEEPSEEK, notes=_DEEPSEEK_NOTES
        ),
        "dapo": Method("DAPO: GRPO with clip .2 / .28", "dapo", _DAPO, notes=_DAPO_NOTES),
        "cispo": Method("CISPO with ratio in [0, 6]", "cispo", _CISPO, notes=_CISPO_NOTES),
        "focal_grpo": Method("F-GRPO", "grpo", _GRPO, focal=True, notes=_GRPO_NOTES),
        "focal_deepseek_grpo": Method(
            "DeepSeekMath GRPO with focal weight", "grpo", _DEEPSEEK, focal=True, notes=_DEEPSEEK_NOTES
        ),
        "focal_dapo": Method("F-DAPO", "dapo", _DAPO, focal=True, notes=_DAPO_NOTES),
        "focal_cispo": Method("F-CISPO", "cispo", _CISPO, focal=True, notes=_CISPO_NOTES),
        "grpo_entropy": Method(
            "Control: GRPO with entropy bonus",
            "grpo",
            {**_GRPO, "entropy_coef": 0.001},
            notes={
                **_GRPO_NOTES,
                "entropy_coef": "selected over .0001. TRL adds the mean entropy per token, whatever the loss_type; "
                "needs a TRL that has the key",
            },
        ),
        "grpo_kl": Method(
            "Control: GRPO with KL term",
            "grpo",
            {**_GRPO, "beta": 0.001, "use_bias_correction_kl": False},
            notes={
                **_GRPO_NOTES,
                "beta": "selected over .01; the reference model is kept in memory",
                "use_bias_correction_kl": "TRL's default multiplies the KL estimate by the ratio; verl's does not",
            },
        ),
        "grpo_low_lr": Method(
            "Control: GRPO with the learning rate that matches the mean advantage of F-GRPO",
            "grpo",
            _GRPO,
            low_lr=True,
            notes=_GRPO_NOTES,
        ),
    }
)
"""The methods by the name that `fgrpo train --config` takes."""

_BASE_NOTES = {
    "dataset_name": "prepared as in the paper: system prompt, no samples over 1024 tokens, no conflicting duplicates",
    "focal_gamma": "0: plain, with the same diagnostics",
    "scale_rewards": "TRL divides by std + 1e-4, verl by std + 1e-6",
    "warmup_steps": "TRL counts updates; verl moved its schedule once per batch, where these are 4 updates",
    "dtype": "weights and optimizer in float32, computation in bfloat16",
    "per_device_train_batch_size": "rollouts of a forward pass, what a device's memory holds; verl packs by tokens",
    "gradient_accumulation_steps": "an update: 64 prompts (the paper's mini-batch)",
    "steps_per_generation": "a generation: 256 prompts (the paper's batch), so four updates",
    "top_k": "off (verl: -1)",
    "save_strategy": "the paper's checkpoints; an epoch ends with a generation",
    "report_to": "or wandb, trackio, tensorboard",
}


@dataclass(frozen=True)
class Preset:
    """A recipe: flat keys as `trl grpo` takes them, with the focal ones, and comments.

    Attributes:
        name: Name of the recipe.
        summary: What it is, in a sentence.
        keys: Keys and values in the order in which they are written.
        notes: Comments by key.
    """

    name: str
    summary: str
    keys: Mapping[str, Any]
    notes: Mapping[str, str]


def preset(
    method: str,
    model: str = "qwen2.5-7b",
    *,
    group_size: int = 8,
    gamma: float | None = None,
    world_size: int = PAPER_WORLD_SIZE,
    most_per_device: int = 2,
) -> Preset:
    """A training run of the paper as a TRL configuration.

    Args:
        method: A name of `METHODS`.
        model: A name of `MODELS`, or the hub's name of one; any other name or folder is taken as the weights, with the
            settings of qwen2.5-7b.
        group_size: N, rollouts per prompt, >= 2; the paper took 8, and 2 to 32 for GRPO.
        gamma: Focal exponent, >= 0; default: what the paper selected for the model and the base method. For
            `grpo_low_lr`, of the run to be matched.
        world_size: Processes; the batch of 256 prompts and the mini-batch of 64 are kept at any that fits.
        most_per_device: Most rollouts of a forward pass on a device.

    Returns:
        The recipe.

    Raises:
        ValueError: If a name is unknown, a number out of range, or world_size does not divide 64 N.

    Source: Appendix L of version 2; batch 256 and mini-batch 64 are counted in prompts, as verl does.
    """
    chosen = METHODS[check.one_of("method", method, tuple(METHODS))]
    settings = find_model(model) or replace(MODELS["qwen2.5-7b"], hub_name=model)
    selected = settings.focal_gamma[chosen.base] if gamma is None else float(check.gamma(gamma))
    batches = fit_batches(
        PROMPTS_PER_GENERATION, PROMPTS_PER_UPDATE, group_size, world_size=world_size, most_per_device=most_per_device
    )
    keys: dict[str, Any] = {
        "model_name_or_path": settings.hub_name,
        "dtype": "float32",
        "dataset_name": DEEPSCALER,
        "reward_funcs": ["math_reward"],
        "output_dir": f"runs/{method}-{settings.hub_name.split('/')[-1].lower()}",
        "focal_gamma": selected if chosen.focal else 0.0,
        "success_reward": "math_reward",
        "success_threshold": SUCCESS_THRESHOLD,
        **chosen.keys,
    }
    keys.setdefault("beta", 0.0)
    keys |= {
        "scale_rewards": "group",
        "num_generations": group_size,
        "max_completion_length": settings.max_completion_length,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
    }
    if settings.chat_template_kwargs:
        keys["chat_template_kwargs"] = dict(settings.chat_template_kwargs)
    keys |= {
        "per_device_train_batch_size": batches.per_device_train_batch_size,
        "gradient_accumulation_steps": batches.gradient_accumulation_steps,
        "steps_per_generation": batches.steps_per_generation,
        "num_iterations": 1,
        "num_train_epochs": 10,
        "learning_rate": _low_learning_rate(selected) if chosen.low_lr else LEARNING_RATE,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": 15,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "weight_decay": 0.01,
        "max_grad_norm": 1.0,
        "bf16": True,
        "logging_steps": int(batches.updates_per_generation),
        "log_completions": True,
        "num_completions_to_print": 0,
        "save_strategy": "epoch",
        "report_to": "none",
        "seed": 0,
    }
    notes = {**_BASE_NOTES, **chosen.notes}
    if chosen.focal:
        notes["focal_gamma"] = "selected by the paper over .5, 1 and 2" if gamma is None else "chosen by hand"
    if chosen.low_lr:
        notes["learning_rate"] = (
            f"{LEARNING_RATE:g} x m_gamma, gamma = {selected:g} (fgrpo.theory.matched_learning_rate)"
        )
    for key, note in settings.notes.items():
        if key != "focal_gamma" or (chosen.focal and gamma is None):
            notes[key] = note
    summary = f"{chosen.summary}, {settings.hub_name}, N = {group_size}, {world_size} processes"
    return Preset(method, summary, MappingProxyType(keys), MappingProxyType(notes))


def _low_learning_rate(gamma: float) -> float:
    return float(f"{float(matched_learning_rate(gamma, LEARNING_RATE)):.3g}")


def tiny_preset() -> Preset:
    """A run of under a minute on a CPU, without network: a character-level model that learns three-digit sums.

    Returns:
        The recipe; its model, data and reward are built in code (`fgrpo.llm.tiny_world`).

    Source: this project.
    """
    keys: dict[str, Any] = {
        "model_name_or_path": "tiny",
        "dataset_name": "tiny",
        "reward_funcs": ["digit_sum_reward"],
        "output_dir": "runs/tiny",
        "focal_gamma": 1.0,
        "success_reward": "digit_sum_reward",
        "loss_type": "dapo",
        "num_generations": 8,
        "max_completion_length": 4,
        "per_device_train_batch_size": 64,
        "gradient_accumulation_steps": 1,
        "max_steps": 60,
        "learning_rate": 3e-4,
        "lr_scheduler_type": "constant",
        "weight_decay": 0.0,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "ddp_find_unused_parameters": False,
        "logging_steps": 5,
        "log_completions": True,
        "num_completions_to_print": 0,
        "save_steps": 20,
        "report_to": "none",
        "seed": 0,
    }
    notes = {
        "model_name_or_path": "built in code and warmed up once by supervised training",
        "dataset_name": "16 prompts such as a13: that ask for three digits with that sum",
        "focal_gamma": "0 for plain GRPO",
        "per_device_train_batch_size": "64 rollouts: 8 prompts per update",
    }
    return Preset("tiny", "A complete run on a CPU in under a minute", MappingProxyType(keys), MappingProxyType(notes))
