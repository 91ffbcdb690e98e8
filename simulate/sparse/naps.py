"""Rows that have all but stopped: they are kept apart from those that move, and their blocks are not computed.

The rows of either kind, correct or wrong, are split in two: first those that have all but stopped, then those that
move, from row `moving` on. A block whose rows have all stopped is asleep; the one in which the others begin is not. A
row crosses the border by changing places with the one beside it.
"""

import numpy as np

from fgrpo.simulate.sparse._compile import compiled
from fgrpo.simulate.sparse.rows import (
    INITIAL,
    LANES,
    LOGIT,
    MASS,
    MOMENT,
    MULTIPLICITY,
    ROOT,
    STRIDE,
    Extent,
    Rows,
    at,
    blocks_for,
    sum_masses,
)
from fgrpo.simulate.sparse.steps import Rule, pending

# A row has all but stopped when it would not move by this much in all future without a gradient; it then makes that
# move at once, and forgets its moment. Until it would have made it, its logit is off by less than this: of the 10^8
# draws of a large run, not one is expected to fall otherwise. What is left for good is, with the usual discounts,
# some hundredths of it.
LEAST_MOVE = 1e-10


@compiled
def _exchange(rows: Rows, one: int, other: int) -> None:
    """Has two rows change places."""
    values, origin, class_row, times = rows.values, rows.origin, rows.class_row, rows.times
    here, there = at(one), at(other)
    one_is_left, other_is_left = class_row[origin[one]] == one, class_row[origin[other]] == other
    for field in (LOGIT, MOMENT, ROOT, MASS, MULTIPLICITY, INITIAL):
        values[here + field], values[there + field] = values[there + field], values[here + field]
    origin[one], origin[other] = origin[other], origin[one]
    times[one], times[other] = times[other], times[one]
    if one_is_left:
        class_row[origin[other]] = other
    if other_is_left:
        class_row[origin[one]] = one


@compiled
def _catch_up(rows: Rows, row: int, rule: Rule, updated: int) -> None:
    """Applies the discounts that a row of a sleeping block has missed up to the step `updated`."""
    rows.values[at(row) + ROOT] *= rule.root_beta2 ** (updated - rows.asleep_since[row])
    rows.asleep_since[row] = updated


@compiled
def _wake(rows: Rows, row: int, moving: int, rule: Rule, step: int) -> tuple[int, int]:
    """Has a drawn row that has stopped move again; returns where it is then, and the first row that moves."""
    updated = step - 1 - pending(rule, step)
    while row < moving:
        if moving % LANES == 0:
            for one in range(moving - LANES, moving):
                _catch_up(rows, one, rule, updated)
        moving -= 1
        # a row beside the border that was drawn, too, just stays
        if rows.times[moving] == 0:
            if row // LANES < moving // LANES:
                _catch_up(rows, row, rule, updated)
            _exchange(rows, row, moving)
            sum_masses(rows, row // LANES)
            row = moving
    return row, moving


@compiled
def wake_drawn(rows: Rows, extent: Extent, found: int, rule: Rule, step: int) -> Extent:
    """Readies all drawn rows for a gradient in this step."""
    drawn = rows.drawn
    correct, first_wrong, end, moving_correct, moving_wrong = extent
    for index in range(found):
        row = drawn[index]
        if row < moving_correct:
            drawn[index], moving_correct = _wake(rows, row, moving_correct, rule, step)
        elif first_wrong <= row < moving_wrong:
            drawn[index], moving_wrong = _wake(rows, row, moving_wrong, rule, step)
    return Extent(correct, first_wrong, end, moving_correct, moving_wrong)


@compiled
def put_to_sleep(rows: Rows, extent: Extent, rule: Rule, step: int) -> Extent:
    """After the sweep of `step`, with all discounts applied: parts the rows that have stopped from those that move."""
    moving_correct = _part(rows, extent.moving_correct, extent.correct, rule, step)
    moving_wrong = _part(rows, extent.moving_wrong, extent.end, rule, step)
    return Extent(extent.correct, extent.first_wrong, extent.end, moving_correct, moving_wrong)


@compiled
def _part(rows: Rows, moving: int, end: int, rule: Rule, step: int) -> int:
    """The first row that moves, after all others among moving .. end - 1 have come to stand before it."""
    values, rate, offset = rows.values, rule.rate[step - 1], rule.offset[step - 1]
    least = LEAST_MOVE / (rule.future + rule.future**2 / (2.0 * step)) / rate
    lanes, moment, root = np.uint64(LANES), np.uint64(MOMENT), np.uint64(ROOT)
    begin = moving // LANES
    for block in range(begin, blocks_for(end)):
        first, stopped = np.uint64(block * STRIDE), 0
        for lane in range(lanes):
            here = first + lane
            stopped += int(abs(values[here + moment]) < least * (values[here + root] + offset))
        if stopped == 0:
            continue
        for row in range(max(moving, block * LANES), min(end, (block + 1) * LANES)):
            its = at(row)
            still = abs(values[its + MOMENT]) < least * (values[its + ROOT] + offset)
            # what is left of a class changes whenever one of its actions is drawn
            if still and values[its + MULTIPLICITY] <= 1.0:
                rest = rate * values[its + MOMENT] / (values[its + ROOT] + offset) * rule.future
                values[its + LOGIT] += rest
                values[its + MASS] += rest * values[its + MASS]
                values[its + MOMENT] = 0.0
                _exchange(rows, row, moving)
                moving += 1
    for block in range(begin, blocks_for(end)):
        sum_masses(rows, block)
    rows.asleep_since[begin * LANES : moving // LANES * LANES] = step
    return moving
