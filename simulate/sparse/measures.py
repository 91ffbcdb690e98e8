"""The measures of fgrpo.simulate.metrics that are of a policy, from rows instead of single actions."""

import math
from typing import NamedTuple

import numpy as np

from fgrpo.simulate.metrics import GROUP_MEASURES
from fgrpo.simulate.sparse._compile import compiled, inlined
from fgrpo.simulate.sparse.elementary import exp
from fgrpo.simulate.sparse.rows import LANES, LOGIT, MASS, MULTIPLICITY, STRIDE, FloatArray, Rows, Start, at

# Columns of the table of records, in this order: those of `record`, then those of `record_group`
MEASURES = (
    *("correct_mass", "retained_mass", "entropy", "correct_entropy", "correct_overlap", "share_improved"),
    *("worst_drop", "anchor_mass", "active_share", "mean_weight", "distinct_correct"),
    *GROUP_MEASURES,
)
OF_POLICY = len(MEASURES) - len(GROUP_MEASURES)


class Tally(NamedTuple):
    """Sums over the groups since the last record."""

    groups: int
    active: int
    weight: float
    distinct_correct: int


class Origin(NamedTuple):
    """What the measures compare a policy with: the start, class by class.

    Attributes:
        probability: Of one action of the class, shape [classes].
        given_correct: The same given a correct action, 0 for wrong ones, shape [classes].
        correct_mass: Q_pos of the start.
        correct: Number of correct actions.
    """

    probability: FloatArray
    given_correct: FloatArray
    correct_mass: float
    correct: float


@compiled
def origin_of(start: Start, shift: float, total: float) -> Origin:
    """The start by the same operations as `record`, so that an unchanged policy is found to be exactly unchanged."""
    given_correct, multiplicity = np.zeros(start.logit.size), np.where(start.correct, start.multiplicity, 0.0)
    largest = np.max(start.logit[start.correct])
    for row in range(start.logit.size):
        if start.correct[row]:
            given_correct[row] = exp(start.logit[row] - largest)
    probability = given_correct * (exp(largest - shift) / total)
    given_correct *= 1.0 / (multiplicity * given_correct).sum()
    return Origin(probability, given_correct, (multiplicity * probability).sum(), multiplicity.sum())


@inlined
def spread_of_block(values: FloatArray, block: int, shift: float) -> float:
    """Sum of mass * (logit - shift) over a block, in two chains of additions that do not wait for each other."""
    begin, half = np.uint64(block * STRIDE), np.uint64(LANES // 2)
    mass, low, high = np.uint64(MASS), 0.0, 0.0
    for lane in range(half):
        here = begin + lane
        low += values[here + mass] * (values[here] - shift)
        high += values[here + half + mass] * (values[here + half] - shift)
    return low + high


@compiled
def record(out: FloatArray, rows: Rows, count: int, origin: Origin, shift: float, total: float, tally: Tally) -> None:
    """Writes the measures of the policy, and of the groups since the last record, into out, shape [>= OF_POLICY]."""
    values, class_of, correct_rows = rows.values, rows.origin, rows.drawn
    probability_at_start, given_at_start = origin.probability, origin.given_correct
    # `drawn` is free between steps: the correct rows that hold actions are listed in it
    number, largest, spread = 0, -np.inf, 0.0
    for block in range((count + LANES - 1) // LANES):
        spread += spread_of_block(values, block, shift)
    for row in rows.correct_rows[1 : rows.correct_rows[0] + 1]:
        if values[at(row) + MULTIPLICITY] > 0.0:
            largest = max(largest, values[at(row) + LOGIT])
            correct_rows[number] = row
            number += 1

    # relative to the most probable correct action: the correct mass itself may have underflowed
    weight, to_probability = np.empty(number), exp(largest - shift) / total
    for index in range(number):
        weight[index] = values[at(correct_rows[index]) + LOGIT] - largest
    # alone in its loop, which is hence vectorised
    for index in range(np.uint64(number)):
        weight[index] = exp(weight[index])
    correct_sum, correct_spread = 0.0, 0.0
    correct_mass, lost, improved, worst_drop = 0.0, 0.0, 0.0, -np.inf
    for index in range(number):
        row = correct_rows[index]
        here = at(row)
        multiplicity, z = values[here + MULTIPLICITY], values[here + LOGIT] - largest
        correct_sum += multiplicity * weight[index]
        correct_spread += multiplicity * weight[index] * z
        probability = weight[index] * to_probability
        drop = probability_at_start[class_of[row]] - probability
        correct_mass += multiplicity * probability
        lost += multiplicity * max(drop, 0.0)
        improved += multiplicity * (drop < 0.0)
        worst_drop = max(worst_drop, drop)
    distance, per_sum = 0.0, 1.0 / correct_sum
    for index in range(number):
        row = correct_rows[index]
        distance += values[at(row) + MULTIPLICITY] * abs(given_at_start[class_of[row]] - weight[index] * per_sum)

    out[0] = correct_mass
    out[1] = 1.0 - lost / origin.correct_mass
    out[2] = math.log(total) - spread / total
    out[3] = math.log(correct_sum) - correct_spread / correct_sum
    out[4] = 1.0 - 0.5 * distance
    out[5] = improved / origin.correct
    out[6] = worst_drop
    out[7] = weight[0] * to_probability
    # 0 / 0 is NaN: nothing to average
    out[8] = tally.active / tally.groups
    out[9] = tally.weight / tally.active
    out[10] = tally.distinct_correct / tally.groups
