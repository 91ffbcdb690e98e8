"""The reference engine: every action in every step, float64, one loop that reads like the method.

It reproduces the simulation of Appendix J (Figure 4 in v1, Figure 2 in v2):
1. softmax policy over `actions` actions, the start of PolicyConfig;
2. each step draws one group of N actions, rewards +1 and -1, and centres them on the group's mean;
3. all advantages of the group are multiplied by the focal weight of the group's own success rate;
4. the logits ascend a surrogate.
It deviates where the text leaves room: by default p_j / p_j^old stands for the p_j of the text, and Adam for its plain
ascent, since plain ascent on p_j moves nothing and the figure shows large moves. RunConfig.preset names other readings.
"""

import numpy as np

from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.metrics import GroupStatistics, policy_metrics
from fgrpo.simulate.policy import initial_logits, softmax
from fgrpo.simulate.sampling import sample_counts
from fgrpo.simulate.trajectory import Trajectory
from fgrpo.simulate.updates import (
    ADVANTAGE_SCALES,
    OPTIMIZERS,
    SUCCESS_ESTIMATES,
    SURROGATES,
    WEIGHTS,
    Group,
    centred_advantages,
)

ENGINE = "reference"


def simulate(config: RunConfig) -> Trajectory:
    """Runs one configuration to its end.

    Bit for bit the same for the same configuration on the same machine and numpy, in any process.

    Args:
        config: The run. About 2 ms a step with the default policy and group sizes up to 16384, 6 ms at 131072.
    """
    policy, update, correct, group_size = config.policy, config.update, config.policy.correct, config.group_size
    rng = np.random.Generator(np.random.PCG64(config.stream_key))
    surrogate = SURROGATES[update.surrogate]
    optimizer = OPTIMIZERS[update.optimizer](update, policy.actions)
    estimate_success = SUCCESS_ESTIMATES[config.success_estimate](config)

    logits, start = initial_logits(policy), initial_logits(policy)
    # allocated once: fresh pages for arrays of this size cost more than the arithmetic on them
    probabilities, cumulative, gradient = (np.empty_like(logits) for _ in range(3))
    groups = GroupStatistics()
    records = [{"step": 0, **policy_metrics(logits, start, correct), **groups.take()}]

    for step in range(1, config.steps + 1):
        softmax(logits, out=probabilities)
        counts = sample_counts(probabilities, group_size, rng, cumulative)

        empirical_success_rate = int(counts[:correct].sum()) / group_size
        success_rate = estimate_success(empirical_success_rate, float(cumulative[correct - 1] / cumulative[-1]))
        weight = WEIGHTS[config.weight](success_rate, config)
        factor = weight / ADVANTAGE_SCALES[update.advantage_scale](update, empirical_success_rate)
        of_correct, of_wrong = centred_advantages(update, empirical_success_rate)

        group = Group(counts, correct, group_size, advantages=(of_correct * factor, of_wrong * factor))
        surrogate(group, probabilities, gradient)
        optimizer.ascend(logits, gradient)

        groups.add(0 < empirical_success_rate < 1, weight, int(np.count_nonzero(counts[:correct])))
        if step % config.record_every == 0 or step == config.steps:
            records.append({"step": step, **policy_metrics(logits, start, correct), **groups.take()})
    columns = {name: np.array([record[name] for record in records]) for name in records[0]}
    return Trajectory(config=config, engine=ENGINE, **columns)
