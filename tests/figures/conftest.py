"""Made-up results of a sweep, shaped like the simulator's: final values measured there, smooth paths towards them."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from pandas import DataFrame, concat

from reference.simulated_results import config_columns

START_CORRECT_MASS = 0.63008

# group size: final correct and retained mass at gamma 0, the same at gamma 1, s.d. of the retained masses
FINAL = {
    2: (0.6324, 0.995, 0.6324, 0.995, 0.000, 0.000),
    4: (0.6392, 0.981, 0.6391, 0.981, 0.000, 0.000),
    8: (0.6519, 0.966, 0.6515, 0.966, 0.000, 0.000),
    16: (0.6719, 0.958, 0.6708, 0.959, 0.000, 0.000),
    32: (0.7029, 0.962, 0.6999, 0.965, 0.001, 0.001),
    64: (0.7673, 0.914, 0.7415, 0.970, 0.168, 0.005),
    128: (0.9835, 0.090, 0.9281, 0.377, 0.044, 0.248),
    256: (0.9934, 0.040, 0.9752, 0.146, 0.003, 0.013),
    512: (0.9954, 0.034, 0.9813, 0.124, 0.001, 0.005),
    1024: (0.9965, 0.033, 0.9849, 0.122, 0.001, 0.003),
    2048: (0.9975, 0.034, 0.9879, 0.128, 0.001, 0.003),
    4096: (0.9983, 0.037, 0.9906, 0.138, 0.001, 0.004),
    8192: (0.9989, 0.041, 0.9925, 0.162, 0.001, 0.011),
    16384: (0.9992, 0.051, 0.9768, 0.690, 0.003, 0.269),
    32768: (0.9992, 0.107, 0.9653, 0.994, 0.034, 0.000),
    65536: (0.9946, 0.787, 0.9687, 0.999, 0.248, 0.000),
    131072: (0.9935, 0.995, 0.9714, 1.000, 0.000, 0.000),
}


def _make_results(
    group_sizes: Iterable[int] = tuple(FINAL),
    gammas: Iterable[float] = (0.0, 1.0),
    seeds: int = 4,
    steps: int = 1000,
    record_every: int = 50,
) -> DataFrame:
    """One row per run and recorded step; beyond step 1000 the retained mass decays to .01."""
    step = np.arange(0, steps + 1, record_every)
    done = np.minimum(step / 1000, 1.0)
    late = np.maximum(step / 1000 - 1.0, 0.0)
    rows = []
    for size in group_sizes:
        for gamma in gammas:
            at = 2 if gamma else 0
            correct, retained, spread = FINAL[size][at], FINAL[size][at + 1], FINAL[size][5 if gamma else 4]
            for seed in range(seeds):
                noise = np.random.default_rng([size, int(gamma), seed]).normal(0.0, spread)
                end = np.clip(retained + noise, 0.0, 1.0)
                rows.append(
                    DataFrame(
                        {
                            "run_id": f"{size}-{gamma:g}-{seed}-{steps}",
                            "group_size": size,
                            "gamma": gamma,
                            "seed": seed,
                            "steps": steps,
                            "record_every": record_every,
                            **config_columns(),
                            "step": step,
                            "correct_mass": START_CORRECT_MASS
                            + (correct - START_CORRECT_MASS) * np.sin(np.pi / 2 * done),
                            "retained_mass": 0.01 + (1 - (1 - end) * done**3 - 0.01) * np.exp(-2 * late),
                        }
                    )
                )
    return concat(rows, ignore_index=True)


@pytest.fixture(scope="session")
def results() -> DataFrame:
    """All group sizes of the paper's sweep, gamma 0 and 1, 4 seeds, 1000 steps."""
    return _make_results()


@pytest.fixture(scope="session")
def long_results() -> DataFrame:
    """The paper's four group sizes run on to step 4000."""
    return _make_results(group_sizes=(2, 256, 8192, 131072), seeds=2, steps=4000, record_every=100)


@pytest.fixture(scope="session")
def make_results() -> Callable[..., DataFrame]:
    """The generator itself, for reduced or longer sweeps."""
    return _make_results


@pytest.fixture(scope="session")
def with_long_results(results: DataFrame, long_results: DataFrame) -> DataFrame:
    """The sweep and its longer runs in one table."""
    return concat([results, long_results], ignore_index=True)
