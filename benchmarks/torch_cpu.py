"""Speed of the torch engine on a CPU as a ratio to the naive baseline, in CPU time of one thread, default metrics on.

Target: at least 1 at every group size, though the engine's state is float64 and the baseline's float32.

Run from the repository's root: python benchmarks/torch_cpu.py
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from naive import simulate_naively

from fgrpo.simulate import RunConfig
from fgrpo.simulate.torch_engine import simulate_torch


def seconds_a_step(simulator: Callable[[RunConfig], object], config: RunConfig) -> float:
    """CPU time of one run, by its steps."""
    began = time.thread_time()
    simulator(config)
    return (time.thread_time() - began) / config.steps


def main() -> None:
    """Print the ratios, medians of interleaved pairs, so that a busy machine slows both alike."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group-sizes", type=int, nargs="+", default=[2, 32, 512, 8192, 131_072])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    simulate_torch([RunConfig(2, steps=5)])
    for group_size in options.group_sizes:
        pairs = []
        for seed in range(options.repeats):
            config = RunConfig(group_size, steps=options.steps, seed=seed)
            ours = seconds_a_step(lambda config: simulate_torch([config]), config)
            pairs.append((ours, seconds_a_step(simulate_naively, config)))
        ratio = statistics.median(naive / ours for ours, naive in pairs)
        ours, naive = (1e3 * statistics.median(one) for one in zip(*pairs, strict=True))
        print(f"torch engine, N = {group_size:6d}: {ratio:4.2f} times (target 1), {ours:6.3f} ms against {naive:6.3f}")


if __name__ == "__main__":
    main()
