"""The sparse engine: the reference simulation in time and memory that follow the actions that were ever drawn.

The same law as fgrpo.simulate.engine_reference, with random numbers of its own. Three things make it fast, and the last
two are approximations, far below what could be observed:
1. Actions that share a class and were never drawn share one row (fgrpo.simulate.sparse.rows).
2. Groups are drawn by inversion of float64 block sums, at points from uniforms of 42 bits or more
   (fgrpo.simulate.sparse.groups).
3. Rows whose logits would move by less than 1e-10 in all future are not computed again until they are drawn
   (fgrpo.simulate.sparse.naps).
Random numbers are a function of run, step and draw, and a run is one sequence of float64 operations: bit for bit the
same alone, among others, in any process, in one piece or in several. Not promised between different models of CPU.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fgrpo.simulate.config import PolicyConfig, RunConfig
from fgrpo.simulate.sparse._compile import compiled, compiled_once, source_digest
from fgrpo.simulate.sparse.group_measures import centre_of, record_group, wrong_gain_of
from fgrpo.simulate.sparse.groups import DRAWS_AT_ONCE, buffer_for, draw_rows, tell_members_apart
from fgrpo.simulate.sparse.measures import MEASURES, OF_POLICY, Origin, Tally, origin_of, record
from fgrpo.simulate.sparse.naps import put_to_sleep, wake_drawn
from fgrpo.simulate.sparse.payoffs import LARGEST_TABLE, Payoffs, payoff_table, payoffs
from fgrpo.simulate.sparse.philox import KeyArray, stream_words
from fgrpo.simulate.sparse.rows import (
    GREATEST_TOTAL,
    LEAST_TOTAL,
    Extent,
    FloatArray,
    IntArray,
    Rows,
    Start,
    accumulate,
    compute_masses,
    hidden_actions,
    largest_logit,
    mass_of,
    new_rows,
    start_of,
    with_room,
)
from fgrpo.simulate.sparse.steps import (
    SCHEDULES,
    STEPS_BETWEEN_CHECKS,
    SURROGATES,
    Rule,
    add_gradients,
    add_gradients_in_p,
    rule_of,
    settle,
    sweep,
    sweep_in_p,
)
from fgrpo.simulate.trajectory import Trajectory
from fgrpo.simulate.updates import SUCCESS_ESTIMATES

ENGINE = "sparse"

# The compiled loop cannot be interrupted: it returns after about so many draws or rows
WORK_AT_ONCE = 2**26


# Memory as measured: per row, its values and indices, of which a growing run holds several sizes at once; per draw, a
# random number and its payoffs with what they are computed from
BYTES_PER_ROW, COPIES_WHILE_GROWING, BYTES_PER_DRAW = 74, 3, 72


class Progress(NamedTuple):
    """Where a run stands between two steps.

    Attributes:
        rows: All rows.
        extent: Which rows there are.
        shift: Subtracted from logits before the exponential.
        total: Total of the masses.
        tally: Of the groups since the last record.
    """

    rows: Rows
    extent: Extent
    shift: float
    total: float
    tally: Tally


class Draws(NamedTuple):
    """A drawn group; the rows say which actions it has.

    Attributes:
        found: Number of different actions in it.
        extent: With the rows that those of them that had none yet will get.
        successes: Number of correct rollouts.
        different: Number of different correct actions.
        correct_mass: Of the policy that it was drawn from; NaN if it was not asked for.
    """

    found: int
    extent: Extent
    successes: int
    different: int
    correct_mass: float


@compiled
def total_of(rows: Rows, end: int, shift: float) -> tuple[float, float]:
    """Shift and total of the masses; where the total is out of bounds, the largest logit becomes the shift."""
    total = accumulate(rows, end)
    if not LEAST_TOTAL < total < GREATEST_TOTAL:
        shift = largest_logit(rows, end)
        compute_masses(rows, end, shift)
        total = accumulate(rows, end)
    return shift, total


@compiled
def count_correct(rows: Rows, extent: Extent, found: int) -> tuple[int, int]:
    """Number of correct rollouts in the group, and of rows that they are of."""
    times, drawn = rows.times, rows.drawn
    successes, different = 0, 0
    for index in range(found):
        is_correct = int(drawn[index] < extent.first_wrong)
        different += is_correct
        successes += is_correct * times[drawn[index]]
    return successes, different


@compiled
def forget_draws(rows: Rows, found: int) -> None:
    """Sets the counts of the group back to zero."""
    times, drawn = rows.times, rows.drawn
    for index in range(found):
        times[drawn[index]] = 0


@compiled
def correct_share(rows: Rows, extent: Extent) -> float:
    """Correct mass of the policy."""
    of_correct, of_wrong = mass_of(rows, 0, extent.correct), mass_of(rows, extent.first_wrong, extent.end)
    return of_correct / (of_correct + of_wrong)


def _kernels(digest: str) -> tuple[Callable[..., Any], ...]:
    """Entries into compiled code, compiled at their first call, and kept on disk under the digest of all sources."""

    def begin(start: Start, out: FloatArray) -> tuple[Progress, Origin]:
        """The run before its first step; writes its measures into `out`, shape [measures]."""
        _ = digest  # what a function closes over is part of the name that it is kept under
        rows, extent = new_rows(start)
        shift = largest_logit(rows, extent.end)
        compute_masses(rows, extent.end, shift)
        progress = Progress(rows, extent, shift, accumulate(rows, extent.end), Tally(0, 0, 0.0, 0))
        origin = origin_of(rows, extent, shift, progress.total)
        record(out, rows, extent, origin, shift, progress.total, progress.tally)
        out[OF_POLICY:] = np.nan
        return progress, origin

    def draw(
        progress: Progress,
        group_size: int,
        step: int,
        key: KeyArray,
        buffer: FloatArray,
        with_correct_mass: bool,
    ) -> tuple[Progress, Draws]:
        """The group of a step."""
        _ = digest
        rows, extent, shift, total, tally = progress
        correct, wrong = hidden_actions(rows, extent)
        rows, extent = with_room(rows, extent, min(group_size, correct), min(group_size, wrong))
        correct_mass = correct_share(rows, extent) if with_correct_mass else np.nan
        found = draw_rows(rows, extent.end, total, group_size, step, key, buffer)
        grown = extent
        if correct + wrong > 0:
            found, grown = tell_members_apart(rows, extent, found, step, key)
        successes, different = count_correct(rows, extent, found)
        return Progress(rows, extent, shift, total, tally), Draws(found, grown, successes, different, correct_mass)

    def update(
        progress: Progress,
        draws: Draws,
        payoff: tuple[float, float, float],
        start: Start,
        origin: Origin,
        rule: Rule,
        group_size: int,
        step: int,
        recorded: bool,
        out: FloatArray,
    ) -> Progress:
        """The update by the group of a step; if it is recorded, writes the measures into `out`, shape [measures]."""
        _ = digest
        rows, extent, shift, total, tally = progress
        found, successes = draws.found, draws.successes
        weight, of_correct, of_wrong = payoff
        # before rows wake and change places: sums of their blocks are out of date from then on until the sweep
        wrong_mass, wrong_gain = mass_of(rows, extent.first_wrong, extent.end), 0.0
        # a group without a gradient must change nothing
        mean = 0.0
        if (successes > 0 and of_correct != 0.0) or (successes < group_size and of_wrong != 0.0):
            if rule.future < np.inf:
                extent = wake_drawn(rows, extent, found, rule, step)
            grown = draws.extent
            settle(rows, extent, grown, shift)
            extent = Extent(grown.correct, grown.first_wrong, grown.end, extent.moving_correct, extent.moving_wrong)
            mean = add_gradients(rows, extent, found, total, rule, step, (of_correct, of_wrong))
        active = 0 < successes < group_size
        tally = Tally(
            tally.groups + 1,
            tally.active + int(active),
            tally.weight + (weight if active else 0.0),
            tally.distinct_correct + draws.different,
        )
        if recorded:
            if rule.through_softmax:
                add_gradients_in_p(rows, extent.moving_correct, extent.correct, total, mean, rule)
                add_gradients_in_p(rows, extent.moving_wrong, extent.end, total, mean, rule)
                mean = 0.0
            centre = centre_of(rows, extent, rule, step, total)
            if step > rule.small_until:
                wrong_gain = wrong_gain_of(rows, extent, rule, step, centre)
        if rule.through_softmax:
            sweep_in_p(rows, extent.moving_wrong, extent.end, total, mean, rule, step, shift)
        else:
            sweep(rows, extent.moving_wrong, extent.end, rule, step, shift)
        if recorded:
            if step <= rule.small_until:
                # the sweep has told it, to within some roundings
                wrong_gain = mass_of(rows, extent.first_wrong, extent.end) - wrong_mass
            gained = wrong_mass, wrong_gain
            record_group(
                out[OF_POLICY:], rows, extent, found, start, rule, step, total, group_size, active, centre, gained
            )
        forget_draws(rows, found)
        if rule.through_softmax:
            sweep_in_p(rows, extent.moving_correct, extent.correct, total, mean, rule, step, shift)
        else:
            sweep(rows, extent.moving_correct, extent.correct, rule, step, shift)
        if rule.future < np.inf and step % STEPS_BETWEEN_CHECKS == 0:
            extent = put_to_sleep(rows, extent, rule, step)
        shift, total = total_of(rows, extent.end, shift)
        if recorded:
            record(out, rows, extent, origin, shift, total, tally)
            tally = Tally(0, 0, 0.0, 0)
        return Progress(rows, extent, shift, total, tally)

    return compiled_once(begin), compiled_once(draw), compiled_once(update)


begin, draw, update = _kernels(source_digest())


def _loop(digest: str) -> Callable[..., Progress]:
    """As `_kernels`. What is called must be global: the file on disk is named after what a function closes over."""

    def run_steps(
        progress: Progress,
        table: Payoffs,
        start: Start,
        origin: Origin,
        rule: Rule,
        group_size: int,
        recorded: IntArray,
        out: FloatArray,
        key: KeyArray,
        buffer: FloatArray,
    ) -> Progress:
        """From step recorded[0] to recorded[-1]; writes the measures at recorded[1:] into `out`."""
        _ = digest
        for index in range(1, recorded.size):
            for step in range(recorded[index - 1] + 1, recorded[index] + 1):
                progress, draws = draw(progress, group_size, step, key, buffer, False)
                successes = draws.successes
                payoff = table.weight[successes], table.of_correct[successes], table.of_wrong[successes]
                last = step == recorded[index]
                progress = update(progress, draws, payoff, start, origin, rule, group_size, step, last, out[index - 1])
        return progress

    return compiled_once(run_steps)


run_steps = _loop(source_digest())


def run(config: RunConfig, start: Start) -> tuple[IntArray, FloatArray, Progress]:
    """A run from any start, whatever config.policy says.

    Returns:
        Recorded steps, shape [R]; the measures, shape [R, len(MEASURES)]; the final state.
    """
    rule = rule_of(config.update, config.steps, float(np.abs(start.logit).max()))
    key, buffer = stream_words(config.stream_key), buffer_for(config.group_size)
    recorded = np.array(config.recorded_steps)
    out = np.empty((recorded.size, len(MEASURES)))

    progress, origin = begin(start, out[0])
    table = payoff_table(config)
    if table is None:
        return recorded, out, _run_one_by_one(config, start, progress, origin, rule, out)
    work = config.record_every * (config.group_size + int(start.multiplicity.sum()))
    records = max(1, WORK_AT_ONCE // work)
    for first in range(0, recorded.size - 1, records):
        part = slice(first + 1, first + 1 + records)
        steps = recorded[first : part.stop]
        progress = run_steps(progress, table, start, origin, rule, config.group_size, steps, out[part], key, buffer)
    return recorded, out, progress


def _run_one_by_one(
    config: RunConfig, start: Start, progress: Progress, origin: Origin, rule: Rule, out: FloatArray
) -> Progress:
    """All steps, for weights that are no function of the number of correct rollouts alone."""
    group_size = config.group_size
    key, buffer = stream_words(config.stream_key), buffer_for(group_size)
    estimate = SUCCESS_ESTIMATES[config.success_estimate](config)
    record_at = {step: index for index, step in enumerate(config.recorded_steps)}
    for step in range(1, config.steps + 1):
        progress, draws = draw(progress, group_size, step, key, buffer, True)
        empirical_success_rate = draws.successes / group_size
        success_rate = estimate(empirical_success_rate, draws.correct_mass)
        payoff = tuple(float(one) for one in payoffs(config, empirical_success_rate, success_rate))
        line = out[record_at.get(step, 0)]
        progress = update(progress, draws, payoff, start, origin, rule, group_size, step, step in record_at, line)
    return progress


def supports(config: RunConfig) -> bool:
    """Whether the engine has what the run names: all that a configuration can name today."""
    return config.update.surrogate in SURROGATES and config.update.optimizer in SCHEDULES


def bytes_needed(config: RunConfig) -> int:
    """Memory that the largest moment of a run takes, in bytes, about: by the rows that its first policy would draw."""
    start, group_size = start_of(config.policy), config.group_size
    weight = np.exp(start.logit - start.logit.max())
    probability = weight / (start.multiplicity @ weight)
    drawn = -np.expm1(-float(group_size) * config.steps * probability)
    rows = start.logit.size + start.multiplicity @ drawn
    # a group that can draw all actions has room made for them all in the first step
    copies = 1 if group_size >= config.policy.actions else COPIES_WHILE_GROWING
    draws = group_size if group_size <= LARGEST_TABLE else DRAWS_AT_ONCE
    return int(BYTES_PER_ROW * rows * copies + BYTES_PER_DRAW * draws)


def prepare() -> None:
    """Has the compiled code on disk, so that several processes need not each compile it."""
    policy = PolicyConfig(actions=2, correct=1)
    for success_estimate in ("empirical", "ema"):
        simulate_sparse(RunConfig(1, steps=1, success_estimate=success_estimate, policy=policy))


def simulate_sparse(config: RunConfig) -> Trajectory:
    """Runs one configuration to its end: the law of the reference engine, ten to several hundred times as fast.

    Bit for bit the same for the same configuration on the same machine, in any process.
    """
    recorded, out, _ = run(config, start_of(config.policy))
    columns: dict[str, Any] = {name: out[:, index].copy() for index, name in enumerate(MEASURES)}
    return Trajectory(config=config, engine=ENGINE, step=recorded, **columns)
