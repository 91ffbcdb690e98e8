"""Speed of the sparse engine as a ratio to the naive baseline, in CPU time of one thread, compilation apart.

Targets: 200 times at N = 2, 80 at 32, 25 at 512, 8 at 8192, 15 at 131072, and 18 times for the paper's whole sweep.

Run from the repository's root: python benchmarks/simulator.py
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from naive import simulate_naively

from fgrpo.simulate import RunConfig, paper_sweep
from fgrpo.simulate.sparse import simulate_sparse

TARGETS = {2: 200, 32: 80, 512: 25, 8192: 8, 131_072: 15}
FIRST_RUN = """
import time
began = time.process_time()
from fgrpo.simulate import RunConfig
from fgrpo.simulate.sparse import simulate_sparse
imported = time.process_time()
simulate_sparse(RunConfig(2, steps=1))
print(f"{imported - began:.2f} {time.process_time() - imported:.2f}")
"""


def seconds(simulator: Callable[[RunConfig], object], config: RunConfig) -> float:
    """CPU time of one run."""
    began = time.thread_time()
    simulator(config)
    return time.thread_time() - began


def pairs(group_size: int, repeats: int, naive_steps: int, gamma: float) -> list[tuple[float, float]]:
    """Seconds a step (sparse, naive) of interleaved runs, so that a busy machine slows both alike.

    Whole runs of the sparse engine, whose steps differ in cost; the naive ones all cost the same.
    """
    measured = []
    for seed in range(repeats):
        sparse = seconds(simulate_sparse, RunConfig(group_size, gamma=gamma, seed=seed)) / 1000
        naive = seconds(simulate_naively, RunConfig(group_size, steps=naive_steps, seed=seed)) / naive_steps
        measured.append((sparse, naive))
    return measured


def ratios(repeats: int, naive_steps: int) -> None:
    """Prints the ratio at each target's group size."""
    for group_size, target in TARGETS.items():
        for gamma in (0.0, 1.0):
            measured = pairs(group_size, repeats, naive_steps, gamma)
            ratio = statistics.median(naive / sparse for sparse, naive in measured)
            sparse, naive = (1e6 * statistics.median(one) for one in zip(*measured, strict=True))
            print(
                f"N = {group_size:6d}, gamma = {gamma:.0f}: {ratio:6.1f} times (target {target}), "
                f"{sparse:7.1f} us a step against {naive:8.1f}"
            )


def sweep(naive_steps: int) -> None:
    """Prints the CPU time of the whole sweep, and of the naive one by its steps' mean cost."""
    configs = paper_sweep()
    ours = sum(seconds(simulate_sparse, config) for config in configs)
    by_size = {one.group_size: RunConfig(one.group_size, steps=naive_steps) for one in configs}
    theirs = sum(seconds(simulate_naively, one) / naive_steps for one in by_size.values())
    theirs *= sum(config.steps for config in configs) / len(by_size)
    print(f"sweep of {len(configs)} runs: {ours:.1f} s against {theirs:.0f} s, {theirs / ours:.1f} times (target 18)")


def first_run() -> None:
    """Prints the CPU time of import and first run with an empty and with a filled cache of machine code."""
    with tempfile.TemporaryDirectory() as cache:
        for state in ("empty", "filled"):
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            output = subprocess.run(
                [sys.executable, "-c", FIRST_RUN], env=environment, check=True, capture_output=True, text=True
            )
            imported, ran = output.stdout.split()
            print(f"{state} cache: import {imported} s, first run {ran} s")


def memory() -> None:
    """Prints the peak memory of this process after runs with ten million actions."""
    for group_size in (512, 1_000_000):
        config = RunConfig.preset("figure_matching", group_size=group_size, actions=10_000_000, steps=20)
        took = seconds(simulate_sparse, config) / config.steps
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"10^7 actions, N = {group_size}: {1e3 * took:.1f} ms a step, peak memory of the process {peak:.0f} MB")


def main() -> None:
    """Print all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--naive-steps", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(1)
    first_run()
    simulate_sparse(RunConfig(2, steps=1))
    ratios(options.repeats, options.naive_steps)
    sweep(options.naive_steps)
    memory()


if __name__ == "__main__":
    main()
