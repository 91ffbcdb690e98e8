"""One update of all rows: gradients of a group, then one sweep over the blocks that are awake.

Every optimizer here is the same sweep with other numbers. With M = sum_k beta1^k g and S = sqrt(sum_k beta2^k g^2), the
sums over past steps k steps ago, a logit moves by rate * M / (S + offset); rate and offset depend on the step alone.
S is kept and not its square: without a gradient it just shrinks by sqrt(beta2), and the sweep needs no root.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.config import UpdateConfig
from fgrpo.simulate.sparse._compile import compiled, inlined
from fgrpo.simulate.sparse.elementary import SMALL, exp, exp_small
from fgrpo.simulate.sparse.rows import (
    INITIAL,
    LANES,
    LOGIT,
    MASS,
    MOMENT,
    MULTIPLICITY,
    ROOT,
    STRIDE,
    WORKING,
    Extent,
    FloatArray,
    Rows,
    at,
    blocks_for,
    sum_masses,
)

# Moments below this are set to zero: far above the subnormal numbers, which slow every sweep, and far below what moves
# a logit.
NEGLIGIBLE = 1e-200
TINY = float(np.finfo(np.float64).tiny)
STEPS_BETWEEN_CHECKS = 16
LEAST_BETA1 = 0.1


class Rule(NamedTuple):
    """An update rule in numbers.

    Attributes:
        rate: Step of a logit per M / (S + offset), shape [>= steps].
        offset: Added to S, shape [>= steps].
        beta1: Discount of M from step to step.
        root_beta2: Discount of S, the root of that of its square.
        square: 1 if gradients enter S, 0 if S stays 0.
        keep: What decoupled weight decay leaves of a logit in a step, 1 without decay.
        through_softmax: Whether unsampled actions move too (surrogates in p), or exactly not (in p / p_old).
        distinct: Whether a rollout counts once however often it was drawn.
        future: See `future_of`.
        small_until: Last step in which masses are multiplied by e^move, see `small_until`.
    """

    rate: FloatArray
    offset: FloatArray
    beta1: float
    root_beta2: float
    square: float
    keep: float
    through_softmax: bool
    distinct: bool
    future: float
    small_until: int


class Schedule(NamedTuple):
    """What an optimizer makes of a rule: see Rule."""

    rate: FloatArray
    offset: FloatArray
    beta1: float
    root_beta2: float
    square: float


def adam(update: UpdateConfig, steps: NDArray[np.int64]) -> Schedule:
    """Adam with bias correction: m^ = (1 - beta1) / (1 - beta1^t) M and likewise for the second moment."""
    beta1, beta2 = update.betas
    first = (1.0 - beta1) / (1.0 - beta1**steps)
    root = np.sqrt((1.0 - beta2) / (1.0 - beta2**steps))
    return Schedule(update.learning_rate * first / root, update.eps / root, beta1, math.sqrt(beta2), 1.0)


def rmsprop(update: UpdateConfig, steps: NDArray[np.int64]) -> Schedule:
    """The gradient over the root of its uncorrected second moment, plus eps."""
    root = np.full(steps.size, math.sqrt(1.0 - update.betas[1]))
    return Schedule(update.learning_rate / root, update.eps / root, 0.0, math.sqrt(update.betas[1]), 1.0)


def signsgd(update: UpdateConfig, steps: NDArray[np.int64]) -> Schedule:
    """learning_rate * sign(gradient), as g / |g|; subnormal gradients do not count."""
    return Schedule(np.full(steps.size, update.learning_rate), np.full(steps.size, TINY), 0.0, 0.0, 1.0)


def sgd(update: UpdateConfig, steps: NDArray[np.int64]) -> Schedule:
    """learning_rate * gradient."""
    return Schedule(np.full(steps.size, update.learning_rate), np.ones(steps.size), 0.0, 1.0, 0.0)


SCHEDULES: dict[str, Callable[[UpdateConfig, NDArray[np.int64]], Schedule]] = {
    "adam": adam,
    "rmsprop": rmsprop,
    "signsgd": signsgd,
    "sgd": sgd,
}


class Surrogate(NamedTuple):
    """What a surrogate makes of a rule: see Rule."""

    through_softmax: bool
    distinct: bool


SURROGATES: dict[str, Surrogate] = {
    # (1/N) sum_j A_j p_j / p_j^old; gradient n_a A_a / N
    "importance_ratio": Surrogate(through_softmax=False, distinct=False),
    # (1/N) sum_j A_j p_j; gradient p_a (c_a - sum_b p_b c_b) with c_a = n_a A_a / N
    "linear": Surrogate(through_softmax=True, distinct=False),
    # (1/N) sum of R_a p_a over the distinct actions drawn, Eq 7 in v1, Eq 5 in v2; c_a = R_a / N for drawn actions
    "linear_distinct": Surrogate(through_softmax=True, distinct=True),
}


def future_of(schedule: Schedule, surrogate: Surrogate, keep: float) -> float:
    """All that a row without gradients will still move, over its next move: g = 1 / (1 - r), r = beta1 / sqrt(beta2).

    Each move is at most r times the one before, but for the bias correction of Adam's second moment, which lets that of
    step t + j be sqrt(1 + j / t) <= 1 + j / 2t times as large. With d the next move by this step's bias correction, the
    sum is hence at most sum_j d r^(j-1) (1 + j / 2t) = d (g + g^2 / 2t). Infinite where every row moves in every step,
    or moves need not shrink.
    """
    if surrogate.through_softmax or keep != 1.0 or schedule.beta1 >= schedule.root_beta2:
        return math.inf
    return 1.0 / (1.0 - schedule.beta1 / schedule.root_beta2)


def small_until(schedule: Schedule, surrogate: Surrogate, keep: float, farthest: float) -> int:
    """The last step, at the end of a period between checks, up to which none moves a logit by more than SMALL.

    Whatever the gradients: by Cauchy and Schwarz, M <= S / sqrt(1 - beta1^2 / beta2). For a small beta1, whose inverse
    powers would magnify too much (see `pending`), there is none. Decay takes its part of a logit, which no more than
    all moves together can have carried beyond the `farthest` one of the start; without the softmax, `sweep` has no
    decay in its short form.
    """
    has_form = keep == 1.0 or (surrogate.through_softmax and 0.0 <= keep < 1.0)
    if not has_form or schedule.square == 0.0 or not LEAST_BETA1 <= schedule.beta1 < schedule.root_beta2:
        return 0
    ratio = schedule.beta1 / schedule.root_beta2
    moves = schedule.rate / math.sqrt(1.0 - ratio**2)
    large = np.flatnonzero(moves + (1.0 - keep) * (farthest + np.cumsum(moves)) > SMALL)
    small = int(large[0]) if large.size else schedule.rate.size
    return small // STEPS_BETWEEN_CHECKS * STEPS_BETWEEN_CHECKS


def rule_of(update: UpdateConfig, steps: int, farthest: float = 0.0) -> Rule:
    """The numbers of an update rule for a run of `steps` steps from logits between -farthest and farthest."""
    surrogate = SURROGATES[update.surrogate]
    # to the end of the last period between checks, so that a longer run is the same up to there
    periods = -(-steps // STEPS_BETWEEN_CHECKS)
    schedule = SCHEDULES[update.optimizer](update, np.arange(1, periods * STEPS_BETWEEN_CHECKS + 1))
    keep = 1.0 - update.learning_rate * update.weight_decay
    outlook = future_of(schedule, surrogate, keep), small_until(schedule, surrogate, keep, farthest)
    return Rule(*schedule, keep, *surrogate, *outlook)


@compiled
def pending(rule: Rule, step: int) -> int:
    """Discounts that the stored moments of blocks awake still lack before the gradient of `step`.

    Where steps are small and most rows have no gradient, moments are discounted in every STEPS_BETWEEN_CHECKS-th step
    only; until then gradients enter magnified, and the sweep need not write moments.
    """
    return (step - 1) % STEPS_BETWEEN_CHECKS if step <= rule.small_until and not rule.through_softmax else 0


@compiled
def as_stored(rule: Rule, step: int) -> tuple[float, float]:
    """Rate and offset of `step` for moments as they are stored: the same quotient."""
    late = pending(rule, step)
    rate: float = rule.rate[step - 1] * (rule.beta1 / rule.root_beta2) ** late if late else rule.rate[step - 1]
    offset: float = rule.offset[step - 1] / rule.root_beta2**late
    return rate, offset


@compiled
def settle(rows: Rows, extent: Extent, grown: Extent, shift: float) -> None:
    """Has the drawn actions that had none yet take the rows of their own that `grown` has beyond `extent`."""
    for row in range(extent.correct, grown.correct):
        _leave_class(rows, row, shift)
    for row in range(extent.end, grown.end):
        _leave_class(rows, row, shift)


@compiled
def _leave_class(rows: Rows, row: int, shift: float) -> None:
    values = rows.values
    here, old = at(row), at(rows.class_row[rows.origin[row]])
    values[here + LOGIT] = values[old + LOGIT]
    values[here + MOMENT] = values[old + MOMENT]
    values[here + ROOT] = values[old + ROOT]
    values[here + INITIAL] = values[old + INITIAL]
    values[here + MASS] = exp(values[old + LOGIT] - shift)
    values[here + MULTIPLICITY] = 1.0
    values[old + MULTIPLICITY] -= 1.0
    values[old + MASS] = values[old + MULTIPLICITY] * values[here + MASS]


@inlined
def grown(root: float, to_square: float, gradient: float) -> float:
    """The root of root^2 + to_square gradient^2; exact also where a square would underflow."""
    alone = math.sqrt(to_square) * abs(gradient)
    larger = alone if alone > root else root
    both = math.sqrt(root * root + to_square * (gradient * gradient))
    return both if both > larger else larger


@compiled
def add_gradients(
    rows: Rows, extent: Extent, found: int, total: float, rule: Rule, step: int, pair: tuple[float, float]
) -> float:
    """Adds the group's gradient in p / p_old, which is c_a, to the moments of the drawn rows.

    In p, where the gradient p_a (c_a - sum_b p_b c_b) moves all rows, it is left to `sweep_in_p`: c_a is in WORKING.
    `pair` is what a correct and a wrong rollout contribute to c: weighted advantage or reward, over N.

    Returns:
        sum_b p_b c_b in p, else 0.
    """
    values, times, drawn = rows.values, rows.times, rows.drawn
    of_correct, of_wrong = pair
    mean = 0.0
    to_moment = rule.beta1 ** -pending(rule, step)
    to_square = rule.square * rule.root_beta2 ** (-2 * pending(rule, step))
    for index in range(found):
        row = drawn[index]
        here = at(row)
        coefficient = of_correct if row < extent.first_wrong else of_wrong
        if not rule.distinct:
            coefficient *= times[row]
        if rule.through_softmax:
            values[here + WORKING] = coefficient
            mean += values[here + MASS] / total * coefficient
        else:
            values[here + MOMENT] += to_moment * coefficient
            values[here + ROOT] = grown(values[here + ROOT], to_square, coefficient)
    return mean


@inlined
def gradient_in_p(mass: float, actions: float, coefficient: float, mean: float, per_total: float) -> float:
    """p_a (c_a - sum_b p_b c_b) of each action of a row; one that holds none any more has no mass either."""
    probability = mass * per_total / (actions if actions > 1.0 else 1.0)
    return probability * (coefficient - mean)


@compiled
def add_gradients_in_p(rows: Rows, begin: int, end: int, total: float, mean: float, rule: Rule) -> None:
    """Does the first half of `sweep_in_p`: adds the gradients; no coefficients are left."""
    values = rows.values
    lanes, stride = np.uint64(LANES), np.uint64(STRIDE)
    moment, root, mass = np.uint64(MOMENT), np.uint64(ROOT), np.uint64(MASS)
    multiplicity, working = np.uint64(MULTIPLICITY), np.uint64(WORKING)
    per_total, square = 1.0 / total, rule.square
    for block in range(np.uint64(begin // LANES), np.uint64(blocks_for(end))):
        for lane in range(lanes):
            here = block * stride + lane
            c = values[here + working]
            g = gradient_in_p(values[here + mass], values[here + multiplicity], c, mean, per_total)
            values[here + working] = 0.0
            values[here + moment] += g
            values[here + root] = grown(values[here + root], square, g)


@compiled
def sweep_in_p(
    rows: Rows, begin: int, end: int, total: float, mean: float, rule: Rule, step: int, shift: float
) -> None:
    """As `add_gradients_in_p` and then `sweep`, in one pass."""
    values = rows.values
    rate, offset, keep, decay = rule.rate[step - 1], rule.offset[step - 1], rule.keep, rule.keep - 1.0
    beta1, root_beta2, square = rule.beta1, rule.root_beta2, rule.square
    by_steps = step <= rule.small_until and step % STEPS_BETWEEN_CHECKS != 0
    lanes, moment, root, mass = np.uint64(LANES), np.uint64(MOMENT), np.uint64(ROOT), np.uint64(MASS)
    multiplicity, working = np.uint64(MULTIPLICITY), np.uint64(WORKING)
    per_total = 1.0 / total
    for block in range(begin // LANES, blocks_for(end)):
        first = np.uint64(block * STRIDE)
        if by_steps:
            for lane in range(lanes):
                here = first + lane
                c = values[here + working]
                g = gradient_in_p(values[here + mass], values[here + multiplicity], c, mean, per_total)
                values[here + working] = 0.0
                m, s = values[here + moment] + g, grown(values[here + root], square, g)
                move = values[here] * decay + rate * m / (s + offset)
                values[here] += move
                values[here + mass] *= exp_small(move)
                m *= beta1
                s *= root_beta2
                values[here + moment] = m if abs(m) > NEGLIGIBLE else 0.0
                values[here + root] = s if s > NEGLIGIBLE else 0.0
        else:
            for lane in range(lanes):
                here = first + lane
                c = values[here + working]
                g = gradient_in_p(values[here + mass], values[here + multiplicity], c, mean, per_total)
                values[here + working] = 0.0
                m, s = values[here + moment] + g, grown(values[here + root], square, g)
                z = values[here] * keep + rate * m / (s + offset)
                values[here] = z
                values[here + mass] = values[here + multiplicity] * exp(z - shift)
                m *= beta1
                s *= root_beta2
                values[here + moment] = m if abs(m) > NEGLIGIBLE else 0.0
                values[here + root] = s if s > NEGLIGIBLE else 0.0
        sum_masses(rows, block)


@compiled
def sweep(rows: Rows, begin: int, end: int, rule: Rule, step: int, shift: float) -> None:
    """Moves the logits in the blocks of rows begin .. end - 1, computes their masses, and discounts their moments.

    Where steps are known to be small, masses are multiplied by e^step, and computed from the logits only in every
    STEPS_BETWEEN_CHECKS-th step, so that no more than so many roundings add up.
    """
    values = rows.values
    late = pending(rule, step)
    rate, offset = as_stored(rule, step)
    beta1, root_beta2, keep = rule.beta1 ** (late + 1), rule.root_beta2 ** (late + 1), rule.keep
    by_steps = step <= rule.small_until and step % STEPS_BETWEEN_CHECKS != 0
    lanes = np.uint64(LANES)
    moment, root, mass, multiplicity = np.uint64(MOMENT), np.uint64(ROOT), np.uint64(MASS), np.uint64(MULTIPLICITY)
    for block in range(begin // LANES, blocks_for(end)):
        # unsigned indices and no call that is not inlined: or these loops, where a run spends its time, are not
        # vectorised
        first = np.uint64(block * STRIDE)
        if by_steps:
            for lane in range(lanes):
                here = first + lane
                m, s = values[here + moment], values[here + root]
                move = rate * m / (s + offset)
                values[here] += move
                values[here + mass] *= exp_small(move)
        else:
            for lane in range(lanes):
                here = first + lane
                m, s = values[here + moment], values[here + root]
                z = values[here] * keep + rate * m / (s + offset)
                values[here] = z
                values[here + mass] = values[here + multiplicity] * exp(z - shift)
                m *= beta1
                s *= root_beta2
                values[here + moment] = m if abs(m) > NEGLIGIBLE else 0.0
                values[here + root] = s if s > NEGLIGIBLE else 0.0
        sum_masses(rows, block)
