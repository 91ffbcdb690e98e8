"""One update of the policy: from the counts of a group to the gradient of a surrogate, and from there to new logits.

The registries at the end are the only list of what a configuration may name. Notation: n_a is how often action a was
drawn in the group, A_a its advantage, N the group size, p the policy that the group was drawn from.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from fgrpo.theory import focal_weight

if TYPE_CHECKING:
    from fgrpo.simulate.config import RunConfig, UpdateConfig

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """One sampled group and its advantages.

    Attributes:
        counts: n_a, times each action was drawn, shape [actions].
        correct: Number of correct actions; they come first.
        group_size: N, the sum of `counts`.
        advantages: (of a correct rollout, of a wrong one), after scaling and weighting.
    """

    counts: IntArray
    correct: int
    group_size: int
    advantages: tuple[float, float]


def centred_advantages(update: "UpdateConfig", empirical_success_rate: float) -> tuple[float, float]:
    """Reward minus the group's mean reward, for a correct and for a wrong rollout.

    Exactly 0 for the class that a homogeneous group consists of.

    Source: Appendix J, r~ (v1 and v2).
    """
    difference = update.reward_correct - update.reward_wrong
    return difference * (1.0 - empirical_success_rate), -difference * empirical_success_rate


def importance_ratio(group: Group, probabilities: FloatArray, out: FloatArray) -> None:
    """Writes the logit gradient of (1/N) sum_j A_j p_j / p_j^old at p = p^old into `out`: n_a A_a / N, shape [actions].

    The advantages of a group sum to zero, so the softmax term -p_a sum_b n_b A_b / N vanishes. It is left out and not
    computed: unsampled actions must get exactly zero, and rounding noise would touch all of them.

    Source: this project (the ratio reading of Appendix J; GRPO's surrogate before clipping).
    """
    of_correct, of_wrong = (advantage / group.group_size for advantage in group.advantages)
    np.multiply(group.counts[: group.correct], of_correct, out=out[: group.correct])
    np.multiply(group.counts[group.correct :], of_wrong, out=out[group.correct :])


def linear(group: Group, probabilities: FloatArray, out: FloatArray) -> None:
    """Writes the logit gradient of (1/N) sum_j A_j p_j into `out`: p_a (n_a A_a / N - S~), shape [actions].

    S~ = sum_b p_b n_b A_b / N, so unsampled actions get -p_a S~. All-zero in a homogeneous group.

    Source: Appendix J (v1 and v2), as written.
    """
    importance_ratio(group, probabilities, out)
    out -= (probabilities * out).sum()
    out *= probabilities


class Optimizer(Protocol):
    """Turns gradients into steps of the logits; holds what it remembers between steps."""

    def ascend(self, logits: FloatArray, gradient: FloatArray) -> None:
        """Moves `logits` in place, upwards along `gradient`; both have shape [actions]."""


class Adam:
    """Adam with bias correction and decoupled weight decay (AdamW), ascending, in place.

    z <- (1 - eta lambda) z + eta m^ / (sqrt(v^) + eps). An action that never had a gradient keeps its logit exactly
    when the weight decay is 0. A zero gradient still moves the others by their momentum.

    Source: Kingma and Ba 2015, Algorithm 1; Loshchilov and Hutter 2019, Algorithm 2.
    """

    def __init__(self, update: "UpdateConfig", actions: int) -> None:
        """Starts with zero moments, for `actions` logits."""
        self._update = update
        self._steps = 0
        # discounted sums of g and g^2: the moments m and v before their factors 1 - beta, which ascend() applies to
        # scalars; each pass over the actions counts
        self._sum = np.zeros(actions)
        self._square_sum = np.zeros(actions)
        self._scratch = np.empty(actions)

    def ascend(self, logits: FloatArray, gradient: FloatArray) -> None:
        """Moves `logits` in place by one step; both arrays have shape [actions]; `gradient` is used up."""
        update, scratch = self._update, self._scratch
        beta1, beta2 = update.betas
        self._steps += 1

        self._sum *= beta1
        self._sum += gradient
        self._square_sum *= beta2
        gradient *= gradient
        self._square_sum += gradient

        # m^ = first * sum and sqrt(v^) = root * sqrt(square_sum)
        first = (1.0 - beta1) / (1.0 - beta1**self._steps)
        root = math.sqrt((1.0 - beta2) / (1.0 - beta2**self._steps))
        np.sqrt(self._square_sum, out=scratch)
        scratch += update.eps / root
        np.divide(self._sum, scratch, out=scratch)
        scratch *= update.learning_rate * first / root
        if update.weight_decay:
            logits *= 1.0 - update.learning_rate * update.weight_decay
        logits += scratch


def unscaled(update: "UpdateConfig", empirical_success_rate: float) -> float:
    """The divisor 1: advantages are centred rewards."""
    return 1.0


Estimator = Callable[[float, float], float]


def empirical(config: "RunConfig") -> Estimator:
    """The estimate mu-hat = X/N of the sampled group itself, whatever the policy's correct mass.

    Source: section 4.1 (v1 and v2).
    """
    return lambda empirical_success_rate, correct_mass: empirical_success_rate


def focal(success_rate: float, config: "RunConfig") -> float:
    """The focal weight (1 - success_rate)^gamma, in [0, 1]; 1 for gamma = 0 at every success rate.

    Source: section 4.1 (v1 and v2).
    """
    return float(focal_weight(success_rate, config.gamma))


SURROGATES: dict[str, Callable[[Group, FloatArray, FloatArray], None]] = {
    "importance_ratio": importance_ratio,
    "linear": linear,
}
OPTIMIZERS: dict[str, Callable[["UpdateConfig", int], Optimizer]] = {"adam": Adam}
ADVANTAGE_SCALES: dict[str, Callable[["UpdateConfig", float], float]] = {"none": unscaled}
SUCCESS_ESTIMATES: dict[str, Callable[["RunConfig"], Estimator]] = {"empirical": empirical}
WEIGHTS: dict[str, Callable[[float, "RunConfig"], float]] = {"focal": focal}
