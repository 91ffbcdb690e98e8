"""The measures of fgrpo.simulate.metrics that are of one group, from rows instead of single actions."""

import numpy as np

from fgrpo.simulate.sparse._compile import compiled
from fgrpo.simulate.sparse.elementary import exp, expm1, log, log1m
from fgrpo.simulate.sparse.rows import (
    COEFFICIENT,
    LANES,
    MASS,
    MOMENT,
    MULTIPLICITY,
    NEVER,
    ROOT,
    STRIDE,
    FloatArray,
    Rows,
    Start,
    at,
)
from fgrpo.simulate.sparse.steps import TINY, Rule, as_stored

# a step so far above the mean step is taken as the origin of the others, since its exponential would overflow
FAR_ABOVE = 600.0
BELOW_ONE = 1.0 - 2.0**-53


@compiled
def record_group(
    out: FloatArray,
    rows: Rows,
    count: int,
    found: int,
    start: Start,
    rule: Rule,
    step: int,
    total: float,
    group_size: int,
    active: bool,
) -> None:
    """Writes the measures of a group and of the update by it into out, shape [GROUP_MEASURES].

    Between `add_gradients` and `sweep`: the rows still have the masses of the draw, and the moments of the update.
    """
    values, origin, times, drawn, leaf = rows.values, rows.origin, rows.times, rows.drawn, start.leaf
    # drawn actions that have no row of their own yet, for want of a gradient
    hidden = np.zeros(start.logit.size)
    drawn_leaves = 0
    for index in range(found):
        row = drawn[index]
        drawn_leaves += int(leaf[origin[row]])
        if row >= count:
            hidden[origin[row]] += 1.0

    _gains_into_coefficients(rows, count, rule, step, total)
    correct_mass, wrong_mass = 0.0, 0.0
    mass, gain, gain_of_wrong, gain_of_drawn = 0.0, 0.0, 0.0, 0.0
    number, of_leaves = 0, np.empty((2, count))
    for row in range(count):
        here, class_of = at(row), origin[row]
        row_mass, row_gain = values[here + MASS], values[here + COEFFICIENT]
        values[here + COEFFICIENT] = 0.0
        if not start.correct[class_of]:
            wrong_mass += row_mass
            gain_of_wrong += row_gain
            continue
        correct_mass += row_mass
        multiplicity = values[here + MULTIPLICITY]
        if leaf[class_of] and multiplicity > 0.0:
            of_leaves[0, number], of_leaves[1, number] = row_mass / multiplicity, multiplicity
            number += 1
        unsampled = 0.0 if times[row] > 0 else 1.0
        if row < hidden.size and hidden[row] > 0.0:
            unsampled = (multiplicity - hidden[row]) / multiplicity
        mass += row_mass * unsampled
        gain += row_gain * unsampled
        gain_of_drawn += row_gain * (1.0 - unsampled)

    leaves = (start.multiplicity * leaf).sum()
    # as fgrpo.simulate.metrics.mass_change, the rest by itself and not as a difference to the total
    rest = wrong_mass + (correct_mass - mass)
    gain_of_rest = gain_of_wrong + gain_of_drawn
    out[0] = (leaves - drawn_leaves) / leaves if active else 0.0
    out[1] = _mean_tail_miss(of_leaves[:, :number], correct_mass, wrong_mass, group_size) / leaves
    out[2] = mass / total
    out[3] = (rest * gain - mass * gain_of_rest) / ((mass + gain + rest + gain_of_rest) * total)


@compiled
def _gains_into_coefficients(rows: Rows, count: int, rule: Rule, step: int, total: float) -> None:
    """Mass * expm1(d) into each row's COEFFICIENT, d = what the sweep will add to its logit, less the mean of that."""
    values, asleep_since = rows.values, rows.asleep_since
    (rate, offset), decay = as_stored(rule, step), rule.keep - 1.0
    blocks, lanes = (count + LANES - 1) // LANES, np.uint64(LANES)
    moment, root, mass, coefficient = np.uint64(MOMENT), np.uint64(ROOT), np.uint64(MASS), np.uint64(COEFFICIENT)
    highest, weighted = 0.0, 0.0
    for block in range(blocks):
        if asleep_since[block] != NEVER:
            continue
        begin = np.uint64(block * STRIDE)
        for lane in range(lanes):
            here = begin + lane
            values[here + coefficient] = values[here] * decay + rate * values[here + moment] / (
                values[here + root] + offset
            )
        for lane in range(lanes):
            here = begin + lane
            highest = max(highest, values[here + coefficient] if values[here + mass] > 0.0 else 0.0)
            weighted += values[here + mass] * values[here + coefficient]
    mean = weighted / total
    centre = mean + max(highest - mean - FAR_ABOVE, 0.0)
    for block in range(blocks):
        begin = np.uint64(block * STRIDE)
        for lane in range(lanes):
            here = begin + lane
            values[here + coefficient] = values[here + mass] * expm1(values[here + coefficient] - centre)


@compiled
def _mean_tail_miss(of_leaves: FloatArray, correct_mass: float, wrong_mass: float, group_size: int) -> float:
    """Sum over the leaves of fgrpo.theory.tail_miss_probability, the same factored form: (1 - tau)^N h(N).

    `of_leaves` holds the mass of one leaf and their number, shape [2, rows].
    """
    total = correct_mass + wrong_mass
    n, mu, nu = float(group_size), correct_mass / total, wrong_mass / total
    result = np.empty(of_leaves.shape[1])
    for index in range(np.uint64(of_leaves.shape[1])):
        tau = min(of_leaves[0, index] / total, mu, BELOW_ONE)
        # u + w = 1; the logarithm of the larger one through the smaller
        u, w = max(mu - tau, 0.0) / (1.0 - tau), nu / (1.0 - tau)
        low = max(min(u, w), TINY)
        log_low, log_high = log(low), log1m(min(low, 0.5))
        not_all = -low * expm1((n - 1.0) * log_low) - (1.0 - low) * expm1((n - 1.0) * log_high)
        result[index] = of_leaves[1, index] * exp(n * log1m(tau)) * not_all
    return result.sum()
