"""Training data: every step of the preparation, its counts and its order; faults are one line."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pytest

from fgrpo.llm.data import DEEPSCALER, SYSTEM_PROMPT, PreparationCounts, prepare_math, read_rows

LONG = "word " * 40
ROWS: list[dict[str, Any]] = [
    {"problem": "1 + 1 = ?", "answer": "2", "solution": "..."},
    {"problem": "half of 1", "answer": "1/2"},
    {"problem": LONG, "answer": "1"},
    {"problem": "root of 4", "answer": "2"},
    {"problem": "half of  1", "answer": " 1/2 "},  # the same, white space aside
    {"problem": "root  of 4\n", "answer": "-2"},  # another answer: both go
    {"problem": "no answer", "answer": None},
    {"problem": " ", "answer": "3"},
    {"problem": LONG, "answer": "2"},  # too long, before it could be in conflict
    {"problem": "2 + 1 = ?", "answer": 3},
]
KEPT = [("1 + 1 = ?", "2"), ("half of 1", "1/2"), ("half of  1", "1/2"), ("2 + 1 = ?", "3")]
COUNTS = PreparationCounts(read=10, incomplete=2, too_long=2, conflicting=2, kept=4, repeated=1)


class Words:
    """A tokenizer of words, whose chat template adds one token a message and one for the answer's start."""

    chat_template: str | None = "{{ messages }}"

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [0] * len(text.split())}

    def apply_chat_template(
        self, messages: Sequence[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool, return_dict: bool
    ) -> dict[str, list[int]]:
        assert tokenize
        assert add_generation_prompt
        assert return_dict
        return {"input_ids": [0] * (1 + sum(1 + len(message["content"].split()) for message in messages))}


def write(folder: Path, name: str, rows: Sequence[dict[str, Any]]) -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        pd.DataFrame(rows).astype({"answer": "string"}).to_parquet(path)
    else:
        text = json.dumps(rows) if path.suffix == ".json" else "".join(json.dumps(row) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["data.json", "data.jsonl", "data.parquet"])
def test_steps_counts_and_order(tmp_path: Path, name: str) -> None:
    prepared = prepare_math(write(tmp_path, name, ROWS), tokenizer=Words(), max_prompt_tokens=45)
    assert prepared.counts == COUNTS
    assert str(COUNTS) == "10 read, 2 incomplete, 2 too long, 2 conflicting, 4 kept, 1 repeated"
    assert prepared.dataset.column_names == ["prompt", "answer"]
    system = {"role": "system", "content": SYSTEM_PROMPT}
    assert [(row["prompt"][1]["content"], row["answer"]) for row in prepared.dataset] == KEPT
    assert all(
        row["prompt"] == [system, {"role": "user", "content": row["prompt"][1]["content"]}] for row in prepared.dataset
    )


def test_text_without_a_limit(tmp_path: Path) -> None:
    path = str(write(tmp_path, "data.jsonl", ROWS))
    prepared = prepare_math(path, max_prompt_tokens=None, prompt_format="text")
    assert prepared.dataset["prompt"][0] == f"{SYSTEM_PROMPT}\n\n1 + 1 = ?"
    # the two long rows now stand against each other
    assert prepared.counts == PreparationCounts(read=10, incomplete=2, too_long=0, conflicting=4, kept=4, repeated=1)
    plain = prepare_math(path, max_prompt_tokens=None, prompt_format="text", system_prompt=None)
    assert list(zip(plain.dataset["prompt"], plain.dataset["answer"], strict=True)) == KEPT
    bare = prepare_math(path, max_prompt_tokens=None, system_prompt=None)
    assert bare.dataset["prompt"][0] == [{"role": "user", "content": "1 + 1 = ?"}]


def test_limit_counts_the_prompt_as_the_model_sees_it(tmp_path: Path) -> None:
    path = write(tmp_path, "data.jsonl", ROWS[:1])
    system, problem = len(SYSTEM_PROMPT.split()), 5
    for prompt_format, tokens in (("text", system + problem), ("chat", system + problem + 3)):
        assert (
            prepare_math(path, tokenizer=Words(), max_prompt_tokens=tokens, prompt_format=prompt_format).counts.kept
            == 1
        )  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^data must have rows left after its preparation, got none of 1 in "):
            prepare_math(path, tokenizer=Words(), max_prompt_tokens=tokens - 1, prompt_format=prompt_format)  # type: ignore[arg-type]


def test_other_columns_and_csv(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("question,final,level\nq1,1,5\nq2,,5\n", encoding="utf-8")
    prepared = prepare_math(path, max_prompt_tokens=None, problem_column="question", answer_column="final")
    assert (prepared.counts.kept, prepared.counts.incomplete) == (1, 1)
    assert read_rows(path, ["level"]) == [{"level": "5"}, {"level": "5"}]


def refusal(call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(ValueError, match=r"must|needs") as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_faults(tmp_path: Path) -> None:
    path = write(tmp_path, "data.jsonl", ROWS)
    empty = write(tmp_path, "empty.json", [])
    assert "data must have the column 'question', got 'problem', 'answer', 'solution' in " in refusal(
        prepare_math, path, max_prompt_tokens=None, problem_column="question"
    )
    assert "data must have at least one row, got none in " in refusal(read_rows, empty, ["problem"])
    assert "data file must exist, got " in refusal(read_rows, tmp_path / "absent.jsonl", ["problem"])
    assert "data file must exist, got 'absent.parquet': " in refusal(read_rows, "absent.parquet", ["problem"])
    assert "data file must end in " in refusal(read_rows, Path("data.txt"), ["problem"])
    assert "data must be a file or a hub name OWNER/NAME, got 'a/b/c': " in refusal(read_rows, "a/b/c", ["problem"])
    assert "max_prompt_tokens = 1024 needs a tokenizer, got none: " in refusal(prepare_math, path)
    assert "prompt_format must be 'chat' or 'text', got 'xml': " in refusal(prepare_math, path, prompt_format="xml")
    bare = Words()
    bare.chat_template = None
    assert "needs a tokenizer with a chat template" in refusal(prepare_math, path, tokenizer=bare)


def test_hub_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def load(name: str, *, split: str) -> datasets.Dataset:
        asked.append((name, split))
        return datasets.Dataset.from_list([{"problem": "p", "answer": "1", "solution": "s"}])

    monkeypatch.setattr(datasets, "load_dataset", load)
    prepared = prepare_math(max_prompt_tokens=None, prompt_format="text", system_prompt=None)
    assert list(prepared.dataset) == [{"prompt": "p", "answer": "1"}]
    assert asked == [(DEEPSCALER, "train")]
    assert "must have the column 'x', got 'problem', 'answer', 'solution' in 'me/mine'" in refusal(
        read_rows, "me/mine", ["x"]
    )

    def fail(name: str, *, split: str) -> None:
        raise ConnectionError("Couldn't reach it\nat all")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    message = refusal(read_rows, "me/mine", ["problem"], split="test")
    assert (
        "data 'me/mine', split 'test', must load from the hub, got ConnectionError (Couldn't reach it at all): "
        in message
    )


def test_no_network_for_a_hub_name() -> None:
    code = f"from fgrpo.llm.data import read_rows; read_rows({DEEPSCALER!r}, ['problem'])"
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        f"ValueError: data '{DEEPSCALER}', split 'train', must load from the hub"
    )
