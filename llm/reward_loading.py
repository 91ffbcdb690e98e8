"""Reward functions by name: those of this package and of TRL, or any function by its import path."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from trl.trainer.utils import get_callable_name

from fgrpo.llm.rewards import REWARDS
from fgrpo.theory import _validation as check

IMPORTED: Mapping[str, str] = MappingProxyType(
    {
        "digit_sum_reward": "fgrpo.llm.tiny_world.task:digit_sum_reward",
        "accuracy_reward": "trl.rewards:accuracy_reward",
        "reasoning_accuracy_reward": "trl.rewards:reasoning_accuracy_reward",
        "think_format_reward": "trl.rewards:think_format_reward",
    }
)
"""Functions that `reward_funcs` names, with where they live."""
NAMES = (*REWARDS, *IMPORTED, "get_soft_overlong_punishment")
"""Names that `reward_funcs` takes; the last one for the settings that TRL's command line gives it."""

_PASSED_BY_TRL = {
    "prompts",
    "completions",
    "completion_ids",
    "trainer_state",
    "log_extra",
    "log_metric",
    "environments",
}


def load_rewards(names: Sequence[str]) -> list[Callable[..., Any]]:
    """Reward functions by name.

    Args:
        names: Any of `NAMES`, or import paths: `module:function`, or `module.function` as TRL has it.

    Returns:
        What each name leads to. It may be asynchronous; TRL refuses another number of rewards than there are
        completions, and so does `fgrpo.llm.evaluation.sampling.sample_part`.

    Raises:
        ValueError: If a name is unknown or leads to nothing that can be called, or there is none.

    Source: the convention of TRL's command line.
    """
    if not names:
        raise ValueError(
            "reward_funcs must name at least one reward function, got none: pass for example --reward_funcs math_reward"
        )
    return [_load(name) for name in names]


def refuse_missing_columns(rewards: Sequence[Callable[..., Any]], row: Mapping[str, Any]) -> None:
    """Raise if a reward function lacks a column of the data.

    Parameters without a default must be columns; this package's own rewards, which take any, are called once.

    Args:
        rewards: Reward functions from `load_rewards`.
        row: A row of the data, with the column `prompt`.

    Raises:
        ValueError: If a column is missing.
    """
    columns = {name: [value] for name, value in row.items() if name not in _PASSED_BY_TRL | {"prompt"}}
    for reward in rewards:
        name = get_callable_name(reward)
        for column in _needed_columns(reward):
            if column not in columns:
                raise ValueError(f"the data must have a column {column} for {name}, got {', '.join(row)}: add it")
        if name in (*REWARDS, "digit_sum_reward"):
            reward(prompts=[row["prompt"]], completions=[""], **columns)


def close_rewards(rewards: Sequence[Any]) -> None:
    """End the processes that reward functions have started."""
    for reward in rewards:
        close = getattr(reward, "close", None)
        if close is not None:
            close()


def _load(name: str) -> Callable[..., Any]:
    if name in REWARDS:
        return REWARDS[name]()
    if name == "get_soft_overlong_punishment":
        from trl.rewards import get_soft_overlong_punishment

        soft: Callable[..., Any] = get_soft_overlong_punishment(max_completion_len=1280, soft_punish_cache=256)
        return soft
    path = IMPORTED.get(name, name)
    module_name, _, attribute = path.replace(":", ".").rpartition(".")
    if not module_name:
        check.one_of("reward_funcs", name, NAMES)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # functions in a file beside the configuration, as TRL allows
    try:
        reward = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"reward_funcs must be {', '.join(NAMES)} or module:function, got {check.shown(name)} ({error}): "
            "check the path, from the folder in which the command runs"
        ) from None
    if not callable(reward):
        raise ValueError(
            f"reward_funcs must be functions, got {check.shown(name)}, a {type(reward).__name__}: name a function"
        )
    return reward  # type: ignore[no-any-return]


def _needed_columns(reward: Callable[..., Any]) -> list[str]:
    """Parameters without a default that TRL does not pass."""
    return [
        name
        for name, parameter in inspect.signature(reward).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and name not in _PASSED_BY_TRL
    ]
