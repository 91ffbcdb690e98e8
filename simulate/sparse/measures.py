"""The measures of fgrpo.simulate.metrics that are of a policy, from rows instead of single actions."""

import math
from typing import NamedTuple

import numpy as np

from fgrpo.simulate.metrics import GROUP_MEASURES
from fgrpo.simulate.sparse._compile import compiled
from fgrpo.simulate.sparse.elementary import exp
from fgrpo.simulate.sparse.rows import (
    INITIAL,
    LANES,
    MASS,
    MULTIPLICITY,
    STRIDE,
    Extent,
    FloatArray,
    Rows,
    at,
    blocks_for,
    largest_logit,
)

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
    """What the measures compare a policy with: the start. Each row has its INITIAL weight.

    Attributes:
        to_probability: Probability of an action over its initial weight.
        per_sum: Its probability given a correct action over its initial weight.
        correct_mass: Q_pos of the start.
        correct: Number of correct actions.
    """

    to_probability: float
    per_sum: float
    correct_mass: float
    correct: float


@compiled
def origin_of(rows: Rows, extent: Extent, shift: float, total: float) -> Origin:
    """The start by the same operations as `record`, so that an unchanged policy is found to be exactly unchanged."""
    weight_sum, correct = 0.0, 0.0
    for row in range(extent.correct):
        multiplicity = rows.values[at(row) + MULTIPLICITY]
        weight_sum += multiplicity * rows.values[at(row) + INITIAL]
        correct += multiplicity
    to_probability = exp(largest_logit(rows, extent.correct) - shift) / total
    return Origin(to_probability, 1.0 / weight_sum, weight_sum * to_probability, correct)


@compiled
def _spread(rows: Rows, end: int, shift: float) -> float:
    """Sum of mass * (logit - shift)."""
    values, sums = rows.values, np.zeros(LANES)
    mass = np.uint64(MASS)
    for block in range(np.uint64(blocks_for(end))):
        for lane in range(np.uint64(LANES)):
            here = block * np.uint64(STRIDE) + lane
            sums[lane] += values[here + mass] * (values[here] - shift)
    result: float = sums.sum()
    return result


@compiled
def record(
    out: FloatArray, rows: Rows, extent: Extent, origin: Origin, shift: float, total: float, tally: Tally
) -> None:
    """Writes the measures of the policy, and of the groups since the last record, into out, shape [>= OF_POLICY]."""
    values, blocks = rows.values, np.uint64(blocks_for(extent.correct))
    stride, lanes = np.uint64(STRIDE), np.uint64(LANES)
    multiplicity, initial = np.uint64(MULTIPLICITY), np.uint64(INITIAL)
    # relative to the most probable correct action: the correct mass itself may have underflowed
    largest = largest_logit(rows, extent.correct)
    to_probability, to_probability_at_start = exp(largest - shift) / total, origin.to_probability
    weight = np.empty(blocks * lanes)
    # by lanes, and added up at the end: one sum after another would have to wait for each other. All in one array, so
    # that few addresses need be told apart
    sums, worst = np.zeros(4 * LANES), np.full(LANES, -np.inf)
    spread, lost, improved = np.uint64(LANES), np.uint64(2 * LANES), np.uint64(3 * LANES)
    for block in range(blocks):
        for lane in range(lanes):
            here = block * stride + lane
            z, number = values[here] - largest, values[here + multiplicity]
            one = exp(z)
            weight[block * lanes + lane] = one
            sums[lane] += number * one
            sums[spread + lane] += number * one * z
            drop = values[here + initial] * to_probability_at_start - one * to_probability
            sums[lost + lane] += number * (drop if drop > 0.0 else 0.0)
            sums[improved + lane] += number if drop < 0.0 else 0.0
            drop = drop if number > 0.0 else -np.inf
            worst[lane] = drop if drop > worst[lane] else worst[lane]
    weight_sum = sums[:LANES].sum()
    per_sum, per_sum_at_start, distances = 1.0 / weight_sum, origin.per_sum, np.zeros(LANES)
    for block in range(blocks):
        for lane in range(lanes):
            here = block * stride + lane
            apart = values[here + initial] * per_sum_at_start - weight[block * lanes + lane] * per_sum
            distances[lane] += values[here + multiplicity] * abs(apart)

    out[0] = weight_sum * to_probability
    out[1] = 1.0 - sums[2 * LANES : 3 * LANES].sum() / origin.correct_mass
    out[2] = math.log(total) - _spread(rows, extent.end, shift) / total
    out[3] = math.log(weight_sum) - sums[LANES : 2 * LANES].sum() / weight_sum
    out[4] = 1.0 - 0.5 * distances.sum()
    out[5] = sums[3 * LANES :].sum() / origin.correct
    out[6] = worst.max()
    out[7] = weight[rows.class_row[0]] * to_probability
    # 0 / 0 is NaN: nothing to average
    out[8] = tally.active / tally.groups
    out[9] = tally.weight / tally.active
    out[10] = tally.distinct_correct / tally.groups
