"""Made-up results of the simulator whose answer is known: straight lines from the start to given final values."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fgrpo.claims.evidence import DEFAULT_READING, OTHER_READINGS, Evidence
from fgrpo.simulate import PolicyConfig, RunConfig, simulate
from fgrpo.simulate.store import SWEEP, write_table

THREE_CLASSES = ("actions", "correct", "anchor_logit", "correct_logit", "wrong_logit")
SIZES = (2, 512, 131072)
RETAINED = {2: 0.99, 512: 0.03, 131072: 0.995}
GAINED = {2: 0.64, 512: 0.995, 131072: 0.99}


@cache
def config_columns() -> dict[str, Any]:
    """The columns that say what was run, but for what a sweep varies: of a real run in the paper's setting."""
    row = simulate(RunConfig.preset(DEFAULT_READING, group_size=2, steps=1)).to_frame().iloc[0]
    described = row[: row.index.get_loc("engine")]
    return described.drop(["run_id", "group_size", "gamma", "seed", "steps", "record_every"]).to_dict()


def made_up_runs(
    reading: str = DEFAULT_READING,
    steps: int = 1000,
    retained: Mapping[int, float] = RETAINED,
    correct: Mapping[int, float] = GAINED,
    entropy: float = 0.4,
    seeds: int = 2,
    policy: PolicyConfig = PolicyConfig(),  # noqa: B008  (frozen)
) -> pd.DataFrame:
    """Rows of runs that go on a straight line from the start to the given final values; gamma 1 keeps a bit more."""
    rows = []
    for group_size in retained:
        for gamma in (0.0, 1.0):
            for seed in range(seeds):
                for step in np.linspace(0, steps, 9).astype(int):
                    done = step / steps
                    kept = 1 + done * (retained[group_size] + 0.1 * gamma * (retained[group_size] < 0.5) - 1)
                    rows.append(
                        config_columns()
                        | {
                            "reading": reading,
                            "steps": steps,
                            "group_size": group_size,
                            "gamma": gamma,
                            "seed": seed,
                            "step": step,
                            "retained_mass": kept,
                            "correct_mass": 0.63008 + done * (correct[group_size] - 0.63008),
                            "entropy": entropy,
                            "fgrpo_version": "0",
                            "numpy_version": "2",
                            "engine": "reference",
                        }
                        | {name: getattr(policy, name) for name in THREE_CLASSES}
                    )
    return pd.DataFrame(rows)


def made_up_results(
    *others: pd.DataFrame,
    default: pd.DataFrame | None = None,
    long: pd.DataFrame | None = None,
    policy: PolicyConfig = PolicyConfig(),  # noqa: B008  (frozen)
) -> pd.DataFrame:
    """A table as `fgrpo reproduce` leaves it: the default reading, its longer runs, and the other readings."""
    collapsed = dict.fromkeys(SIZES, 0.02)
    readings = others or tuple(
        made_up_runs(name, retained=collapsed, entropy=10.5, policy=policy) for name in OTHER_READINGS
    )
    first = made_up_runs(policy=policy) if default is None else default
    later = made_up_runs(steps=4000, retained=dict.fromkeys(SIZES, 0.01), policy=policy) if long is None else long
    return pd.concat([first, later, *readings], ignore_index=True)


def made_up_evidence(policy: PolicyConfig = PolicyConfig()) -> Evidence:  # noqa: B008  (frozen)
    """Evidence from that table."""
    return Evidence(made_up_results(policy=policy), policy, 1000)


def store_results(results: pd.DataFrame, folder: Path) -> None:
    """Leaves a table in a folder as a finished sweep does."""
    write_table(pa.Table.from_pandas(results, preserve_index=False), folder / SWEEP)
