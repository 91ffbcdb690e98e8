"""One line for each log entry: what a reader wants to see of a run while it goes on."""

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class FocalSummaryCallback(TrainerCallback):
    """Writes one line per log entry of a run with focal weights; entries without a generation are passed over.

    Args:
        write: What takes a line; `print` by default.
    """

    def __init__(self, write: Callable[[str], object] = print) -> None:
        self.write = write

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Write the line, on the main process only."""
        line = summary_line(state.global_step, logs or {})
        if line is not None and state.is_world_process_zero:
            self.write(line)


def summary_line(step: int, logs: dict[str, Any]) -> str | None:
    """The line for one log entry of training or evaluation, None if it says nothing of success rates."""
    prefix = "eval_" if "eval_focal/success_rate" in logs else ""

    def value(key: str) -> str:
        number = logs.get(f"{prefix}focal/{key}")
        return "-" if number is None else f"{number:.2f}"

    if f"{prefix}focal/success_rate" not in logs:
        return None
    parts = [
        f"{'eval ' if prefix else ''}step {step}",
        f"success {value('success_rate')}",
        f"all wrong {value('all_wrong_share')}",
        f"active {value('active_share')}",
        f"all right {value('all_right_share')}",
    ]
    if not prefix:
        parts.append(f"weight {value('mean_weight_given_active')}")
        parts.append(f"effective groups {value('effective_groups')}")
    return "  ".join(parts)
