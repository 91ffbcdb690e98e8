"""The folder of a run: what is in the way, what may be replaced, which checkpoint belongs to which configuration."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelerate import PartialState
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from fgrpo.llm.settings import Settings
from fgrpo.theory import _validation as check

RECORD = "fgrpo_run.json"
"""File with the settings of a run, in its folder and in each checkpoint; written last, so that one with it is whole."""
_REPLACED = ("checkpoint-*", "completions", "runs")
_FREE = frozenset(
    {
        *("disable_tqdm", "log_completions", "log_level", "log_on_each_node", "logging_first_step", "logging_steps"),
        *("logging_strategy", "num_completions_to_print", "output_dir", "project", "push_to_hub", "report_to"),
        *("resume_from_checkpoint", "run_name", "save_strategy", "save_steps", "save_total_limit"),
        *("vllm_gpu_memory_utilization", "vllm_server_host", "vllm_server_port"),
    }
)
"""Keys that may change when a run goes on: they do not change what a step does."""
_LENGTH = frozenset({"max_steps", "num_train_epochs"})
"""Keys that may change, too, where the learning rate of a step does not depend on the length of the run."""


class RunFolder:
    """The folder of a run and the settings that it is for.

    Args:
        settings: The settings; `output_dir` is the folder.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.path = Path(settings.get("output_dir") or "trainer_output")

    def refuse_leftovers(self, *, overwrite: bool) -> None:
        """Raise unless the folder is empty or absent, or is a run that may be replaced.

        Raises:
            ValueError: If there is anything in it; with `overwrite`, anything but a run of this command.
        """
        file = next((path for path in (self.path, *self.path.parents) if path.exists() and not path.is_dir()), None)
        if file is not None:
            raise ValueError(f"output_dir must be a folder, got the file {file}: choose another")
        found = sorted(path.name for path in self.path.iterdir()) if self.path.is_dir() else []
        if not found or (overwrite and RECORD in found) or self._has_not_begun(found):
            return
        listed = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
        if overwrite:
            raise ValueError(
                f"--overwrite replaces runs of this command only, got {self.path} with {listed}: choose another "
                "--output_dir"
            )
        raise ValueError(
            f"output_dir must be empty, got {self.path} with {listed}: pass --resume to go on, --overwrite to replace "
            "the run, or another --output_dir"
        )

    def _has_not_begun(self, found: list[str]) -> bool:
        """Whether all that is there is what a run leaves that failed before its first step."""
        tables = self.path / "completions"
        return set(found) - {RECORD} == {"completions"} and tables.is_dir() and not any(tables.iterdir())

    def latest_checkpoint(self) -> Path:
        """The latest whole checkpoint in the folder.

        Raises:
            ValueError: If there is none.
        """
        found = [path.parent for path in self.path.glob(f"checkpoint-*/{RECORD}")]
        if not found:
            raise ValueError(
                f"--resume needs a checkpoint of this command, got none in {self.path}: "
                "start anew with --overwrite in place of --resume"
            )
        return max(found, key=lambda path: int(path.name.rpartition("-")[2]))

    def refuse_other_settings(self, checkpoint: Path) -> None:
        """Raise if a checkpoint was made with other settings; one without a record is not compared.

        Raises:
            ValueError: One line with what differs, or that the record is damaged.
        """
        record = checkpoint / RECORD
        if not record.is_file():
            return
        differing = self._differences(_read_record(record))
        if differing:
            more = f" and {len(differing) - 4} more" if len(differing) > 4 else ""
            raise ValueError(
                f"{checkpoint} must be of this configuration, got {'; '.join(differing[:4])}{more}: pass the values of "
                "the checkpoint, or start anew with another --output_dir"
            )

    @property
    def length_is_free(self) -> bool:
        """Whether the learning rate of a step is the same however long the run is: a constant, after warm-up steps."""
        schedule, warm_up = (self.settings.get(key) for key in ("lr_scheduler_type", "warmup_steps"))
        return schedule == "constant" or (schedule == "constant_with_warmup" and not 0 < warm_up < 1)

    def _differences(self, there: Mapping[str, Any]) -> list[str]:
        here = self._record()
        old, new = there["settings"], here["settings"]
        differing = []
        for key in sorted((old.keys() | new.keys()) - _FREE - (_LENGTH if self.length_is_free else set())):
            before = old[key] if key in old else json.loads(json.dumps(self.settings.default(key)))
            now = new[key] if key in new else json.loads(json.dumps(self.settings.default(key)))
            if before != now:
                reason = f" (the {self.settings.get('lr_scheduler_type')} learning rate is for one length)"
                differing.append(
                    f"{key} {check.shown(before)} there and {check.shown(now)} here{reason if key in _LENGTH else ''}"
                )
        if there["world_size"] != here["world_size"]:
            differing.append(f"{there['world_size']} processes there and {here['world_size']} here")
        return differing

    def start(self, *, replace: bool) -> None:
        """Write the record, with `replace` after removing what an earlier run left.

        For one process, when everything is ready to train.
        """
        for path in [path for pattern in _REPLACED for path in self.path.glob(pattern)] if replace else []:
            shutil.rmtree(path)
            if not path.name.startswith("checkpoint"):
                path.mkdir()  # the trainer, which is built by now, has made it and counts on it
        self.path.mkdir(parents=True, exist_ok=True)
        self.write_record(self.path)

    def write_record(self, folder: Path) -> None:
        """Write the settings into a folder, in one go."""
        new = folder / f".{RECORD}"
        new.write_text(json.dumps(self._record(), indent=2) + "\n", encoding="utf-8")
        os.replace(new, folder / RECORD)

    def _record(self) -> dict[str, Any]:
        values = json.loads(json.dumps(dict(self.settings.values), default=str))
        return {"settings": values, "world_size": self.settings.world_size}


def _read_record(file: Path) -> dict[str, Any]:
    """What `write_record` wrote."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(record["settings"], dict) or not isinstance(record["world_size"], int):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{file} must be the settings of a run as they were written, got a damaged file: delete it to go on "
            "without a comparison of the settings, or start anew with another --output_dir"
        ) from None
    return dict(record)


class RecordCallback(TrainerCallback):
    """Writes the record into each checkpoint after everything else in it."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Write the record, on the main process, when all have written what is theirs."""
        PartialState().wait_for_everyone()
        if state.is_world_process_zero:
            self.folder.write_record(Path(args.output_dir or ".") / f"checkpoint-{state.global_step}")
