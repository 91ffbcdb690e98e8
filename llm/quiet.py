"""A terminal that shows what this package says, and nothing of the libraries under it."""

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import datasets
import transformers
from huggingface_hub.utils import logging as hub_logging


def remove_chatty(trainer: Any) -> None:
    """Take the progress bar and the printed logs from a trainer: this package writes lines of its own."""
    for callback in (transformers.PrinterCallback, transformers.ProgressCallback):
        trainer.remove_callback(callback)


@contextmanager
def quiet(write: Callable[[str], object]) -> Iterator[None]:
    """No progress bars, telemetry or advice from the libraries; warnings of this package in a line."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    verbosity = transformers.logging.get_verbosity()
    bars, transformer_bars = datasets.are_progress_bars_disabled(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity(logging.ERROR)
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    hub_verbosity = hub_logging.get_verbosity()
    hub_logging.set_verbosity(logging.ERROR)  # its retries

    def show(message: Any, category: Any, filename: str, *_: Any, **__: Any) -> None:
        write(f"warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module=r"fgrpo\.llm", category=UserWarning)
        warnings.showwarning = show
        try:
            yield
        finally:
            transformers.logging.set_verbosity(verbosity)
            hub_logging.set_verbosity(hub_verbosity)
            if transformer_bars:
                transformers.logging.enable_progress_bar()
            if not bars:
                datasets.enable_progress_bars()
