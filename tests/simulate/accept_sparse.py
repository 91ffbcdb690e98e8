"""Full-size comparison of the sparse engine with the reference engine by law; writes a JSON record.

Two-sample Kolmogorov-Smirnov tests of the final correct mass, retained mass and entropy, for N = 32, 512, 8192 and
gamma 0 and 1: 18 tests, each at 1e-4 / 18, so that engines with one law pass all but once in 10,000.

Run from the repository's root: python tests/simulate/accept_sparse.py --seeds 100 --out sparse_law.json
"""

import argparse
import datetime
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.stats

from fgrpo.simulate import RunConfig
from fgrpo.simulate.engine_reference import simulate
from fgrpo.simulate.sparse import simulate_sparse

LEVEL = 1e-4 / 18
MEASURES = ("correct_mass", "retained_mass", "entropy")


def compare(group_size, gamma, seeds):
    finals = {}
    # seeds of their own, though equal ones would not give equal draws
    for simulator, first in ((simulate, 0), (simulate_sparse, seeds)):
        runs = [simulator(RunConfig(group_size, gamma=gamma, seed=seed)) for seed in range(first, first + seeds)]
        finals[simulator] = {name: np.array([getattr(run, name)[-1] for run in runs]) for name in MEASURES}
    for name in MEASURES:
        reference, sparse = finals[simulate][name], finals[simulate_sparse][name]
        yield {
            "group_size": group_size,
            "gamma": gamma,
            "measure": name,
            "mean_reference": reference.mean(),
            "mean_sparse": sparse.mean(),
            "p_value": float(scipy.stats.ks_2samp(reference, sparse).pvalue),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--group-sizes", type=int, nargs="+", default=[32, 512, 8192])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    grid = [(group_size, gamma) for group_size in options.group_sizes for gamma in (0.0, 1.0)]
    tests = [one for group_size, gamma in grid for one in compare(group_size, gamma, options.seeds)]
    record = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in ("fgrpo", "numpy", "numba", "scipy")},
        "seeds": {"reference": [0, options.seeds - 1], "sparse": [options.seeds, 2 * options.seeds - 1]},
        "level": LEVEL,
        "passed": all(one["p_value"] > LEVEL for one in tests),
        "tests": tests,
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record, indent=2))
    raise SystemExit(0 if record["passed"] else 1)


if __name__ == "__main__":
    main()
