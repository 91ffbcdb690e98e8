"""Speed of `tail_miss_probability` as a ratio to the plain formula with three powers (target: within 2).

Run from the repository's root: python benchmarks/tail_miss.py
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from fgrpo.theory import tail_miss_probability
from fgrpo.theory._validation import FloatArray


def plain(success_rate: FloatArray, rare_mass: FloatArray, group_size: FloatArray) -> FloatArray:
    """Lemma 3.1 as it stands in the paper: fast, and without correct digits wherever the powers cancel."""
    return (1 - rare_mass) ** group_size - (success_rate - rare_mass) ** group_size - (1 - success_rate) ** group_size


def seconds(formula: Callable[..., FloatArray], *arguments: FloatArray) -> float:
    """Wall time of one evaluation."""
    start = time.perf_counter()
    formula(*arguments)
    return time.perf_counter() - start


def ratio(points: int, repeats: int, largest_group: float, seed: int = 0) -> float:
    """Median ratio of interleaved runs, so that a busy machine slows both alike; group sizes are log-uniform from 2."""
    rng = np.random.default_rng(seed)
    mu = rng.random(points)
    arguments = mu, mu * rng.random(points), np.floor(2.0 * (largest_group / 2.0) ** rng.random(points))
    pairs = [(seconds(tail_miss_probability, *arguments), seconds(plain, *arguments)) for _ in range(repeats)]
    return statistics.median(stable / naive for stable, naive in pairs)


def main() -> None:
    """Print the ratio for the group sizes of practice and for all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    for largest in (64, 131_072):
        value = ratio(options.points, options.repeats, largest)
        print(f"tail_miss_probability / plain formula, group sizes 2 to {largest}: {value:.2f}")


if __name__ == "__main__":
    main()
