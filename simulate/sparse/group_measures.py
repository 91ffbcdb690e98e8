"""The measures of fgrpo.simulate.metrics that are of one group, from rows instead of single actions."""

import math

import numpy as np

from fgrpo.simulate.sparse._compile import compiled
from fgrpo.simulate.sparse.elementary import exp, expm1, expm1_small, log, log1m
from fgrpo.simulate.sparse.rows import (
    LANES,
    MASS,
    MOMENT,
    MULTIPLICITY,
    NEVER,
    ROOT,
    STRIDE,
    FloatArray,
    Int32Array,
    Rows,
    Start,
    at,
    sum_of_block,
)
from fgrpo.simulate.sparse.steps import TINY, Rule, as_stored

# a step so far above the mean step is taken as the origin of the others, since its exponential would overflow
FAR_ABOVE = 600.0
BELOW_ONE = 1.0 - 2.0**-53
# 1 / 20! is below NO_TERM
MOST_TERMS, NO_TERM = 21, 1e-18


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

    centre = 0.0 if rule.small_steps else _centre(rows, count, rule, step, total)
    listed = rows.correct_rows[1 : rows.correct_rows[0] + 1]
    masses, gains = _of_correct(rows, listed, rule, step, centre)
    wrong_mass, rest_gain = _of_wrong(rows, count, listed, masses, rule, step, centre)

    drawn_mass, mass, gain = 0.0, 0.0, 0.0
    number, leaf_mass, leaf_number = 0, np.empty(listed.size), np.empty(listed.size)
    for index in range(listed.size):
        row = listed[index]
        multiplicity = values[at(row) + MULTIPLICITY]
        if leaf[origin[row]] and multiplicity > 0.0:
            leaf_mass[number], leaf_number[number] = masses[index] / multiplicity, multiplicity
            number += 1
        unsampled = 0.0 if times[row] > 0 else 1.0
        if row < hidden.size and hidden[row] > 0.0:
            unsampled = (multiplicity - hidden[row]) / multiplicity
        mass += masses[index] * unsampled
        gain += gains[index] * unsampled
        drawn_mass += masses[index] * (1.0 - unsampled)
        rest_gain += gains[index] * (1.0 - unsampled)

    leaves = (start.multiplicity * leaf).sum()
    out[0] = (leaves - drawn_leaves) / leaves if active else 0.0
    out[1] = (
        sum_of_tail_misses(leaf_mass[:number], leaf_number[:number], mass + drawn_mass, wrong_mass, group_size) / leaves
    )
    out[2] = mass / total
    # as fgrpo.simulate.metrics.mass_change
    rest = wrong_mass + drawn_mass
    out[3] = (rest * gain - mass * rest_gain) / ((mass + gain + rest + rest_gain) * total)


@compiled
def _centre(rows: Rows, count: int, rule: Rule, step: int, total: float) -> float:
    """The mean step under the policy, or FAR_ABOVE below the largest one."""
    values, asleep_since = rows.values, rows.asleep_since
    (rate, offset), decay = as_stored(rule, step), rule.keep - 1.0
    highest, weighted = 0.0, 0.0
    for row in range(count):
        here = at(row)
        if values[here + MASS] > 0.0 and asleep_since[row // LANES] == NEVER:
            move = values[here] * decay + rate * values[here + MOMENT] / (values[here + ROOT] + offset)
            highest = max(highest, move)
            weighted += values[here + MASS] * move
    mean = weighted / total
    return mean + max(highest - mean - FAR_ABOVE, 0.0)


@compiled
def _of_correct(rows: Rows, listed: Int32Array, rule: Rule, step: int, centre: float) -> tuple[FloatArray, FloatArray]:
    """Masses of the listed rows, and mass * expm1(d), d = what the sweep will add to the logit, less the centre."""
    values, asleep_since = rows.values, rows.asleep_since
    (rate, offset), decay = as_stored(rule, step), rule.keep - 1.0
    masses, gains = np.empty(listed.size), np.empty(listed.size)
    for index in range(listed.size):
        here = at(listed[index])
        masses[index] = values[here + MASS]
        move = values[here] * decay + rate * values[here + MOMENT] / (values[here + ROOT] + offset)
        gains[index] = (move if asleep_since[listed[index] // LANES] == NEVER else 0.0) - centre
    for index in range(np.uint64(listed.size)):
        gains[index] = masses[index] * expm1(gains[index])
    return masses, gains


@compiled
def _of_wrong(
    rows: Rows, count: int, listed: Int32Array, masses: FloatArray, rule: Rule, step: int, centre: float
) -> tuple[float, float]:
    """As `_of_correct`, but the sums over all rows that are not listed."""
    values, asleep_since = rows.values, rows.asleep_since
    (rate, offset), decay = as_stored(rule, step), rule.keep - 1.0
    # taken out and put back below: as differences to the total, the sums would cancel
    for index in range(listed.size):
        values[at(listed[index]) + MASS] = 0.0
    lanes, small = np.uint64(LANES), rule.small_steps
    moment, root, mass_field = np.uint64(MOMENT), np.uint64(ROOT), np.uint64(MASS)
    mass, gain, gains = 0.0, 0.0, np.empty(LANES)
    for block in range((count + LANES - 1) // LANES):
        of_block = sum_of_block(values, block, MASS)
        mass += of_block
        if asleep_since[block] != NEVER:
            gain += of_block * expm1(-centre)
            continue
        begin = np.uint64(block * STRIDE)
        if small:
            for lane in range(lanes):
                here = begin + lane
                move = rate * values[here + moment] / (values[here + root] + offset)
                gains[lane] = values[here + mass_field] * expm1_small(move)
        else:
            for lane in range(lanes):
                here = begin + lane
                move = values[here] * decay + rate * values[here + moment] / (values[here + root] + offset)
                gains[lane] = values[here + mass_field] * expm1(move - centre)
        gain += sum_of_block(gains, 0, 0)
    for index in range(listed.size):
        values[at(listed[index]) + MASS] = masses[index]
    return mass, gain


@compiled
def sum_of_tail_misses(
    leaf_mass: FloatArray, leaf_number: FloatArray, correct_mass: float, wrong_mass: float, group_size: int
) -> float:
    """Sum over the leaves of fgrpo.theory.tail_miss_probability; masses that need not be normalised, of one leaf each.

    Leaves with N tau <= 1 by powers of tau, which few terms exhaust, the others by the formula.
    """
    total = correct_mass + wrong_mass
    n, mu, nu = float(group_size), correct_mass / total, wrong_mass / total
    rare, rare_number, few = np.empty(leaf_mass.size), np.empty(leaf_mass.size), 0
    others, others_number, many = np.empty(leaf_mass.size), np.empty(leaf_mass.size), 0
    most = 0.0
    for index in range(leaf_mass.size):
        tau = min(leaf_mass[index] / total, mu, BELOW_ONE)
        if n * tau <= 1.0:
            rare[few], rare_number[few] = tau, leaf_number[index]
            few += 1
            most = max(most, n * tau)
        else:
            others[many], others_number[many] = tau, leaf_number[index]
            many += 1
    _tail_misses_by_powers(rare[:few], most, n, mu, nu)
    _tail_misses(others[:many], n, mu, nu)
    result: float = (rare[:few] * rare_number[:few]).sum() + (others[:many] * others_number[:many]).sum()
    return result


@compiled
def _tail_misses_by_powers(taus: FloatArray, most: float, n: float, mu: float, nu: float) -> None:
    """Pr(B_tau) = sum over k of (-tau)^k C(N, k) (1 - mu^(N - k)), less nu^N for k = 0, in place of each tau.

    `most` is at least N tau: terms shrink like (N tau)^k / k!.
    """
    coefficients, terms = np.zeros(MOST_TERMS), 0
    low = max(min(mu, nu), TINY)
    log_mu = math.log(low) if mu < nu else math.log1p(-low)
    log_nu = math.log1p(-low) if mu < nu else math.log(low)
    # mu + nu = 1: 1 - mu^N - nu^N as in `_tail_misses`
    coefficients[0] = -mu * math.expm1((n - 1.0) * log_mu) - nu * math.expm1((n - 1.0) * log_nu)
    choices, size = 1.0, 1.0
    for k in range(1, MOST_TERMS):
        choices *= -(n - k + 1.0) / k
        size *= most / k
        if choices == 0.0 or size < NO_TERM:
            break
        coefficients[k] = -choices * math.expm1((n - k) * log_mu)
        terms = k
    results = np.full(taus.size, coefficients[terms])
    for k in range(terms - 1, -1, -1):
        for index in range(np.uint64(taus.size)):
            results[index] = results[index] * taus[index] + coefficients[k]
    taus[:] = results


@compiled
def _tail_misses(taus: FloatArray, n: float, mu: float, nu: float) -> None:
    """Pr(B_tau) = (1 - tau)^N h(N), the factored form of fgrpo.theory.tail_miss, in place of each tau."""
    for index in range(np.uint64(taus.size)):
        tau = taus[index]
        # u + w = 1; the logarithm of the larger one through the smaller
        u, w = max(mu - tau, 0.0) / (1.0 - tau), nu / (1.0 - tau)
        low = max(min(u, w), TINY)
        log_low, log_high = log(low), log1m(min(low, 0.5))
        not_all = -low * expm1((n - 1.0) * log_low) - (1.0 - low) * expm1((n - 1.0) * log_high)
        taus[index] = exp(n * log1m(tau)) * not_all
