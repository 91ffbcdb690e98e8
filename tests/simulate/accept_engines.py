"""An engine at full size against the reference engine, by law: a part of `make acceptance`.

Two-sample Kolmogorov-Smirnov tests of the final correct mass, retained mass and entropy after 1,000 steps of the
default run, for N = 32, 512 and 8192 and gamma 0 and 1, and chi-square tests of the rare tail by itself at a
concentrated policy. All tests of all engines together reject engines of one law with probability 1e-4 at most. A
sampler with a float32 cumulative sum must be rejected: by the first kind at N = 8192, by the second at that policy.

Run from the repository's root: python tests/simulate/accept_engines.py --engine torch --out law.json
"""

import argparse
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import scipy.stats
import torch

from fgrpo.simulate import PolicyConfig, RunConfig, engine_reference, simulate
from fgrpo.simulate.files import write_atomically
from fgrpo.simulate.policy import initial_logits, softmax
from fgrpo.simulate.sampling import sample_counts
from fgrpo.simulate.torch_draws import Sampler

# the literal references are beside the folder of this file
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from reference.simulation import goodness_of_fit, sample_counts_float32

FALSE_ALARM = 1e-4
# at most: 18 comparisons for each of two engines, and the tails of three samplers
LEVEL = FALSE_ALARM / 39
MEASURES = ("correct_mass", "retained_mass", "entropy")
GROUP_SIZES, GAMMAS, STEPS = (32, 512, 8192), (0.0, 1.0), 1000
# whose runs differ so much from the right ones that some are enough, and where
WRONG, WRONG_SEEDS, WRONG_SETTING = "float32", 20, (8192, 0.0)
# no two engines share seeds, though equal ones would not give equal draws
FIRST_SEED = {"reference": 0, "sparse": 1000, "torch": 2000, WRONG: 3000}
TAIL_DRAWS = 20_000_000

Finals = dict[str, list[float]]


def final(engine: str, config: RunConfig) -> tuple[float, ...]:
    """The measures after the last step of one run."""
    if engine == WRONG:
        engine_reference.sample_counts = wrong_counts
        trajectory = engine_reference.simulate(config)
    else:
        trajectory = simulate(config, engine=engine, device="cpu")
    return tuple(float(getattr(trajectory, name)[-1]) for name in MEASURES)


def wrong_counts(probabilities, group_size, rng, cumulative):
    """In place of the reference engine's sampler, which also leaves the cumulative sum."""
    np.cumsum(probabilities, out=cumulative)
    return sample_counts_float32(probabilities, group_size, rng)


def finals(engine: str, setting: tuple[int, float], seeds: int, workers: int, cache: Path | None) -> Finals:
    """The measures of `seeds` runs; runs that the cache has are not computed again."""
    group_size, gamma = setting
    path = cache and cache / f"{engine}_{group_size}_{gamma:g}.json"
    known: dict[str, list[float]] = json.loads(path.read_text()) if path and path.exists() else {}
    wanted = [str(FIRST_SEED[engine] + index) for index in range(seeds)]
    missing = [seed for seed in wanted if seed not in known]
    configs = [RunConfig(group_size, gamma=gamma, seed=int(seed), steps=STEPS, record_every=STEPS) for seed in missing]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for seed, values in zip(missing, pool.map(partial(final, engine), configs), strict=True):
            known[seed] = list(values)
            if path:
                write_atomically(path, json.dumps(known).encode())
    return {name: [known[seed][column] for seed in wanted] for column, name in enumerate(MEASURES)}


def compare(engine: str, setting: tuple[int, float], ours: Finals, reference: Finals) -> Iterable[dict[str, object]]:
    """One test for each measure."""
    for name in MEASURES:
        yield {
            "engine": engine,
            "group_size": setting[0],
            "gamma": setting[1],
            "measure": name,
            "mean": float(np.mean(ours[name])),
            "mean_of_reference": float(np.mean(reference[name])),
            "p_value": float(scipy.stats.ks_2samp(ours[name], reference[name]).pvalue),
        }


def tails() -> dict[str, float]:
    """p-values of the wrong actions by themselves, by sampler, at a late policy: their probabilities are below 3e-8."""
    policy = PolicyConfig()
    logits = initial_logits(policy)
    logits[policy.correct :] = np.linspace(-5, -8, policy.actions - policy.correct)
    probabilities = softmax(logits)
    counts = torch.zeros(1, policy.actions, dtype=torch.float64)
    Sampler([TAIL_DRAWS], torch.tensor([[1]])).add_group(counts, torch.from_numpy(probabilities).cumsum(0)[None])
    of_sampler = {
        "reference": sample_counts(probabilities, TAIL_DRAWS, np.random.default_rng(1)),
        "torch": counts[0].long().numpy(),
        WRONG: sample_counts_float32(probabilities, TAIL_DRAWS, np.random.default_rng(1)),
    }
    tail = slice(policy.correct, None)
    return {name: float(goodness_of_fit(one[tail], probabilities[tail])) for name, one in of_sampler.items()}


def judge(engine: str, seeds: int, workers: int, cache: Path | None) -> dict[str, object]:
    """All tests of one engine, and whether they came out as they must."""
    settings = [(group_size, gamma) for group_size in GROUP_SIZES for gamma in GAMMAS]
    reference = {setting: finals("reference", setting, seeds, workers, cache) for setting in settings}
    tests = [
        test
        for setting in settings
        for test in compare(engine, setting, finals(engine, setting, seeds, workers, cache), reference[setting])
    ]
    wrong = finals(WRONG, WRONG_SETTING, WRONG_SEEDS, workers, cache)
    rejections = list(compare(WRONG, WRONG_SETTING, wrong, reference[WRONG_SETTING]))
    of_tails = tails()
    wrong_tail = of_tails.pop(WRONG)
    return {
        "seeds": {name: [FIRST_SEED[name], FIRST_SEED[name] + seeds - 1] for name in ("reference", engine)},
        "false_alarm_rate_of_all_engines_together": FALSE_ALARM,
        "level_of_each_test": LEVEL,
        "failed": [test for test in tests if test["p_value"] <= LEVEL]
        + [f"tail of {name}" for name, p_value in of_tails.items() if p_value <= LEVEL],
        "float32_rejected": {
            "runs": min(test["p_value"] for test in rejections) <= LEVEL,
            "tail": wrong_tail <= LEVEL,
        },
        "tests": tests,
        "tails": of_tails,
        "float32": {"seeds": WRONG_SEEDS, "tests": rejections, "tail": wrong_tail},
    }


def main() -> int:
    """Runs the tests, writes their result, and returns 1 if one came out wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("sparse", "torch"), required=True)
    parser.add_argument("--seeds", type=int, default=100, help="runs of each engine and setting")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="folder for finished runs, of one state of the code")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.cache:
        options.cache.mkdir(parents=True, exist_ok=True)
    result = judge(options.engine, options.seeds, options.workers, options.cache)
    write_atomically(options.out, (json.dumps(result, indent=2) + "\n").encode())
    return 0 if not result["failed"] and all(result["float32_rejected"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
