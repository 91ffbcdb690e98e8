"""One group: how often each row is drawn, multinomial in float64, and which drawn actions are new."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.sparse._compile import compiled, inlined, number_below
from fgrpo.simulate.sparse.philox import MEMBERS, fill_exponentials, fill_uniforms, scaled, two_words
from fgrpo.simulate.sparse.rows import (
    LANES,
    MASS,
    MULTIPLICITY,
    OCTET,
    STRIDE,
    Extent,
    Int32Array,
    Rows,
    at,
    blocks_for,
)

FloatArray = NDArray[np.float64]
KeyArray = NDArray[np.uint64]

# Bounds the buffer of a merge; a multinomial draw is a sum of smaller independent ones.
DRAWS_AT_ONCE = 2**17
# Below this many draws per block a search for each draw is faster than a merge of all.
MERGE_FROM = 0.25
# In a block of fewer expected draws, a merge finds the row of each draw by itself; in others, octet by octet, it counts
# the draws of each row.
DRAWS_OF_A_SPARSE_BLOCK = 16
# Running sums at once
EIGHT = 8
# Points that are compared at once
BOUNDS = 16


def buffer_for(group_size: int) -> FloatArray:
    """Room for the random numbers of a merge: one more than draws, in whole triples, and a vector of bounds."""
    return np.empty(min(group_size, DRAWS_AT_ONCE) + 3 + BOUNDS)


@inlined
def count_draws(times: Int32Array, drawn: Int32Array, row: int, draws: int, found: int) -> int:
    """Adds draws of a row; returns the number of rows that are listed in `drawn`."""
    drawn[found] = row  # for good only if the row is new; no branch, since none could be predicted
    found += int((times[row] == 0) & (draws > 0))
    times[row] += draws
    return found


@inlined
def with_mass(values: FloatArray, row: Any) -> Any:
    """The row, or the last one before it that has mass: rounding can carry a point past that one."""
    while values[at(row) + MASS] == 0.0:
        row -= 1
    return row


@inlined
def locate(values: FloatArray, begin: int, point: float) -> tuple[int, float]:
    """Where a point falls among the cumulative sums of eight values.

    Returns:
        How many of the first seven sums are <= point, so 7 where it lies beyond all; the last of these sums, or 0.
    """
    index, before, upto = 0, 0.0, 0.0
    for one in range(OCTET - 1):
        upto += values[begin + one]
        index += int(upto <= point)
        before = upto if upto <= point else before
    return index, before


@inlined
def row_at(rows: Rows, block: int, point: float) -> Any:
    """The row of a block in which a point falls that counts from the block's beginning: its octet first, then it."""
    octet, before = locate(rows.octet_mass, block * OCTET, point)
    lane, _ = locate(rows.values, block * STRIDE + MASS + octet * OCTET, point - before)
    return with_mass(rows.values, block * LANES + octet * OCTET + lane)


@compiled
def draw_rows(rows: Rows, end: int, total: float, group_size: int, step: int, key: KeyArray, buffer: FloatArray) -> int:
    """Draws a group; rows.times says how often each row was drawn.

    Args:
        rows: Rows with cumulative block masses.
        end: End of the rows.
        total: Total of the masses.
        group_size: N.
        step: Step of the run, which selects the random numbers.
        key: Key of the run.
        buffer: See `buffer_for`.

    Returns:
        Number of different rows drawn; rows.drawn lists them.
    """
    blocks = blocks_for(end)
    if group_size < DRAWS_AT_ONCE and group_size < MERGE_FROM * blocks:
        fill_uniforms(buffer, group_size, step, key)
        return _search(rows, blocks, total, group_size, buffer)
    found = 0
    for begin in range(0, group_size, DRAWS_AT_ONCE):
        draws = min(group_size - begin, DRAWS_AT_ONCE)
        # order statistics of uniforms as normalised exponential spacings: sorted without a sort. The spacing after the
        # last one takes a number more, so parts start a triple of numbers further apart than they have draws.
        fill_exponentials(buffer, draws + 1, (begin // DRAWS_AT_ONCE) * (DRAWS_AT_ONCE // 3 + 1), step, key)
        found = _merge(rows, blocks, total, draws, buffer, found)
    return found


@compiled
def _search(rows: Rows, blocks: int, total: float, draws: int, uniforms: FloatArray) -> int:
    """Inverts the cumulative masses at each of the uniforms: block by bisection, then row."""
    cumulative, times, drawn = rows.cumulative, rows.times, rows.drawn
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
        if low > 0:
            point -= cumulative[low - 1]
        found = count_draws(times, drawn, row_at(rows, low, point), 1, found)
    return found


@compiled
def _make_points(spacings: FloatArray, draws: int, total: float) -> None:
    """Sorted points in [0, total] from draws + 1 spacings, in their place; after them, bounds that no mass reaches."""
    # eight running sums, since each addition of one would have to wait for the one before
    length = (draws + 1) // EIGHT
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for index in range(length):
        s0 += spacings[index]
        s1 += spacings[index + length]
        s2 += spacings[index + 2 * length]
        s3 += spacings[index + 3 * length]
        s4 += spacings[index + 4 * length]
        s5 += spacings[index + 5 * length]
        s6 += spacings[index + 6 * length]
        s7 += spacings[index + 7 * length]
        spacings[index] = s0
        spacings[index + length] = s1
        spacings[index + 2 * length] = s2
        spacings[index + 3 * length] = s3
        spacings[index + 4 * length] = s4
        spacings[index + 5 * length] = s5
        spacings[index + 6 * length] = s6
        spacings[index + 7 * length] = s7
    starts, arrived = np.zeros(EIGHT + 1), 0.0
    for part in range(EIGHT):
        arrived += spacings[(part + 1) * length - 1] if length > 0 else 0.0
        starts[part + 1] = arrived
    for index in range(EIGHT * length, draws + 1):
        arrived += spacings[index]
        spacings[index] = arrived
    scale = total / arrived
    for part in range(EIGHT):
        start = starts[part]
        for index in range(np.uint64(part * length), np.uint64((part + 1) * length)):
            spacings[index] = (spacings[index] + start) * scale
    for index in range(EIGHT * length, draws + 1):
        spacings[index] *= scale
    spacings[draws : draws + BOUNDS + 1] = np.inf


@compiled
def _merge(rows: Rows, blocks: int, total: float, draws: int, spacings: FloatArray, found: int) -> int:
    """Inverts the cumulative masses at sorted points in one walk; `found` rows are listed already."""
    values, cumulative, times, drawn = rows.values, rows.cumulative, rows.times, rows.drawn
    _make_points(spacings, draws, total)
    points, draw = spacings, 0
    few = DRAWS_OF_A_SPARSE_BLOCK * total / draws
    end = 0.0
    for block in range(blocks):
        begin, end = end, cumulative[block]
        if points[draw] >= end:
            continue
        if end - begin < few:
            while points[draw] < end:
                found = count_draws(times, drawn, row_at(rows, block, points[draw] - begin), 1, found)
                draw += 1
            continue
        for octet in range(OCTET):
            # points below `end` belong to this block: to its last octet if the sum of its octets is a rounding lower
            mass = rows.octet_mass[block * OCTET + octet]
            octet_end = min(begin + mass, end) if octet < OCTET - 1 else end
            first, row = block * STRIDE + MASS + octet * OCTET, block * LANES + octet * OCTET
            row_end, first_draw, before = begin, draw, draw
            begin = octet_end
            is_short = points[draw + BOUNDS] >= octet_end
            for lane in range(OCTET):
                row_end += values[first + lane]
                bound = min(row_end, octet_end) if lane < OCTET - 1 else octet_end
                if is_short:  # the counts need not wait for each other
                    draw = first_draw + number_below(points, first_draw, bound)
                else:
                    more = BOUNDS
                    while more == BOUNDS:
                        more = number_below(points, draw, bound)
                        draw += more
                where = row + lane
                if lane == OCTET - 1 and draw > before:
                    where = with_mass(values, where)
                found = count_draws(times, drawn, where, draw - before, found)
                before = draw
    if draw < draws:
        # the last points may have been rounded up to the total
        found = count_draws(times, drawn, with_mass(values, blocks * LANES - 1), draws - draw, found)
    return found


@compiled
def tell_members_apart(rows: Rows, extent: Extent, found: int, step: int, key: KeyArray) -> tuple[int, Extent]:
    """Replaces drawn rows of several actions by the single actions drawn out of them.

    Each draw falls on any of the row's actions with equal probability. The actions already met in this group are told
    apart by the order in which they were met: draw u of 0 .. multiplicity - 1 is one of them if u is less than their
    number, and a new one if not.

    Args:
        rows: Rows with the counts of `draw_rows`, with room for the new actions.
        extent: Which rows there are. The new actions take the following ones (`times` and `origin` only).
        found: Number of drawn rows.
        step: Step of the run.
        key: Key of the run.

    Returns:
        Number of different actions drawn, whose rows are listed in rows.drawn; the extent with the new ones.
    """
    values, origin, times, drawn = rows.values, rows.origin, rows.times, rows.drawn
    is_needed = False
    for row in rows.class_row:
        is_needed |= times[row] > 0 and values[at(row) + MULTIPLICITY] > 1.0
    if not is_needed:
        return found, extent
    used, t = 0, np.uint64(step)
    fresh_correct, fresh_wrong = extent.correct, extent.end
    spare = np.uint64(0)
    for index in range(found):
        row = drawn[index]
        multiplicity = values[at(row) + MULTIPLICITY]
        if multiplicity == 1.0:
            continue
        is_correct = row < extent.first_wrong
        first = fresh_correct if is_correct else fresh_wrong
        bound, fresh = np.uint64(multiplicity), first
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
        if is_correct:
            fresh_correct = fresh
        else:
            fresh_wrong = fresh
    grown = Extent(fresh_correct, extent.first_wrong, fresh_wrong, extent.moving_correct, extent.moving_wrong)
    return found, grown
