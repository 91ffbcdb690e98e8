"""The torch engine on a GPU: is it right, the same twice, free of waits, and how fast?

    python benchmarks/gpu.py                     the paper's 136 runs on the GPU
    python benchmarks/gpu.py --device cpu --quick    the same checks on a CPU, reduced

Prints one line of JSON. `bandwidth_share` relates the traffic of 40 bytes per action and step (what a float32 engine
would have to move at least) to the measured time; this engine keeps float64.
"""

import argparse
import json
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
import scipy.stats
import torch

from fgrpo.simulate import RunConfig, paper_sweep
from fgrpo.simulate.torch_engine import simulate_torch
from fgrpo.simulate.trajectory import MEASURES, Trajectory

BYTES_PER_ACTION_AND_STEP = 40
# over seeds, a right engine fails one of the comparisons with probability 3 * 1e-4 at most
FALSE_ALARM = 1e-4


def timed(configs: list[RunConfig], device: str) -> tuple[list[Trajectory], float]:
    """Trajectories, and seconds of wall time with the device idle before and after."""
    synchronize = torch.cuda.synchronize if device != "cpu" else lambda: None
    synchronize()
    began = time.perf_counter()
    trajectories = simulate_torch(configs, device=device)
    synchronize()
    return trajectories, time.perf_counter() - began


def agrees_with_cpu(device: str, seeds: int) -> dict[str, float]:
    """Kolmogorov-Smirnov p-values of the final measures of small runs, device against CPU, different seeds."""
    small = {"group_sizes": (128,), "gammas": (1.0,), "actions": 1280, "correct": 100, "steps": 100}
    ours = simulate_torch(paper_sweep(seeds=range(seeds), **small), device=device)
    theirs = simulate_torch(paper_sweep(seeds=range(seeds, 2 * seeds), **small), device="cpu")
    return {
        name: float(scipy.stats.ks_2samp(*([getattr(one, name)[-1] for one in part] for part in (ours, theirs))).pvalue)
        for name in ("correct_mass", "retained_mass", "entropy")
    }


def waits(device: str) -> int:
    """How often a batch waits for the GPU: as often for 40 steps as for 20 if the loop never does; the difference."""
    numbers = []
    for steps in (20, 20, 40):  # the first call loads kernels
        torch.cuda.set_sync_debug_mode("warn")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            simulate_torch(paper_sweep(group_sizes=(8, 512), seeds=(0,), steps=steps), device=device)
        torch.cuda.set_sync_debug_mode("default")
        numbers.append(len(caught))
    return numbers[2] - numbers[1]


def main() -> int:
    """Runs all checks; 0 if they passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="two group sizes and fewer steps")
    parser.add_argument("--bandwidth", type=float, help="of the device's memory, in bytes per second")
    arguments = parser.parse_args()
    device = arguments.device

    configs = paper_sweep(group_sizes=(8, 512), seeds=range(2), steps=50) if arguments.quick else paper_sweep()
    timed(paper_sweep(group_sizes=(8,), seeds=range(1), steps=5), device)  # kernels are loaded when first used
    first, seconds = timed(configs, device)
    second, again = timed(configs, device)
    same = all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
        for one, other in zip(first, second, strict=True)
        for name in MEASURES
    )
    traffic = BYTES_PER_ACTION_AND_STEP * sum(one.steps * one.policy.actions for one in configs)
    p_values = agrees_with_cpu(device, 50 if arguments.quick else 200)
    result = {
        "device": first[0].device,
        "versions": {name: version(name) for name in ("fgrpo", "torch", "numpy")},
        "runs": len(configs),
        "sweep_seconds": [round(seconds, 3), round(again, 3)],
        "bytes_per_second": traffic / min(seconds, again),
        "bandwidth_share": arguments.bandwidth and traffic / min(seconds, again) / arguments.bandwidth,
        "same_twice": same,
        "agrees_with_cpu": p_values,
        "waits_in_the_loop": 0 if device == "cpu" else waits(device),
    }
    print(json.dumps(result))
    return 0 if same and min(p_values.values()) > FALSE_ALARM and not result["waits_in_the_loop"] else 1


if __name__ == "__main__":
    sys.exit(main())
