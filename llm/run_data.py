"""The prompts of a run: from a file, from the hub, or built in code; checked before a model is loaded."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from trl import DatasetMixtureConfig, get_dataset

from fgrpo.llm.data import DEEPSCALER, is_prompt, load_from_hub, prepare_math
from fgrpo.llm.evaluation.models import load_tokenizer
from fgrpo.llm.records import SUFFIXES, read_records
from fgrpo.llm.reward_loading import refuse_missing_columns
from fgrpo.llm.settings import Settings
from fgrpo.llm.tiny_world import task
from fgrpo.llm.tiny_world.tokenizer import build_tokenizer
from fgrpo.theory import _validation as check


def load_data(
    settings: Settings, rewards: Sequence[Callable[..., Any]], write: Callable[[str], object]
) -> tuple[Any, Any]:
    """Training and evaluation prompts.

    Args:
        settings: `dataset_name` (a file, `tiny`, or a name on the hub) or `datasets` (a mixture, as TRL has it), and
            what TRL's command line has beside them. With a file, `dataset_test_split` names another one to evaluate on.
        rewards: The reward functions, whose columns must be there.
        write: What takes a line about what was done to the data: columns `problem` and `answer` without `prompt` are
            prepared as the paper prepared DeepScaleR.

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
        train, test = (Dataset.from_list(task.rows()) for _ in range(2))
    elif Path(name).suffix.lower() in SUFFIXES:
        train = _from_file(name, settings, write)
        test = _from_file(_test_file(settings), settings, write) if evaluates else None
    elif name == DEEPSCALER and not evaluates:
        train, test = _prepared(name, settings, write), None
    else:
        write(f"data {name} from the hub or its cache")
        streaming = bool(settings.get("dataset_streaming"))
        found = load_from_hub(name, name=settings.get("dataset_config"), streaming=streaming)
        train, test = _splits(found, settings, evaluates)
    test = test if evaluates else None
    for part, least in ((train, settings.batches.prompts_per_generation), (test, 1)):
        if isinstance(part, Dataset):
            _refuse_unusable(part, rewards, least)
    return train, test


def _test_file(settings: Settings) -> str:
    name = str(settings.get("dataset_test_split"))
    if Path(name).suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"dataset_test_split must be a file to evaluate on, as dataset_name is one, got {name!r}: pass "
            "--dataset_test_split FILE, or --eval_strategy no"
        )
    return name


def _from_file(name: str, settings: Settings, write: Callable[[str], object]) -> Dataset:
    rows, columns = read_records(name, "data")
    if not rows:
        raise ValueError(f"{name!r} must have at least one prompt, got none: write one row per prompt")
    if "prompt" not in columns and {"problem", "answer"} <= set(columns):
        return _prepared(name, settings, write)
    try:
        return Dataset.from_list([{column: row.get(column) for column in columns} for row in rows])
    except pa.ArrowException as error:
        raise ValueError(
            f"{name!r} must have values of one type in each column, got a mixture ({error}): write for example all "
            "prompts as text or all as messages"
        ) from None


def _prepared(source: str, settings: Settings, write: Callable[[str], object]) -> Dataset:
    """Problems and answers as prompts, as the paper made them."""
    tokenizer = _tokenizer(settings)
    chat = getattr(tokenizer, "chat_template", None) is not None
    prepared = prepare_math(source, tokenizer=tokenizer, prompt_format="chat" if chat else "text")
    write(f"{source}: {prepared.counts}")
    return prepared.dataset


def _tokenizer(settings: Settings) -> Any:
    name = settings.get("model_name_or_path")
    if name == "tiny":
        return build_tokenizer()
    return load_tokenizer(
        name, revision=settings.get("model_revision"), trust_remote_code=settings.get("trust_remote_code")
    )


@contextmanager
def model_must_load(name: str) -> Iterator[None]:
    """What the hub or a folder raises, as one line."""
    try:
        yield
    except OSError as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"model_name_or_path must be a folder with a model or a name that the hub serves, got {name!r} "
            f"({reason[:120]}): check the name and the network"
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
    for number, prompt in enumerate(data["prompt"], 1):
        if not is_prompt(prompt):
            raise ValueError(
                f"prompt in row {number} must be text or a list of messages with role and content, got "
                f"{check.shown(prompt)}: see TRL's dataset formats"
            )
    refuse_missing_columns(rewards, data[0])
    if len(data) < least:
        raise ValueError(
            f"the data must have at least the {least} prompts of one generation, got {len(data)}: lower "
            "steps_per_generation or per_device_train_batch_size, or add prompts"
        )
