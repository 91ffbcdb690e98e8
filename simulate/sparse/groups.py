"""One group: how often each row is drawn, exactly multinomial in float64, and which drawn actions are new."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.sparse._compile import compiled, inlined
from fgrpo.simulate.sparse.philox import MEMBERS, fill_exponentials, fill_uniforms, scaled, two_words
from fgrpo.simulate.sparse.rows import LANES, MASS, MULTIPLICITY, STRIDE, Int32Array, Rows, at

FloatArray = NDArray[np.float64]
KeyArray = NDArray[np.uint64]

# Bounds the buffer of a merge; a multinomial draw is a sum of smaller independent ones. Even, so that it uses whole
# pairs of random numbers.
DRAWS_AT_ONCE = 2**17
# Below this many draws per block a search for each draw is faster than a merge of all.
MERGE_FROM = 0.25
# Rows of a block that a merge looks at together: one vector of float64
GROUP = 8
DRAWS_OF_A_DENSE_GROUP = 32


def buffer_for(group_size: int) -> FloatArray:
    """Room for the random numbers of one merge: one more than draws, rounded up to whole pairs."""
    return np.empty(min(group_size, DRAWS_AT_ONCE) + 2)


@inlined
def count_draws(times: Int32Array, drawn: Int32Array, row: int, draws: int, found: int) -> int:
    """Adds draws of a row; returns the number of rows that are listed in `drawn`."""
    drawn[found] = row  # for good only if the row is new; no branch, since none could be predicted
    found += int(times[row] == 0)
    times[row] += draws
    return found


@inlined
def with_mass(values: FloatArray, row: Any) -> Any:
    """The row, or the last one before it that has mass: rounding can carry a point past that one."""
    while values[at(row) + MASS] == 0.0:
        row -= 1
    return row


@compiled
def draw_rows(
    rows: Rows, count: int, total: float, group_size: int, step: int, key: KeyArray, buffer: FloatArray
) -> int:
    """Draws a group; rows.times says how often each row was drawn.

    Args:
        rows: Rows with cumulative block masses.
        count: Number of rows.
        total: Total of the masses.
        group_size: N.
        step: Step of the run, which selects the random numbers.
        key: Key of the run.
        buffer: See `buffer_for`.

    Returns:
        Number of different rows drawn; rows.drawn lists them.
    """
    blocks = (count + LANES - 1) // LANES
    if group_size < DRAWS_AT_ONCE and group_size < MERGE_FROM * blocks:
        fill_uniforms(buffer, group_size, step, key)
        return _search(rows, blocks, total, group_size, buffer)
    found = 0
    for begin in range(0, group_size, DRAWS_AT_ONCE):
        draws = min(group_size - begin, DRAWS_AT_ONCE)
        # order statistics of uniforms as normalised exponential spacings: sorted without a sort. The spacing after the
        # last one takes a number more, so parts start a pair of numbers further apart than they have draws.
        fill_exponentials(buffer, draws + 1, (begin // DRAWS_AT_ONCE) * (DRAWS_AT_ONCE // 2 + 1), step, key)
        found = _merge(rows, blocks, total, draws, buffer, found)
    return found


@compiled
def _search(rows: Rows, blocks: int, total: float, draws: int, uniforms: FloatArray) -> int:
    """Inverts the cumulative masses at each of the uniforms: bisection over blocks, then row by row."""
    values, cumulative, times, drawn = rows.values, rows.cumulative, rows.times, rows.drawn
    found = 0
    for draw in range(draws):
        point = uniforms[draw] * total
        low, high = 0, blocks - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[middle] > point:
                high = middle
            else:
                low = middle + 1
        reached = cumulative[low - 1] if low > 0 else 0.0
        first, last = low * STRIDE + MASS, low * STRIDE + MASS + LANES - 1
        here = first
        while here < last:
            reached += values[here]
            if reached > point:
                break
            here += 1
        found = count_draws(times, drawn, with_mass(values, low * LANES + here - first), 1, found)
    return found


@compiled
def _merge(rows: Rows, blocks: int, total: float, draws: int, spacings: FloatArray, found: int) -> int:
    """Inverts the cumulative masses at sorted points in one walk; `found` rows are listed already."""
    values, cumulative, times, drawn = rows.values, rows.cumulative, rows.times, rows.drawn
    arrived = 0.0
    for draw in range(draws + 1):
        arrived += spacings[draw]
        spacings[draw] = arrived
    points, scale = spacings, total / arrived
    points[draws] = np.inf  # a point that no mass reaches ends the walk
    draw, point = 0, points[0] * scale
    upto, many = np.empty(GROUP), DRAWS_OF_A_DENSE_GROUP * total / draws
    group, lanes = np.uint64(GROUP), np.uint64(GROUP - 1)
    end = 0.0
    for block in range(blocks):
        begin, end = end, cumulative[block]
        # points below `end` belong to this block, and to its last group if the sum of its rows is a rounding lower
        if point >= end:
            continue
        for first in range(block * LANES, (block + 1) * LANES, GROUP):
            if point >= end:
                break
            here = np.uint64(at(first) + MASS)
            reached = 0.0
            for lane in range(group):
                reached += values[here + lane]
                upto[lane] = reached
            group_end = end if first + GROUP == (block + 1) * LANES else min(begin + reached, end)
            if reached > many:
                # most rows have draws: row by row, all points of a row at once
                for lane in range(GROUP - 1):
                    before, row_end = draw, min(begin + upto[lane], group_end)
                    while point < row_end:
                        draw += 1
                        point = points[draw] * scale
                    if draw > before:
                        found = count_draws(times, drawn, with_mass(values, first + lane), draw - before, found)
            while point < group_end:
                # counted, not searched: branches that cannot be predicted would cost more than the comparisons
                row = np.uint64(first)
                for lane in range(lanes):
                    row += np.uint64(upto[lane] <= point - begin)
                found = count_draws(times, drawn, with_mass(values, np.int64(row)), 1, found)
                draw += 1
                point = points[draw] * scale
            begin = group_end
    if draw < draws:
        # the last points may have been rounded up to the total
        found = count_draws(times, drawn, with_mass(values, blocks * LANES - 1), draws - draw, found)
    return found


@compiled
def tell_members_apart(rows: Rows, count: int, found: int, step: int, key: KeyArray) -> int:
    """Replaces drawn rows of several actions by the single actions drawn out of them.

    Each draw falls on any of the row's actions with equal probability. The actions already met in this group are told
    apart by the order in which they were met: draw u of 0 .. multiplicity - 1 is one of them if u is less than their
    number, and a new one if not.

    Args:
        rows: Rows with the counts of `draw_rows`, with room for group_size more rows.
        count: Number of rows. The new actions take the following ones (`times` and `origin` only).
        found: Number of drawn rows.
        step: Step of the run.
        key: Key of the run.

    Returns:
        Number of different actions drawn; rows.drawn lists their rows.
    """
    values, origin, times, drawn = rows.values, rows.origin, rows.times, rows.drawn
    used, fresh, t = 0, count, np.uint64(step)
    spare = np.uint64(0)
    for index in range(found):
        row = drawn[index]
        multiplicity = values[at(row) + MULTIPLICITY]
        if multiplicity == 1.0:
            continue
        bound, first = np.uint64(multiplicity), fresh
        for _ in range(times[row]):
            if used % 2 == 0:
                word, spare = two_words(np.uint64(used // 2), t, MEMBERS, key)
            else:
                word = spare
            used += 1
            member = min(first + scaled(word, bound), fresh)
            if member == fresh:
                origin[fresh] = origin[row]
                fresh += 1
            times[member] += 1
        times[row] = 0
        drawn[index] = first
        for member in range(first + 1, fresh):
            drawn[found] = member
            found += 1
    return found
