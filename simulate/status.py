"""How far the sweep in a results folder is, and what it has found; reads only, also while another process writes."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgrpo.simulate.config import RunConfig, UpdateConfig
from fgrpo.simulate.store import RUNS, load_plan, read_run
from fgrpo.simulate.summary import counted

if TYPE_CHECKING:
    import pandas as pd

_FINAL = ("retained_mass", "correct_mass")


@dataclass(frozen=True, eq=False)
class SweepStatus:
    """The sweep that was last asked for in a folder.

    Attributes:
        folder: The results folder.
        asked: Number of its runs.
        finished: Of them, those that are stored and whole.
        missing: Those that are not stored yet.
        damaged: Files of the others: stored, and not what was written.
        other_runs: Number of stored runs that this sweep did not ask for.
        engines: Number of finished runs by engine.
        devices: Likewise by device.
        versions: Likewise by the versions that computed them.
        final: Means of the final values over the seeds of the finished runs: a row for each setting, in the order of
            the sweep, with group_size, gamma, what else the sweep varies, seeds (their number), retained_mass and
            correct_mass.
    """

    folder: Path
    asked: int
    finished: int
    missing: list[RunConfig]
    damaged: list[Path]
    other_runs: int
    engines: dict[str, int]
    devices: dict[str, int]
    versions: dict[str, int]
    final: "pd.DataFrame"

    def to_dict(self) -> dict[str, Any]:
        """All as plain values for JSON; the missing runs by their id."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return values | {
            "folder": str(self.folder),
            "missing": [config.run_id for config in self.missing],
            "damaged": [str(path) for path in self.damaged],
            "final": self.final.to_dict("records"),
        }

    def __str__(self) -> str:
        """Some lines for a reader."""
        lines = [
            f"{self.folder}: {self.finished} of {counted(self.asked, 'run')} finished, {len(self.missing)} missing"
        ]
        if self.other_runs:
            lines.append(f"stored runs that belong to other sweeps: {self.other_runs}")
        for name in ("engines", "devices", "versions"):
            counts = getattr(self, name)
            if counts:
                lines.append(f"{name}: {'; '.join(f'{one} ({runs})' for one, runs in counts.items())}")
        for path in self.damaged:
            lines.append(f"damaged: {path}: delete it and run the sweep again")
        if self.finished:
            lines += ["", self.final.to_string(index=False, float_format="{:.4g}".format)]
        return "\n".join(lines)


def sweep_status(folder: str | os.PathLike[str]) -> SweepStatus:
    """Reads every run of the sweep that was last asked for in a folder, and takes no lock.

    Raises:
        ValueError: If no sweep was started there, or its plan is damaged or of another schema or version.
    """
    plan, root = load_plan(folder), Path(folder)
    stored = {path.stem: path for path in (root / RUNS).glob("*.parquet")}
    found: dict[RunConfig, dict[str, float]] = {}
    missing, damaged = [], []
    engines, devices, versions = (Counter[str]() for _ in range(3))
    for config in plan:
        path = stored.pop(config.run_id, None)
        if path is None:
            missing.append(config)
            continue
        try:
            frame = read_run(path, config)
        except ValueError:
            damaged.append(path)
            continue
        last = frame.iloc[-1]
        found[config] = {name: float(last[name]) for name in _FINAL}
        engines[last["engine"]] += 1
        devices[last["device"]] += 1
        versions[f"fgrpo {last['fgrpo_version']}, numpy {last['numpy_version']}"] += 1
    return SweepStatus(
        folder=root,
        asked=len(plan),
        finished=len(found),
        missing=missing,
        damaged=damaged,
        other_runs=len(stored),
        engines=dict(engines),
        devices=dict(devices),
        versions=dict(versions),
        final=_final_table(plan, found),
    )


def _final_table(plan: list[RunConfig], found: dict[RunConfig, dict[str, float]]) -> "pd.DataFrame":
    import pandas as pd

    labels = _labels(plan)
    of_setting: dict[RunConfig, list[dict[str, float]]] = {}
    for config, values in found.items():
        of_setting.setdefault(replace(config, seed=0), []).append(values)
    rows = []
    for setting, runs in of_setting.items():
        flat, seeds = _flat(setting), len(runs)
        means = {name: sum(final[name] for final in runs) / seeds for name in _FINAL}
        rows.append({**{name: flat[name] for name in labels}, "seeds": seeds, **means})
    return pd.DataFrame(rows, columns=[*labels, "seeds", *_FINAL])


def _labels(plan: Iterable[RunConfig]) -> list[str]:
    """The group size, gamma, and the names of what else the plan varies; the reading in place of what it stands for."""
    flat = [_flat(config) for config in plan]
    varied = [name for name in flat[0] if len({str(one[name]) for one in flat}) > 1]
    named = all(one["reading"] != "custom" for one in flat)
    implied = {one.name for one in fields(UpdateConfig)} if named else {"reading"}
    return ["group_size", "gamma", *(name for name in varied if name not in implied | {"group_size", "gamma", "seed"})]


def _flat(config: RunConfig) -> dict[str, Any]:
    values: dict[str, Any] = {"reading": config.reading, **config.to_dict()}
    policy, update = values.pop("policy"), values.pop("update")
    return {**values, **policy, **update}
