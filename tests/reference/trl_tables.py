"""Tables of completions as TRL 1.16's GRPOTrainer writes them: its `_logs` of one generation, a table at each log."""

import json
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd


class TableLogger:
    """Keeps the rows of the latest generation in deques and writes them when told to log, as the trainer does."""

    def __init__(self, run: Path, generation_batch_size: int) -> None:
        self.folder = run / "completions"
        self.folder.mkdir(parents=True)
        self.size = generation_batch_size
        self.prompt: deque[Any] = deque(maxlen=self.size)
        self.completion: deque[Any] = deque(maxlen=self.size)
        self.rewards: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=self.size))
        self.extra: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=self.size))
        self.advantages: deque[float] = deque(maxlen=self.size)

    def generate(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        rewards: dict[str, list[float | None]],
        advantages: Sequence[float],
        extra: dict[str, list[Any]] | None = None,
    ) -> None:
        self.prompt.extend(prompts)
        self.completion.extend(completions)
        for name, values in rewards.items():  # a tensor: None has become nan
            self.rewards[name].extend(float("nan") if value is None else float(value) for value in values)
        for name, column in (extra or {}).items():
            self.extra[name].extend(column)
        self.advantages.extend(advantages)

    def log(self, step: int) -> Path:
        table = {
            "step": [step] * len(self.prompt),
            "prompt": list(self.prompt),
            "completion": list(self.completion),
            **self.rewards,
            **self.extra,
            "advantage": self.advantages,
        }
        file = self.folder / f"completions_{step:05d}.parquet"
        pd.DataFrame(table).to_parquet(file)
        return file

    def state(self, history: list[dict[str, Any]]) -> None:
        """The trainer_state.json of a checkpoint."""
        checkpoint = self.folder.parent / f"checkpoint-{history[-1]['step']}"
        checkpoint.mkdir()
        (checkpoint / "trainer_state.json").write_text(json.dumps({"log_history": history}), encoding="utf-8")


def group_advantages(rewards: list[float | None]) -> list[float]:
    """Advantages of one group: centred, over the sample standard deviation + 1e-4; 0 where there is no reward."""
    known = [reward for reward in rewards if reward is not None]
    if not known:
        return [0.0] * len(rewards)
    mean = sum(known) / len(known)
    deviation = (sum((reward - mean) ** 2 for reward in known) / max(len(known) - 1, 1)) ** 0.5
    return [0.0 if reward is None else (reward - mean) / (deviation + 1e-4) for reward in rewards]
