"""The torch engine: every action in every step, many runs at once, on a CPU or a CUDA GPU.

The law of fgrpo.simulate.engine_reference, with random numbers of its own, all state in float64. Update rules and
measures are the same functions; nothing in the loop over the steps waits for the device. On a CPU a run is bit for bit
the same alone and in any batch: all operations on it are along its own row, by one thread.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from fgrpo.simulate import updates
from fgrpo.simulate.config import RunConfig, UpdateConfig
from fgrpo.simulate.metrics import GROUP_AVERAGES, GROUP_MEASURES, PolicyMeasures, group_metrics, group_statistics
from fgrpo.simulate.policy import initial_logits
from fgrpo.simulate.sampling import DRAWS_AT_ONCE
from fgrpo.simulate.torch_draws import Sampler, step_keys
from fgrpo.simulate.trajectory import MEASURES, Trajectory
from fgrpo.simulate.updates import SUCCESS_ESTIMATES, SURROGATES, WEIGHTS, Estimator, weighted_group

ENGINE = "torch"

# numbers held at once at most, measured: per action, the arrays of the loop; per correct one, the temporaries of the
# measures; per draw, those of the sampler
NUMBERS_PER_ACTION, NUMBERS_PER_CORRECT, NUMBERS_PER_DRAW = 11, 13, 6
# actions or draws that a batch on a CPU should not exceed, for its arrays to stay in the cache
AT_ONCE = 2**17
# Powers of single numbers are computed in so many equal copies: torch's vectorised power and the one for the rest of an
# array differ in the last bit, and which one a number gets must not depend on the batch.
COPIES = 16
SMALLEST_DOUBLE = 5e-324


def bytes_needed(config: RunConfig) -> int:
    """Memory that the largest moment of one run takes, in bytes, about."""
    of_actions = NUMBERS_PER_ACTION * config.policy.actions + NUMBERS_PER_CORRECT * config.policy.correct
    return 8 * (of_actions + NUMBERS_PER_DRAW * min(config.group_size, DRAWS_AT_ONCE))


def torch_batches(configs: Sequence[RunConfig], device: str) -> list[list[RunConfig]]:
    """Runs that may share a batch, which differ in group size, gamma and seed only, as many as are best at once.

    Raises:
        ValueError: If a run does not fit in the memory of the GPU.
    """
    alike: dict[RunConfig, list[RunConfig]] = {}
    for config in configs:
        alike.setdefault(replace(config, group_size=1, gamma=0.0, seed=0), []).append(config)
    parts = []
    for runs in alike.values():
        runs.sort(key=lambda one: one.group_size)
        at_once = _runs_at_once(runs[-1], device)
        parts += [runs[first : first + at_once] for first in range(0, len(runs), at_once)]
    return parts


def _runs_at_once(largest: RunConfig, device: str) -> int:
    if device == "cpu":
        return max(1, AT_ONCE // max(largest.policy.actions, min(largest.group_size, DRAWS_AT_ONCE)))
    free, needed = torch.cuda.mem_get_info(device)[0], bytes_needed(largest)
    if needed > free:
        raise ValueError(
            f"a run must fit in the memory of the GPU, got one that needs {needed / 1e9:.3g} of {free / 1e9:.3g} GB: "
            "pass fewer actions, or device='cpu'"
        )
    return free // needed


def simulate_torch(configs: Sequence[RunConfig], *, device: str = "cpu") -> list[Trajectory]:
    """Runs many configurations, in batches; their trajectories in the order of the configurations.

    Args:
        configs: Any runs.
        device: "cpu", "cuda" or "cuda:<index>".

    Raises:
        ValueError: If a run does not fit in the memory of the GPU.
    """
    of: dict[RunConfig, Trajectory] = {}
    for batch in torch_batches(list(dict.fromkeys(configs)), device):
        of |= zip(batch, simulate_batch(batch, device), strict=True)
    return [of[config] for config in configs]


def simulate_batch(configs: list[RunConfig], device: str = "cpu") -> list[Trajectory]:
    """One batch of runs that differ in group size, gamma and seed only, sorted by group size."""
    with _one_thread(), torch.inference_mode():
        table = _measure(configs, torch.device(device)).cpu().numpy()
    name = device if device == "cpu" else f"{device} ({torch.cuda.get_device_name(device)})"
    step = torch.tensor(configs[0].recorded_steps).numpy()
    trajectories = []
    for run, config in enumerate(configs):
        columns: dict[str, Any] = {measure: table[:, column, run].copy() for column, measure in enumerate(MEASURES)}
        trajectories.append(Trajectory(config=config, engine=ENGINE, step=step.copy(), device=name, **columns))
    return trajectories


def _measure(configs: list[RunConfig], device: torch.device) -> Tensor:
    """The measures of a batch, shape [records, measures, runs], on the device."""
    first, policy, correct = configs[0], configs[0].policy, configs[0].policy.correct
    runs, recorded = len(configs), set(first.recorded_steps)

    def per_run(numbers: list[float], copies: int = 1) -> Tensor:
        return torch.tensor(numbers, dtype=torch.float64, device=device)[:, None].repeat(1, copies)

    # the run as the rules see it: what differs within the batch is a column of numbers
    group_size = per_run([one.group_size for one in configs])
    gamma = per_run([one.gamma for one in configs], COPIES)
    run: Any = SimpleNamespace(**{**vars(first), "gamma": gamma, "group_size": group_size})
    ones = per_run([1.0] * runs, COPIES)
    sampler = Sampler([one.group_size for one in configs], step_keys(configs, first.steps).to(device))

    logits = torch.from_numpy(initial_logits(policy)).to(device).repeat(runs, 1)
    measure = PolicyMeasures(logits, correct, torch)
    cumulative, gradient, counts, before = (torch.empty_like(logits) for _ in range(4))
    probabilities, of_correct = torch.softmax(logits, -1), counts[:, :correct]
    surrogate = SURROGATES[first.update.surrogate]
    optimizer = OPTIMIZERS[first.update.optimizer](first.update, lambda: torch.zeros_like(logits))
    estimate_success = ESTIMATES[first.success_estimate](run)

    table = torch.empty((len(first.recorded_steps), len(MEASURES), runs), dtype=torch.float64, device=device)
    of_groups: list[tuple[Tensor, ...]] = []  # since the last record: success rate, weight, different correct actions
    none_yet = dict.fromkeys((*GROUP_AVERAGES, *GROUP_MEASURES), table.new_full((runs,), torch.nan))
    _record(table[0], {**measure(logits, probabilities), **none_yet})
    records = 1

    for step in range(1, first.steps + 1):
        torch.cumsum(probabilities, -1, out=cumulative)
        sampler.add_group(counts.zero_(), cumulative)

        empirical_success_rate = of_correct.sum(-1, keepdim=True) / group_size
        correct_mass = cumulative[:, correct - 1 : correct] / cumulative[:, -1:]
        success_rate = estimate_success(empirical_success_rate, correct_mass)
        weight = WEIGHTS[first.weight](success_rate * ones, run)[:, :1]
        of_groups.append((empirical_success_rate, weight, of_correct.clip(max=1.0).sum(-1, keepdim=True)))

        group = weighted_group(first, counts, group_size, empirical_success_rate, weight)
        surrogate(group, probabilities, gradient)
        if step in recorded:
            before.copy_(logits)
        optimizer.ascend(logits, gradient)

        of_group = {}
        if step in recorded:
            moved, active = torch.sub(logits, before, out=before), _active(empirical_success_rate)[:, 0]
            of_group = group_metrics(group, active, policy.leaves, probabilities, moved, tail_miss_probability, torch)
        torch.softmax(logits, -1, out=probabilities)
        if step in recorded:
            _record(table[records], {**measure(logits, probabilities), **_averaged(of_groups), **of_group})
            records += 1
            of_groups.clear()
    return table


def _active(empirical_success_rate: Tensor) -> Tensor:
    return ((empirical_success_rate > 0) & (empirical_success_rate < 1)).double()


def _averaged(of_groups: list[tuple[Tensor, ...]]) -> dict[str, Tensor]:
    empirical_success_rate, weight, distinct_correct = (torch.cat(one, -1) for one in zip(*of_groups, strict=True))
    return group_statistics(_active(empirical_success_rate), weight, distinct_correct)


def _record(out: Tensor, measures: dict[str, Tensor]) -> None:
    torch.stack([measures[name] for name in MEASURES], out=out)


def tail_miss_probability(success_rate: Tensor, rare_mass: Tensor, group_size: Tensor, failure_rate: Tensor) -> Tensor:
    """Pr(B_tau) as `fgrpo.theory.tail_miss_probability` computes it with a failure rate, unchecked.

    Source: Lemma 3.1 (v1 and v2).
    """
    a, c = 1.0 - rare_mass, failure_rate
    b = torch.where(success_rate > 0.5, (0.5 - rare_mass) + (0.5 - c), success_rate - rare_mass).clip(min=0.0)
    small = (torch.minimum(b, c) / a.clip(min=SMALLEST_DOUBLE)).clip(max=0.5)
    log_small, log_large = small.clip(min=SMALLEST_DOUBLE).log(), (-small).log1p()
    m = group_size - 1.0
    active = -(small * (m * log_small).expm1() + (1.0 - small) * (m * log_large).expm1())
    return (group_size * (-rare_mass).log1p()).exp() * active


def _shrunk(run: Any) -> Estimator:
    """As `fgrpo.theory.success_estimates.shrunk_success_rate`, unchecked."""
    prior = run.prior_correct + run.prior_wrong
    return lambda rate, correct_mass: (run.group_size * rate + run.prior_correct) / (run.group_size + prior)


def _ema(run: Any) -> Estimator:
    """As `fgrpo.theory.success_estimates.ema_success_rate`, unchecked; the first group starts it."""
    average: Tensor | None = None

    def estimate(rate: Tensor, correct_mass: Tensor) -> Tensor:
        nonlocal average
        average = rate if average is None else (1.0 - run.ema_rate) * average + run.ema_rate * rate
        return average

    return estimate


# theory's checks would wait for the device
ESTIMATES = {**SUCCESS_ESTIMATES, "shrunk": _shrunk, "ema": _ema}


class FusedAdam:
    """As fgrpo.simulate.optimizers.Adam, in one pass over the actions."""

    def __init__(self, update: UpdateConfig, zeros: Callable[[], Tensor]) -> None:
        """Starts with zero moments; `zeros` makes them, in the shape of the logits."""
        self._update = update
        self._mean, self._mean_square = zeros(), zeros()
        self._steps = torch.zeros((), device=self._mean.device)

    def ascend(self, logits: Tensor, gradient: Tensor) -> None:
        """Moves `logits` in place by one step."""
        update = self._update
        adamw(
            [logits],
            [gradient],
            [self._mean],
            [self._mean_square],
            [],
            [self._steps],
            fused=True,
            amsgrad=False,
            maximize=True,
            lr=update.learning_rate,
            beta1=update.betas[0],
            beta2=update.betas[1],
            eps=update.eps,
            weight_decay=update.weight_decay,
        )


OPTIMIZERS = {**updates.OPTIMIZERS, "adam": FusedAdam}


@contextmanager
def _one_thread() -> Generator[None, None, None]:
    """Sums of several threads would depend on their number; and two cores gain nothing on arrays of this size."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
