"""The trainer's tests ask no hub, send no telemetry, and take TRL's experimental trainers without a warning.

What needs transformers is imported where it is used: only then have these variables an effect on it.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of models this small, threads only wait for each other
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

SHORT = ["--per_device_train_batch_size", "24", "--num_generations", "6", "--logging_steps", "1", "--max_steps", "2"]


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model of little training."""
    from fgrpo.llm.tiny_world import pretraining

    return pretraining.base_model_folder(steps=60, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture
def run(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """`fgrpo train` in a folder of its own, from the base model of little training; returns the lines it wrote."""
    from fgrpo.llm.settings import read_settings
    from fgrpo.llm.tiny_world import pretraining
    from fgrpo.llm.train import train

    monkeypatch.setattr(pretraining, "base_model_folder", lambda announce: base)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, config: str = "tiny", **options: bool) -> list[str]:
        lines: list[str] = []
        train(read_settings(config, None, [*SHORT, *arguments]), write=lines.append, **options)
        return lines

    return call
