"""The reference engine: every action in every step, float64, one loop that reads like the method.

It reproduces the simulation of Appendix J (Figure 4 in v1, Figure 2 in v2):
1. softmax policy over `actions` actions, the start of PolicyConfig;
2. each step draws one group of N actions, rewards +1 and -1, and centres them on the group's mean;
3. all advantages of the group are multiplied by the focal weight of the group's own success rate;
4. the logits ascend a surrogate.
It deviates where the text leaves room: by default p_j / p_j^old stands for the p_j of the text, and Adam for its plain
ascent, since plain ascent on p_j moves nothing and the figure shows large moves. RunConfig.preset names other readings.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrpo.simulate._checks import whole_number
from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.metrics import GROUP_AVERAGES, GROUP_MEASURES, PolicyMeasures, group_metrics, group_statistics
from fgrpo.simulate.policy import initial_logits, read_logits, softmax
from fgrpo.simulate.sampling import DRAWS_AT_ONCE, sample_counts
from fgrpo.simulate.trajectory import Trajectory
from fgrpo.simulate.updates import OPTIMIZERS, SUCCESS_ESTIMATES, SURROGATES, WEIGHTS, weighted_group

ENGINE = "reference"

# numbers held at once at most, measured: per action, the arrays of the loop and the temporaries of the measures; per
# draw, those of the sampler
NUMBERS_PER_ACTION, NUMBERS_PER_DRAW = 20, 5


def bytes_needed(config: RunConfig) -> int:
    """Memory that the largest moment of a run takes, in bytes, about."""
    draws = min(config.group_size, DRAWS_AT_ONCE)
    return 8 * (NUMBERS_PER_ACTION * config.policy.actions + NUMBERS_PER_DRAW * draws)


def simulate(config: RunConfig, *, logits: Any = None, snapshots: Sequence[int] = ()) -> Trajectory:
    """Runs one configuration to its end.

    Bit for bit the same for the same configuration on the same machine and numpy, in any process.

    Args:
        config: The run. About 2 ms a step with the default policy and group sizes up to 16384, 6 ms at 131072.
        logits: A start of one's own in place of config.policy's: finite, shape [actions], the correct ones first.
        snapshots: Steps after which the whole policy is kept (0 for the start).

    Raises:
        ValueError: If the logits are not finite or not one per action, or a snapshot is not a step of the run.
    """
    policy, update, correct, group_size = config.policy, config.update, config.policy.correct, config.group_size
    way_out = "pass steps of the run, 0 for its start"
    kept = [whole_number("a snapshot", step, way_out, minimum=0, maximum=config.steps) for step in snapshots]
    rng = np.random.Generator(np.random.PCG64(config.stream_key))
    start = initial_logits(policy) if logits is None else read_logits(logits, policy)
    surrogate = SURROGATES[update.surrogate]
    optimizer = OPTIMIZERS[update.optimizer](update, lambda: np.zeros(policy.actions))
    estimate_success = SUCCESS_ESTIMATES[config.success_estimate](config)

    given, logits = logits, start.copy()
    # allocated once: fresh pages for arrays of this size cost more than the arithmetic on them
    probabilities, cumulative, gradient, before = (np.empty_like(logits) for _ in range(4))
    measure = PolicyMeasures(start, correct)
    groups: list[tuple[bool, float, int]] = []  # since the last record
    none_yet = dict.fromkeys((*GROUP_AVERAGES, *GROUP_MEASURES), np.nan)
    records = [{**measure(logits), **none_yet}]
    policies = {0: softmax(logits)} if 0 in kept else {}
    recorded_steps = set(config.recorded_steps)

    for step in range(1, config.steps + 1):
        softmax(logits, out=probabilities)
        counts = sample_counts(probabilities, group_size, rng, cumulative)

        empirical_success_rate = int(counts[:correct].sum()) / group_size
        success_rate = estimate_success(empirical_success_rate, float(cumulative[correct - 1] / cumulative[-1]))
        weight = float(WEIGHTS[config.weight](success_rate, config))

        group = weighted_group(config, counts, group_size, empirical_success_rate, weight)
        surrogate(group, probabilities, gradient)
        np.copyto(before, logits)
        optimizer.ascend(logits, gradient)

        active = 0 < empirical_success_rate < 1
        groups.append((active, weight, int(np.count_nonzero(counts[:correct]))))
        if step in recorded_steps:
            moved = np.subtract(logits, before, out=before)
            of_group = group_metrics(group, active, policy.leaves, probabilities, moved)
            averaged = group_statistics(*np.array(groups, dtype=np.float64).T)
            records.append({**measure(logits), **averaged, **of_group})
            groups.clear()
        if step in kept:
            policies[step] = softmax(logits)
    columns: dict[str, Any] = {name: np.array([record[name] for record in records]) for name in records[0]}
    return Trajectory(
        config=config,
        engine=ENGINE,
        step=np.array(config.recorded_steps),
        **columns,
        start="policy" if given is None else "logits",
        snapshots=np.array([policies[step] for step in kept]) if kept else None,
    )
