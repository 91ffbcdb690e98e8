"""The state of a run: rows of exchangeable actions, and what holds for them one and all.

A row stands for `multiplicity` actions of one class that have had the same fate so far and therefore share their logit
and moments. The start has one row per class. An action that is drawn out of a row of several gets a row of its own;
nothing that happens later can depend on which one it was, so no list of the others is needed. Cost and memory follow
the rows. A start with single actions only (every logit different, say) is the dense simulation in the same code.

64 rows form a block, which is updated in one vectorised sweep and sampled by the sum of its masses. All values of a
block lie side by side in one array (one base address tells the compiler that they do not overlap):
`values[block * STRIDE + field + lane]`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.config import PolicyConfig
from fgrpo.simulate.sparse._compile import compiled, inlined
from fgrpo.simulate.sparse.elementary import exp

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]

LANE_BITS = 6
LANES = 1 << LANE_BITS
# Fields. MOMENT and ROOT are the discounted sum of gradients and the root of the discounted sum of their squares, for
# the next step (or due to be discounted so, see `pending` in fgrpo.simulate.sparse.steps). MASS is
# multiplicity * exp(logit - shift). COEFFICIENT is 0 but for drawn rows within a step.
LOGIT, MOMENT, ROOT, MASS, MULTIPLICITY, COEFFICIENT = (field * LANES for field in range(6))
STRIDE = 6 * LANES
# The total of the masses is kept between these bounds by moving the shift.
LEAST_TOTAL, GREATEST_TOTAL = 1e-100, 1e100
NEVER = 0


class Rows(NamedTuple):
    """All rows, with room for more.

    Attributes:
        values: Fields of the blocks, shape [blocks * STRIDE].
        origin: Class of each row, shape [blocks * LANES]; row k < classes is what is left of class k.
        times: How often each row was drawn in this step, 0 between steps, shape [blocks * LANES].
        drawn: Rows drawn in this step, shape [blocks * LANES + 1].
        correct_rows: Number of rows of correct actions, then those rows, shape [blocks * LANES + 1].
        block_mass: Sum of a block's masses, shape [blocks].
        cumulative: Sums of block_mass up to and with each block, shape [blocks].
        asleep_since: Last step in which a sleeping block was updated; NEVER for one that is awake, shape [blocks].
    """

    values: FloatArray
    origin: Int32Array
    times: Int32Array
    drawn: Int32Array
    correct_rows: Int32Array
    block_mass: FloatArray
    cumulative: FloatArray
    asleep_since: IntArray


class Start(NamedTuple):
    """The classes of the initial policy; class 0 is the anchor, a single action.

    Attributes:
        logit: Initial logit of each action of the class, shape [classes].
        multiplicity: Number of actions, at least 1, shape [classes].
        correct: Whether they are correct, shape [classes].
        leaf: Whether they are the leaves, shape [classes].
    """

    logit: FloatArray
    multiplicity: FloatArray
    correct: BoolArray
    leaf: BoolArray


def start_of(policy: PolicyConfig) -> Start:
    """The start of a configuration: the anchor by itself, what else is in its class, the other classes."""
    classes = [(one, one.count, index == policy.leaf_class_index) for index, one in enumerate(policy.action_classes)]
    first, count, leaf = classes[0]
    rest = [(first, count - 1, leaf)] if count > 1 else []
    split = [(first, 1, leaf), *rest, *classes[1:]]
    return Start(
        np.array([one.logit for one, _, _ in split]),
        np.array([count for _, count, _ in split], dtype=np.float64),
        np.array([one.correct for one, _, _ in split]),
        np.array([leaf for _, _, leaf in split]),
    )


@compiled
def new_rows(start: Start) -> Rows:
    """One row per class, masses not computed yet."""
    classes = start.logit.size
    blocks = (classes + LANES - 1) // LANES
    rows = _empty(blocks)
    for row in range(classes):
        here = at(row)
        rows.values[here + LOGIT] = start.logit[row]
        rows.values[here + MULTIPLICITY] = start.multiplicity[row]
        rows.origin[row] = row
        if start.correct[row]:
            list_correct(rows.correct_rows, row)
    return rows


@inlined
def list_correct(correct_rows: Int32Array, row: int) -> None:
    """Adds a row to the list."""
    correct_rows[0] += 1
    correct_rows[correct_rows[0]] = row


@inlined
def at(row: int) -> int:
    """Where the values of a row begin: add a field."""
    return (row >> LANE_BITS) * STRIDE + (row & (LANES - 1))  # row >= 0; the signed // and % would be slower


@compiled
def _empty(blocks: int) -> Rows:
    # zeros everywhere: rows that do not exist yet have multiplicity 0, so no mass, and are swept along unharmed
    return Rows(
        np.zeros(blocks * STRIDE),
        np.zeros(blocks * LANES, np.int32),
        np.zeros(blocks * LANES, np.int32),
        np.zeros(blocks * LANES + 1, np.int32),
        np.zeros(blocks * LANES + 1, np.int32),
        np.zeros(blocks),
        np.zeros(blocks),
        np.zeros(blocks, np.int64),
    )


@compiled
def with_room(rows: Rows, needed: int) -> Rows:
    """The same rows, between two steps, with room for at least `needed`, geometrically more than now."""
    blocks = max((needed + LANES - 1) // LANES, rows.block_mass.size * 3 // 2)
    larger = _empty(blocks)
    larger.values[: rows.values.size] = rows.values
    larger.origin[: rows.origin.size] = rows.origin
    larger.correct_rows[: rows.correct_rows.size] = rows.correct_rows
    larger.block_mass[: rows.block_mass.size] = rows.block_mass
    larger.cumulative[: rows.cumulative.size] = rows.cumulative
    larger.asleep_since[: rows.asleep_since.size] = rows.asleep_since
    return larger


@compiled
def hidden_actions(rows: Rows, classes: int) -> int:
    """Number of actions that have no row of their own: no step can need more new rows."""
    values = rows.values
    hidden = 0
    for row in range(classes):
        if values[at(row) + MULTIPLICITY] > 1.0:
            hidden += int(values[at(row) + MULTIPLICITY])
    return hidden


@compiled
def largest_logit(rows: Rows, count: int) -> float:
    """Over the rows that hold actions."""
    values = rows.values
    largest = -np.inf
    for row in range(count):
        if values[at(row) + MULTIPLICITY] > 0.0:
            largest = max(largest, values[at(row) + LOGIT])
    return largest


@compiled
def compute_masses(rows: Rows, count: int, shift: float) -> None:
    """Masses of all rows and blocks afresh, whether asleep or not."""
    values, block_mass = rows.values, rows.block_mass
    for block in range((count + LANES - 1) // LANES):
        for here in range(block * STRIDE, block * STRIDE + LANES):
            values[here + MASS] = values[here + MULTIPLICITY] * exp(values[here + LOGIT] - shift)
        block_mass[block] = sum_of_block(values, block, MASS)


@inlined
def sum_of_block(values: FloatArray, block: int, field: int) -> float:
    """Sum of a field over a block: eight running sums, so that one vector instruction adds to all of them."""
    begin = np.uint64(block * STRIDE + field)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for row in range(np.uint64(LANES // 8)):
        here = begin + row * np.uint64(8)
        s0 += values[here]
        s1 += values[here + np.uint64(1)]
        s2 += values[here + np.uint64(2)]
        s3 += values[here + np.uint64(3)]
        s4 += values[here + np.uint64(4)]
        s5 += values[here + np.uint64(5)]
        s6 += values[here + np.uint64(6)]
        s7 += values[here + np.uint64(7)]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@compiled
def accumulate(rows: Rows, count: int) -> float:
    """Cumulative block masses; returns their total."""
    block_mass, cumulative = rows.block_mass, rows.cumulative
    total = 0.0
    for block in range((count + LANES - 1) // LANES):
        total += block_mass[block]
        cumulative[block] = total
    return total
