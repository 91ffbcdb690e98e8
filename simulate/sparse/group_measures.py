"""The measures of fgrpo.simulate.metrics that are of one group, from rows instead of single actions."""

import math

import numpy as np

from fgrpo.simulate.sparse._compile import compiled, fma
from fgrpo.simulate.sparse.elementary import exp, expm1, expm1_small, log, log1m
from fgrpo.simulate.sparse.rows import (
    LANES,
    MASS,
    MOMENT,
    MULTIPLICITY,
    ROOT,
    STRIDE,
    WORKING,
    Extent,
    FloatArray,
    Rows,
    Start,
    at,
    blocks_for,
)
from fgrpo.simulate.sparse.steps import TINY, Rule, as_stored

# a step so far above the mean step is taken as the origin of the others, since its exponential would overflow
FAR_ABOVE = 600.0
# first row, first row that moves, end
RowRange = tuple[int, int, int]
BELOW_ONE = 1.0 - 2.0**-53
# of the series in powers of N tau <= 1: 1 / 20! < 1e-18
TERMS = 20


@compiled
def record_group(
    out: FloatArray,
    rows: Rows,
    extent: Extent,
    found: int,
    start: Start,
    rule: Rule,
    step: int,
    total: float,
    group_size: int,
    active: bool,
    centre: float,
    of_wrong: tuple[float, float],
) -> None:
    """Writes the measures of a group and of the update by it into out, shape [GROUP_MEASURES].

    Between `add_gradients` and the sweep of the correct rows: they still have the masses of the draw, and the moments
    of the update. `centre` is that of `centre_of`; `of_wrong`, of the wrong rows, the mass of the draw, and what it
    gains as in `_masses_and_gains`.
    """
    wrong_mass, wrong_gain = of_wrong
    drawn_leaves = _mark_drawn(rows, extent, found, start)
    correct_rows = 0, extent.moving_correct, extent.correct
    unsampled, gain, drawn_mass, drawn_gain = _masses_and_gains(rows, correct_rows, rule, step, centre)
    leaf_mass, leaf_number = _leaves(rows, extent, start)
    for index in range(found):
        rows.values[at(rows.drawn[index]) + WORKING] = 0.0
    for row in rows.class_row:
        rows.values[at(row) + WORKING] = 0.0

    leaves = (start.multiplicity * start.leaf).sum()
    out[0] = (leaves - drawn_leaves) / leaves if active else 0.0
    out[1] = sum_of_tail_misses(leaf_mass, leaf_number, unsampled + drawn_mass, wrong_mass, group_size) / leaves
    out[2] = unsampled / total
    # as fgrpo.simulate.metrics.mass_change; wrong actions are all in the rest, drawn or not
    rest, rest_gain = wrong_mass + drawn_mass, wrong_gain + drawn_gain
    out[3] = (rest * gain - unsampled * rest_gain) / ((unsampled + gain + rest + rest_gain) * total)


@compiled
def _mark_drawn(rows: Rows, extent: Extent, found: int, start: Start) -> int:
    """Has in WORKING which part of each correct row was drawn; returns the number of drawn leaves."""
    values, origin, class_row = rows.values, rows.origin, rows.class_row
    drawn_leaves = 0
    for row in rows.drawn[:found]:
        drawn_leaves += int(start.leaf[origin[row]])
        if row < extent.correct:
            values[at(row) + WORKING] = 1.0
        elif row < extent.first_wrong:
            # without a gradient, it has got no row of its own
            parent = at(class_row[origin[row]])
            values[parent + WORKING] += 1.0 / values[parent + MULTIPLICITY]
    return drawn_leaves


@compiled
def centre_of(rows: Rows, extent: Extent, rule: Rule, step: int, total: float) -> float:
    """The mean step under the policy, or FAR_ABOVE below the largest one; 0 where no step is large."""
    if step <= rule.small_until:
        return 0.0
    values = rows.values
    (rate, offset), decay = as_stored(rule, step), rule.keep - 1.0
    lanes, moment, root, mass = np.uint64(LANES), np.uint64(MOMENT), np.uint64(ROOT), np.uint64(MASS)
    highest, weighted = np.zeros(LANES), np.zeros(LANES)
    for moving, end in ((extent.moving_correct, extent.correct), (extent.moving_wrong, extent.end)):
        for block in range(np.uint64(moving // LANES), np.uint64(blocks_for(end))):
            for lane in range(lanes):
                here = block * np.uint64(STRIDE) + lane
                move = values[here] * decay + rate * values[here + moment] / (values[here + root] + offset)
                weighted[lane] += values[here + mass] * move
                move = move if values[here + mass] > 0.0 else 0.0
                highest[lane] = move if move > highest[lane] else highest[lane]
    mean: float = weighted.sum() / total
    largest: float = highest.max()
    return mean + max(largest - mean - FAR_ABOVE, 0.0)


@compiled
def wrong_gain_of(rows: Rows, extent: Extent, rule: Rule, step: int, centre: float) -> float:
    """What the wrong rows, drawn or not, gain as in `_masses_and_gains`: for steps that may be large."""
    wrong_rows = extent.first_wrong, extent.moving_wrong, extent.end
    _, gain, _, drawn_gain = _masses_and_gains(rows, wrong_rows, rule, step, centre)
    return gain + drawn_gain


@compiled
def _masses_and_gains(
    rows: Rows, which: RowRange, rule: Rule, step: int, centre: float
) -> tuple[float, float, float, float]:
    """Of rows of one kind, unsampled and then drawn: mass, and mass * expm1(d).

    d is what the sweep will add to the logit, less the centre.
    """
    values, (begin, moving, end) = rows.values, which
    (rate, offset), decay = as_stored(rule, step), rule.keep - 1.0
    lanes, small = np.uint64(LANES), step <= rule.small_until
    moment, root, mass, working = np.uint64(MOMENT), np.uint64(ROOT), np.uint64(MASS), np.uint64(WORKING)
    sums = np.zeros(4 * LANES)
    gain, drawn_mass, drawn_gain = np.uint64(LANES), np.uint64(2 * LANES), np.uint64(3 * LANES)
    for block in range(np.uint64(begin // LANES), np.uint64(blocks_for(end))):
        first = block * np.uint64(STRIDE)
        if block < moving // LANES:
            still = expm1(-centre)
            for lane in range(lanes):
                here = first + lane
                part = values[here + mass] * values[here + working]
                sums[lane] += values[here + mass] - part
                sums[gain + lane] += (values[here + mass] - part) * still
                sums[drawn_mass + lane] += part
                sums[drawn_gain + lane] += part * still
        elif small:
            for lane in range(lanes):
                here = first + lane
                move = values[here] * decay + rate * values[here + moment] / (values[here + root] + offset)
                grows = expm1_small(move)
                part = values[here + mass] * values[here + working]
                sums[lane] += values[here + mass] - part
                sums[gain + lane] += (values[here + mass] - part) * grows
                sums[drawn_mass + lane] += part
                sums[drawn_gain + lane] += part * grows
        else:
            for lane in range(lanes):
                here = first + lane
                move = values[here] * decay + rate * values[here + moment] / (values[here + root] + offset)
                grows = expm1(move - centre)
                part = values[here + mass] * values[here + working]
                sums[lane] += values[here + mass] - part
                sums[gain + lane] += (values[here + mass] - part) * grows
                sums[drawn_mass + lane] += part
                sums[drawn_gain + lane] += part * grows
    return (
        sums[:LANES].sum(),
        sums[LANES : 2 * LANES].sum(),
        sums[2 * LANES : 3 * LANES].sum(),
        sums[3 * LANES :].sum(),
    )


@compiled
def _leaves(rows: Rows, extent: Extent, start: Start) -> tuple[FloatArray, FloatArray]:
    """Mass of a single action and number of leaves of each correct row."""
    values, origin = rows.values, rows.origin
    blocks, lanes = np.uint64(blocks_for(extent.correct)), np.uint64(LANES)
    mass, multiplicity = np.uint64(MASS), np.uint64(MULTIPLICITY)
    first, end = np.argmax(start.leaf), start.leaf.size - np.argmax(start.leaf[::-1])
    leaf_mass, leaf_number = np.empty(blocks * lanes), np.empty(blocks * lanes)
    for block in range(blocks):
        for lane in range(lanes):
            here, index = block * np.uint64(STRIDE) + lane, block * lanes + lane
            number = values[here + multiplicity]
            leaf_mass[index] = values[here + mass] / (number if number > 1.0 else 1.0)
            leaf_number[index] = number if first <= origin[index] < end else 0.0
    return leaf_mass, leaf_number


@compiled
def sum_of_tail_misses(
    leaf_mass: FloatArray, leaf_number: FloatArray, correct_mass: float, wrong_mass: float, group_size: int
) -> float:
    """Sum over the leaves of fgrpo.theory.tail_miss_probability; masses that need not be normalised, of one leaf each.

    Leaves with N tau <= 1 by powers of tau, which few terms exhaust, the others by the formula.
    """
    total = correct_mass + wrong_mass
    n, mu, nu, per_total = float(group_size), correct_mass / total, wrong_mass / total, 1.0 / total
    bound, coefficients = min(mu, BELOW_ONE), _coefficients_of_rare(n, mu, nu)
    common, common_number, many = np.empty(leaf_mass.size), np.empty(leaf_mass.size), 0
    taus, number, sums = np.empty(LANES), np.empty(LANES), np.zeros(LANES)
    for begin in range(0, leaf_mass.size, LANES):
        first, lanes = np.uint64(begin), np.uint64(min(LANES, leaf_mass.size - begin))
        largest = 0.0
        for lane in range(lanes):
            tau = leaf_mass[first + lane] * per_total
            taus[lane], number[lane] = tau if tau < bound else bound, leaf_number[first + lane]
        for lane in range(lanes):
            largest = max(largest, taus[lane])
        if n * largest > 1.0:
            for lane in range(lanes):
                # no branch, since none could be predicted
                common[many], common_number[many] = taus[lane], number[lane]
                is_common = n * taus[lane] > 1.0
                many += int(is_common)
                number[lane] = 0.0 if is_common else number[lane]
                taus[lane] = 0.0 if is_common else taus[lane]
        for lane in range(lanes):
            power_sum = coefficients[TERMS]
            for k in range(TERMS - 1, -1, -1):
                power_sum = fma(power_sum, taus[lane], coefficients[k])
            sums[lane] += number[lane] * power_sum
    _tail_misses(common[:many], n, mu, nu)
    result: float = sums.sum() + (common[:many] * common_number[:many]).sum()
    return result


@compiled
def _coefficients_of_rare(n: float, mu: float, nu: float) -> FloatArray:
    """Of Pr(B_tau) = sum over k of (-tau)^k C(N, k) (1 - mu^(N - k)), less nu^N for k = 0, shape [TERMS + 1].

    Where N tau <= 1, terms shrink like 1 / k!.
    """
    coefficients = np.zeros(TERMS + 1)
    low = max(min(mu, nu), TINY)
    log_mu = math.log(low) if mu < nu else math.log1p(-low)
    log_nu = math.log1p(-low) if mu < nu else math.log(low)
    # mu + nu = 1: 1 - mu^N - nu^N as in `_tail_misses`
    coefficients[0] = -mu * math.expm1((n - 1.0) * log_mu) - nu * math.expm1((n - 1.0) * log_nu)
    choices = 1.0
    for k in range(1, min(TERMS, int(n)) + 1):
        choices *= -(n - k + 1.0) / k
        coefficients[k] = -choices * math.expm1((n - k) * log_mu)
    return coefficients


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
