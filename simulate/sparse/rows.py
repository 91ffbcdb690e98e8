"""The state of a run: rows of exchangeable actions, and what holds for them one and all.

A row stands for `multiplicity` actions of one class that have had the same fate so far and therefore share their logit
and moments. The start has one row per class. An action that is drawn out of a row of several gets a row of its own;
nothing that happens later can depend on which one it was, so no list of the others is needed. Cost and memory follow
the rows. A start with single actions only (every logit different, say) is the dense simulation in the same code.

64 rows form a block, which is updated in one vectorised sweep and sampled by the sum of its masses. All values of a
block lie side by side in one array (one base address tells the compiler that they do not overlap):
`values[block * STRIDE + field + lane]`. The rows of correct actions have blocks of their own, before those of the wrong
ones, so that what concerns correct actions alone is a loop over whole blocks too. Of either kind, rows that have all
but stopped come before those that move (fgrpo.simulate.sparse.naps), and blocks of the former only are asleep.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.config import PolicyConfig
from fgrpo.simulate.sparse._compile import compiled, inlined, sum_octets
from fgrpo.simulate.sparse.elementary import exp

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]

LANE_BITS = 6
LANES = 1 << LANE_BITS
# Rows of an octet: what one vector instruction reads. A block has as many octets
OCTET = 8
# Fields. MOMENT and ROOT are the discounted sum of gradients and the root of the discounted sum of their squares, for
# the next step (or due to be discounted so, see `pending` in fgrpo.simulate.sparse.steps). MASS is
# multiplicity * exp(logit - shift). INITIAL is exp(initial logit - largest one of a correct action), 0 for wrong ones.
# WORKING is 0 but within a step, where it is a drawn row's coefficient, or which part of the row was drawn.
LOGIT, MOMENT, ROOT, MASS, MULTIPLICITY, INITIAL, WORKING = (field * LANES for field in range(7))
STRIDE = 7 * LANES
# The total of the masses is kept between these bounds by moving the shift.
LEAST_TOTAL, GREATEST_TOTAL = 1e-100, 1e100


class Rows(NamedTuple):
    """All rows, with room for more.

    Attributes:
        values: Fields of the blocks, shape [blocks * STRIDE].
        origin: Class of each row, shape [blocks * LANES].
        class_row: Row of what is left of each class, shape [classes].
        times: How often each row was drawn in this step, 0 between steps, shape [blocks * LANES].
        drawn: Rows drawn in this step, shape [blocks * LANES + 1].
        octet_mass: Sums of eight masses each, shape [blocks * OCTET].
        block_mass: Sum of a block's masses, shape [blocks].
        cumulative: Sums of block_mass up to and with each block, shape [blocks].
        asleep_since: Last step in which a row of a sleeping block was updated, shape [blocks * LANES].
    """

    values: FloatArray
    origin: Int32Array
    class_row: Int32Array
    times: Int32Array
    drawn: Int32Array
    octet_mass: FloatArray
    block_mass: FloatArray
    cumulative: FloatArray
    asleep_since: Int32Array


class Extent(NamedTuple):
    """Which rows there are.

    Attributes:
        correct: Number of rows of correct actions: 0 .. correct - 1.
        first_wrong: First row of wrong actions, the first one of its block.
        end: End of the rows of wrong actions: first_wrong .. end - 1.
        moving_correct: First row of correct actions that has not all but stopped.
        moving_wrong: The same of wrong actions.
    """

    correct: int
    first_wrong: int
    end: int
    moving_correct: int
    moving_wrong: int


class Start(NamedTuple):
    """The classes of the initial policy, correct ones first; class 0 is the anchor, a single action.

    Attributes:
        logit: Initial logit of each action of the class, shape [classes].
        multiplicity: Number of actions, at least 1, shape [classes].
        correct: Whether they are correct, shape [classes].
        leaf: Whether they are the leaves, which are one class or follow each other, shape [classes].
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


@inlined
def blocks_for(rows: int) -> int:
    """Number of blocks that hold so many rows."""
    return (rows + LANES - 1) >> LANE_BITS


@inlined
def at(row: int) -> int:
    """Where the values of a row begin: add a field."""
    return (row >> LANE_BITS) * STRIDE + (row & (LANES - 1))  # row >= 0; the signed // and % would be slower


@compiled
def new_rows(start: Start) -> tuple[Rows, Extent]:
    """One row per class, masses not computed yet."""
    classes, correct = start.logit.size, int(start.correct.sum())
    first_wrong = blocks_for(correct) * LANES
    extent = Extent(correct, first_wrong, first_wrong + classes - correct, 0, first_wrong)
    rows = _empty(blocks_for(extent.end), classes)
    largest = np.max(start.logit[:correct])
    for row in range(classes):
        slot = row if row < correct else first_wrong + row - correct
        here = at(slot)
        rows.values[here + LOGIT] = start.logit[row]
        rows.values[here + MULTIPLICITY] = start.multiplicity[row]
        rows.values[here + INITIAL] = exp(start.logit[row] - largest) if row < correct else 0.0
        rows.origin[slot] = row
        rows.class_row[row] = slot
    return rows, extent


@compiled
def _empty(blocks: int, classes: int) -> Rows:
    # zeros everywhere: rows that do not exist yet have multiplicity 0, so no mass, and are swept along unharmed
    return Rows(
        np.zeros(blocks * STRIDE),
        np.zeros(blocks * LANES, np.int32),
        np.zeros(classes, np.int32),
        np.zeros(blocks * LANES, np.int32),
        np.zeros(blocks * LANES + 1, np.int32),
        np.zeros(blocks * OCTET),
        np.zeros(blocks),
        np.zeros(blocks),
        np.zeros(blocks * LANES, np.int32),
    )


@compiled
def with_room(rows: Rows, extent: Extent, correct: int, wrong: int) -> tuple[Rows, Extent]:
    """The same rows, between two steps, with room for so many more of each kind, geometrically more than now."""
    wrong_rows = extent.end - extent.first_wrong
    if extent.correct + correct <= extent.first_wrong and extent.end + wrong <= rows.origin.size:
        return rows, extent
    of_correct, of_wrong = extent.first_wrong // LANES, blocks_for(wrong_rows)
    if extent.correct + correct > extent.first_wrong:
        of_correct = max(blocks_for(extent.correct + correct), of_correct * 3 // 2)
    blocks = of_correct + max(blocks_for(wrong_rows + wrong), of_wrong * 3 // 2)
    larger = _empty(blocks, rows.class_row.size)
    for old, new, count in (
        (0, 0, blocks_for(extent.correct)),
        (extent.first_wrong // LANES, of_correct, of_wrong),
    ):
        for source, target, width in (
            (rows.values, larger.values, STRIDE),
            (rows.octet_mass, larger.octet_mass, OCTET),
            (rows.block_mass, larger.block_mass, 1),
        ):
            target[new * width : (new + count) * width] = source[old * width : (old + count) * width]
        begin, end = old * LANES, (old + count) * LANES
        larger.origin[new * LANES : (new + count) * LANES] = rows.origin[begin:end]
        larger.asleep_since[new * LANES : (new + count) * LANES] = rows.asleep_since[begin:end]
    moved = of_correct * LANES - extent.first_wrong
    for index in range(rows.class_row.size):
        row = rows.class_row[index]
        larger.class_row[index] = row if row < extent.first_wrong else row + moved
    moved_extent = Extent(
        extent.correct,
        extent.first_wrong + moved,
        extent.end + moved,
        extent.moving_correct,
        extent.moving_wrong + moved,
    )
    accumulate(larger, moved_extent.end)
    return larger, moved_extent


@compiled
def hidden_actions(rows: Rows, extent: Extent) -> tuple[int, int]:
    """Number of correct and of wrong actions without a row of their own: no step can need more new rows."""
    values = rows.values
    correct, wrong = 0, 0
    for row in rows.class_row:
        multiplicity = values[at(row) + MULTIPLICITY]
        if multiplicity > 1.0:
            if row < extent.first_wrong:
                correct += int(multiplicity)
            else:
                wrong += int(multiplicity)
    return correct, wrong


@compiled
def largest_logit(rows: Rows, end: int) -> float:
    """Over the rows before `end` that hold actions."""
    values, largest = rows.values, np.full(LANES, -np.inf)
    multiplicity = np.uint64(MULTIPLICITY)
    for block in range(np.uint64(blocks_for(end))):
        for lane in range(np.uint64(LANES)):
            here = block * np.uint64(STRIDE) + lane
            z = values[here] if values[here + multiplicity] > 0.0 else -np.inf
            largest[lane] = z if z > largest[lane] else largest[lane]
    result: float = largest.max()
    return result


@compiled
def compute_masses(rows: Rows, end: int, shift: float) -> None:
    """Masses of all rows and blocks afresh, whether asleep or not."""
    values = rows.values
    for block in range(blocks_for(end)):
        for here in range(block * STRIDE, block * STRIDE + LANES):
            values[here + MASS] = values[here + MULTIPLICITY] * exp(values[here + LOGIT] - shift)
        sum_masses(rows, block)


@inlined
def sum_masses(rows: Rows, block: int) -> None:
    """Brings the sums over a block up to date with its masses."""
    rows.block_mass[block] = sum_octets(rows.values, block * STRIDE + MASS, rows.octet_mass, block * OCTET)


@compiled
def mass_of(rows: Rows, begin: int, end: int) -> float:
    """Sum of the masses in the blocks of rows begin .. end - 1."""
    total: float = rows.block_mass[begin // LANES : blocks_for(end)].sum()
    return total


@compiled
def accumulate(rows: Rows, end: int) -> float:
    """Cumulative block masses; returns their total."""
    block_mass, cumulative = rows.block_mass, rows.cumulative
    total = 0.0
    for block in range(blocks_for(end)):
        total += block_mass[block]
        cumulative[block] = total
    return total
