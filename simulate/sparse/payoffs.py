"""What the rollouts of a group are worth: the rules of fgrpo.simulate.updates in numbers, outside the compiled loop."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.optimizers import Array
from fgrpo.simulate.updates import SUCCESS_ESTIMATES, WEIGHTS, weighted_group

FloatArray = NDArray[np.float64]

# estimates that the number of correct rollouts determines, so that a table over it can be made before the run
BY_SUCCESSES = ("empirical", "shrunk")
# above, a table would take longer than the few steps that a run of such groups can have
LARGEST_TABLE = 2**20


class Payoffs(NamedTuple):
    """Of a group with X correct rollouts, or one such number each.

    Attributes:
        weight: Its weight.
        of_correct: What a correct rollout adds to the coefficient of its action: weighted advantage or reward, over N.
        of_wrong: The same of a wrong rollout.
    """

    weight: Array
    of_correct: Array
    of_wrong: Array


def payoffs(config: RunConfig, empirical_success_rate: Array, success_rate: Array) -> Payoffs:
    """From X/N and the success estimate; floats or arrays alike."""
    weight = WEIGHTS[config.weight](success_rate, config)
    group = weighted_group(config, None, config.group_size, empirical_success_rate, weight)
    raw = config.update.surrogate == "linear_distinct"
    of_correct, of_wrong = group.rewards if raw else group.advantages
    return Payoffs(weight, of_correct / config.group_size, of_wrong / config.group_size)


def payoff_table(config: RunConfig) -> Payoffs | None:
    """Payoffs by X = 0 .. N, arrays of shape [N + 1]; None where they depend on more, or N is large."""
    if config.success_estimate not in BY_SUCCESSES or config.group_size > LARGEST_TABLE:
        return None
    rates = np.arange(config.group_size + 1) / config.group_size
    estimate = SUCCESS_ESTIMATES[config.success_estimate](config)
    return payoffs(config, rates, estimate(rates, np.nan))
