"""What `fgrpo sweep run` was asked for: options, and a file behind them."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgrpo.simulate import RunConfig, sweep_grid
from fgrpo.simulate.grid import listed_values, read_grid
from fgrpo.simulate.summary import counted
from fgrpo.theory._validation import shown

if TYPE_CHECKING:
    import pandas as pd

SETTINGS = ("engine", "device", "out", "workers", "scheduler")


@dataclass(frozen=True)
class SweepRequest:
    """Runs, and how to compute them.

    Attributes:
        configs: The runs.
        out: Results folder.
        engine: See `fgrpo.simulate.run_sweep`, as the following two.
        device: Where.
        workers: Processes.
        scheduler: Address of a dask scheduler, or None.
    """

    configs: list[RunConfig]
    out: str | os.PathLike[str] = "results"
    engine: str = "auto"
    device: str | None = None
    workers: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        """Refuses what a file may hold in place of a text."""
        for name in ("engine", "device", "scheduler"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name} must be one name, got {shown(value)}: leave it out for the default")

    def computed_otherwise(self, results: "pd.DataFrame") -> int:
        """How many runs of a table are of another engine or kind of device than was asked for by name."""
        runs = results.drop_duplicates("run_id")
        other = runs["engine"].isin([]) if self.engine == "auto" else runs["engine"] != self.engine
        if self.device is not None:
            other |= runs["device"].str.split(r"[: ]", regex=True).str[0] != self.device.partition(":")[0]
        return int(other.sum())


def warn_of_no_gradient(configs: Iterable[RunConfig]) -> None:
    """One line on stderr if there are runs whose groups are of one rollout, of which every advantage is 0."""
    runs = list(configs)
    single = [run for run in runs if run.group_size == 1 and run.update.surrogate != "linear_distinct"]
    if single:
        print(
            f"fgrpo: warning: N = 1 in {len(single)} of {counted(len(runs), 'run')}: a group of one rollout has "
            "advantage 0 and so never a gradient, from N = 2 on there is one",
            file=sys.stderr,
        )


def sweep_request(
    options: Mapping[str, str | None],
    assignments: Sequence[str],
    seeds: int | None,
    settings: Mapping[str, Any],
    file: Path | None,
) -> SweepRequest:
    """Reads the options and the file; where both name something, the option counts.

    Args:
        options: Text of each option for a field, None where it is not given.
        assignments: Further fields as "field=values".
        seeds: Number of seeds, if given.
        settings: SETTINGS by name, None where not given.
        file: See `fgrpo.simulate.grid.read_grid`.

    Raises:
        ValueError: If a text cannot be read, a field is unknown, given twice or invalid, or no group size is given.
        OSError: If the file cannot be read.
    """
    given: dict[str, Any] = {} if seeds is None else {"seeds": seeds}
    given |= {
        option.removeprefix("--").replace("-", "_"): listed_values(option, text)
        for option, text in options.items()
        if text is not None
    }
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ValueError(f"--set must be FIELD=VALUES, got {shown(assignment)}: write for example eps=1e-8,1e-20")
        if name in given:
            raise ValueError(f"each field must be given once, got {name} twice: leave one of them out")
        given[name] = listed_values(f"--set {name}", text)
    fields, from_file = ({}, {}) if file is None else read_grid(file, SETTINGS)
    if {"seed", "seeds"} & {*given}:
        fields = {name: values for name, values in fields.items() if name not in ("seed", "seeds")}
    chosen = {name: value for name, value in settings.items() if value is not None}
    return SweepRequest(sweep_grid(**{**fields, **given}), **{**from_file, **chosen})
