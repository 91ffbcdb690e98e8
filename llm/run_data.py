"""The prompts of a run: from a file, from the hub, or built in code; checked before a model is loaded."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset
from trl import DatasetMixtureConfig, get_dataset

from fgrpo.llm.records import read_records
from fgrpo.llm.reward_loading import needed_columns
from fgrpo.llm.settings import Settings
from fgrpo.theory import _validation as check

_FILES = (".csv", ".jsonl", ".json", ".parquet")


def load_data(settings: Settings, rewards: Sequence[Callable[..., Any]]) -> tuple[Any, Any]:
    """Training and evaluation prompts.

    Args:
        settings: `dataset_name` (a file, `tiny`, or a name on the hub) or `datasets` (a mixture, as TRL has it), and
            what TRL's command line has beside them. With a file, `dataset_test_split` names another one to evaluate on.
        rewards: The reward functions, whose columns must be there.

    Returns:
        The data to train on, and the data to evaluate on where the run evaluates, else None.

    Raises:
        ValueError: If nothing or a missing file is named, the hub cannot be reached, the data are empty, a column is
            missing, a prompt is neither text nor a chat, or there are fewer prompts than a generation takes.

    Source: the convention of TRL's command line.
    """
    name, evaluates = settings.get("dataset_name"), str(settings.get("eval_strategy")) != "no"
    if settings.get("datasets"):
        found = get_dataset(settings.build(DatasetMixtureConfig))
        train, test = _splits(found, settings, evaluates)
    elif name is None:
        raise ValueError(
            "dataset_name must name a file or a data set on the hub, got none: pass --dataset_name prompts.jsonl"
        )
    elif name == "tiny":
        from fgrpo.llm.tiny_world.task import rows

        train, test = (Dataset.from_list(rows()) for _ in range(2))
    elif Path(name).suffix.lower() in _FILES:
        train = _from_file(name)
        test = _from_file(settings.get("dataset_test_split")) if evaluates else None
    else:
        train, test = _splits(_from_hub(name, settings), settings, evaluates)
    test = test if evaluates else None
    for part, least in ((train, settings.batches.prompts_per_generation), (test, 1)):
        if isinstance(part, Dataset):
            _refuse_unusable(part, rewards, least)
    return train, test


def _from_file(name: str) -> Dataset:
    rows, _ = read_records(name, "data")
    if not rows:
        raise ValueError(f"{name!r} must have at least one prompt, got none: write one row per prompt")
    return Dataset.from_list([dict(row) for row in rows])


def _from_hub(name: str, settings: Settings) -> Any:
    try:
        return load_dataset(
            name, name=settings.get("dataset_config"), streaming=bool(settings.get("dataset_streaming"))
        )
    except (OSError, ValueError) as error:  # DatasetNotFoundError and the errors of the network are OSErrors
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"dataset_name must be a file or a data set that the hub serves, got {name!r} ({reason}): check the name "
            "and the network, or pass a .jsonl, .json, .csv or .parquet file"
        ) from None


def _splits(found: Any, settings: Settings, evaluates: bool) -> tuple[Any, Any]:
    parts = []
    for key in ("dataset_train_split", "dataset_test_split") if evaluates else ("dataset_train_split",):
        name = settings.get(key)
        if name not in found:
            raise ValueError(f"{key} must be one of {', '.join(map(str, found))}, got {name!r}: pass --{key}")
        parts.append(found[name])
    return parts[0], parts[1] if evaluates else None


def _refuse_unusable(data: Dataset, rewards: Sequence[Callable[..., Any]], least: int) -> None:
    columns = ", ".join(data.column_names) or "none"
    if len(data) == 0:
        raise ValueError("the data must have at least one prompt, got none: check the file or the split")
    if "prompt" not in data.column_names:
        raise ValueError(f"the data must have a column prompt, got {columns}: rename the one with the questions")
    for reward in rewards:
        for column in needed_columns(reward):
            if column not in data.column_names:
                raise ValueError(
                    f"the data must have a column {column} for {reward.__name__}, got {columns}: rename or add it"
                )
    for number, prompt in enumerate(data["prompt"], 1):
        if not _is_prompt(prompt):
            raise ValueError(
                f"prompt in row {number} must be text or a list of messages with role and content, got "
                f"{check.shown(prompt)}: see TRL's dataset formats"
            )
    if len({isinstance(prompt, str) for prompt in data["prompt"]}) > 1:
        raise ValueError("prompts must be all text or all chats, got both: write all of them as messages")
    if len(data) < least:
        raise ValueError(
            f"the data must have at least the {least} prompts of one generation, got {len(data)}: lower "
            "steps_per_generation or per_device_train_batch_size, or add prompts"
        )


def _is_prompt(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(message, dict) and {"role", "content"} <= message.keys() for message in value)
    return isinstance(value, str) and value != ""
