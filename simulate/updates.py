"""One update of the policy: from the counts of a group, its advantages and its weight to the gradient of a surrogate.

The registries at the end are the only list of what a configuration may name. Notation: n_a is how often action a was
drawn in the group, A_a its advantage, R_a its reward, N the group size, p the policy that the group was drawn from.

Everything here is written with operators and in place, so that it serves numpy arrays of shape [actions] and torch
tensors of shape [runs, actions] alike; what is one number per run is a float for the former, of shape [runs, 1] for the
latter. 'Array' means either. fgrpo.simulate.optimizers goes on from the gradient to new logits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fgrpo.simulate.optimizers import SGD, Adam, Array, Optimizer, RMSprop, SignSGD
from fgrpo.theory.success_estimates import ema_success_rate, shrunk_success_rate
from fgrpo.theory.weights import constant_weight, focal_weight, hard_upweight, step_weight

if TYPE_CHECKING:
    from fgrpo.simulate.config import RunConfig, UpdateConfig


@dataclass(frozen=True)
class WeightedGroup:
    """One sampled group and what its rollouts are worth, the weight included.

    Attributes:
        counts: n_a, times each action was drawn, shape [actions].
        correct: Number of correct actions; they come first.
        group_size: N, the sum of `counts`.
        advantages: (of a correct rollout, of a wrong one), after scaling and weighting.
        rewards: (R_c, R_w), after weighting.
    """

    counts: Array
    correct: int
    group_size: Array
    advantages: tuple[Array, Array]
    rewards: tuple[Array, Array]


def centred_advantages(update: "UpdateConfig", empirical_success_rate: Array) -> tuple[Array, Array]:
    """Reward minus the group's mean reward, for a correct and for a wrong rollout.

    Exactly 0 for the class that a homogeneous group consists of.

    Source: Appendix J, r~ (v1 and v2).
    """
    difference = update.reward_correct - update.reward_wrong
    return difference * (1.0 - empirical_success_rate), -difference * empirical_success_rate


def weighted_group(
    config: "RunConfig", counts: Array, group_size: Array, empirical_success_rate: Array, weight: Array
) -> WeightedGroup:
    """The group with its advantages, centred, scaled and weighted, and with its weighted rewards."""
    update = config.update
    factor = weight / ADVANTAGE_SCALES[update.advantage_scale](update, empirical_success_rate)
    of_correct, of_wrong = centred_advantages(update, empirical_success_rate)
    advantages = of_correct * factor, of_wrong * factor
    rewards = update.reward_correct * weight, update.reward_wrong * weight
    return WeightedGroup(counts, config.policy.correct, group_size, advantages, rewards)


def importance_ratio(group: WeightedGroup, probabilities: Array, out: Array) -> None:
    """Writes the logit gradient of (1/N) sum_j A_j p_j / p_j^old at p = p^old into `out`: n_a A_a / N.

    The advantages of a group sum to zero, so the softmax term -p_a sum_b n_b A_b / N vanishes. It is left out and not
    computed: unsampled actions must get exactly zero, and rounding noise would touch all of them.

    Source: this project (the ratio reading of Appendix J; GRPO's surrogate before clipping).
    """
    out[...] = group.counts
    _scale_by_kind(group, group.advantages, out)


def linear(group: WeightedGroup, probabilities: Array, out: Array) -> None:
    """Writes the logit gradient of (1/N) sum_j A_j p_j into `out`: p_a (n_a A_a / N - S~).

    S~ = sum_b p_b n_b A_b / N, so unsampled actions get -p_a S~. All-zero in a homogeneous group.

    Source: Appendix J (v1 and v2), as written.
    """
    importance_ratio(group, probabilities, out)
    _through_softmax(probabilities, out)


def linear_distinct(group: WeightedGroup, probabilities: Array, out: Array) -> None:
    """Writes the logit gradient of (1/N) sum of R_a p_a over the distinct sampled actions into `out`.

    That is p_a (R_a s_a - S_R) / N, with s_a = 1 for sampled actions and 0 for others, and S_R = sum_b s_b R_b p_b. Raw
    rewards, not advantages: it moves logits in homogeneous groups, too.

    Source: Eq 7 in v1, Eq 5 in v2.
    """
    out[...] = group.counts > 0
    _scale_by_kind(group, group.rewards, out)
    _through_softmax(probabilities, out)


def _scale_by_kind(group: WeightedGroup, values: tuple[Array, Array], out: Array) -> None:
    of_correct, of_wrong = values
    # by names: `out[part] *= x` would write the part once more, onto itself
    correct, wrong = out[..., : group.correct], out[..., group.correct :]
    correct *= of_correct / group.group_size
    wrong *= of_wrong / group.group_size


def _through_softmax(probabilities: Array, out: Array) -> None:
    """From d/dp to d/dz: v_a becomes p_a (v_a - sum_b p_b v_b)."""
    out -= (probabilities * out).sum(axis=-1, keepdims=True)
    out *= probabilities


def unscaled(update: "UpdateConfig", empirical_success_rate: Array) -> Array:
    """The divisor 1: advantages are centred rewards."""
    return 1.0


def standard_deviation(update: "UpdateConfig", empirical_success_rate: Array) -> Array:
    """The divisor D sqrt(mu^ (1 - mu^)) + scale_eps: the population standard deviation of the group's rewards.

    D = R_c - R_w, mu^ = X/N. In a homogeneous group it is scale_eps, and the centred rewards are exactly 0.

    Source: [shao2024deepseekmath] (GRPO); scale_eps keeps the division defined.
    """
    spread = (empirical_success_rate * (1.0 - empirical_success_rate)) ** 0.5
    return (update.reward_correct - update.reward_wrong) * spread + update.scale_eps


Estimator = Callable[[Array, Array], Array]


def empirical(config: "RunConfig") -> Estimator:
    """The estimate mu-hat = X/N of the sampled group itself, whatever the policy's correct mass.

    Source: section 4.1 (v1 and v2).
    """
    return lambda empirical_success_rate, correct_mass: empirical_success_rate


def population(config: "RunConfig") -> Estimator:
    """The success rate itself, which only a simulation knows: the policy's correct mass.

    Source: this project.
    """
    return lambda empirical_success_rate, correct_mass: correct_mass


def shrunk(config: "RunConfig") -> Estimator:
    """The posterior mean of the success rate given the group, under a Beta(prior_correct, prior_wrong) prior.

    Source: this project.
    """
    prior = {"alpha": config.prior_correct, "beta": config.prior_wrong}
    return lambda empirical_success_rate, correct_mass: shrunk_success_rate(
        empirical_success_rate, config.group_size, **prior
    )


def ema(config: "RunConfig") -> Estimator:
    """The exponential moving average of X/N over the groups so far, the newest included; the first group starts it.

    Source: this project.
    """
    average: Array = None

    def estimate(empirical_success_rate: Array, correct_mass: Array) -> Array:
        nonlocal average
        before = empirical_success_rate if average is None else average
        average = ema_success_rate(before, empirical_success_rate, config.ema_rate)
        return average

    return estimate


SURROGATES: dict[str, Callable[[WeightedGroup, Array, Array], None]] = {
    "importance_ratio": importance_ratio,
    "linear": linear,
    "linear_distinct": linear_distinct,
}
OPTIMIZERS: dict[str, Callable[["UpdateConfig", Callable[[], Array]], Optimizer]] = {
    "adam": Adam,
    "sgd": SGD,
    "signsgd": SignSGD,
    "rmsprop": RMSprop,
}
ADVANTAGE_SCALES: dict[str, Callable[["UpdateConfig", Array], Array]] = {
    "none": unscaled,
    "std": standard_deviation,
}
SUCCESS_ESTIMATES: dict[str, Callable[["RunConfig"], Estimator]] = {
    "empirical": empirical,
    "population": population,
    "shrunk": shrunk,
    "ema": ema,
}
# of the success estimate and the run, or anything else that has its fields as attributes
WEIGHTS: dict[str, Callable[[Array, Any], Array]] = {
    "focal": lambda success_rate, run: focal_weight(success_rate, run.gamma),
    "constant": lambda success_rate, run: constant_weight(success_rate, run.weight_scale),
    "hard_upweight": lambda success_rate, run: hard_upweight(success_rate, run.weight_alpha),
    "step": lambda success_rate, run: step_weight(success_rate, run.weight_threshold, above=run.weight_low),
}
