"""What looks wrong with a run: each sign is one note with its numbers and a way out."""

from collections.abc import Callable
from math import isnan

from fgrpo.diagnosis.model import LoggedWeights, Part, Trend
from fgrpo.diagnosis.rollouts import Note, Rollouts

ZERO_VARIANCE = 0.5
"""Share of zero-variance groups from which on a run is warned of."""
NEARLY_SOLVED = 0.9
"""Success rate of the last window from which on a rising one is warned of."""
NEARLY_TRUNCATED = 0.9
SMALLEST_TELLING_GROUP = 4
"""Groups of fewer rollouts tell little of a success rate."""
DOUBTS = ("unreadable_files", "advantages_do_not_fit")
"""Notes of reading that are warnings: numbers of a part of the run, or of wrong groups."""
_MOST_LEVELS = 2
_RATE_TOLERANCE = 1e-4


def warning_signs(
    rollouts: Rollouts,
    run: Part,
    windows: tuple[Part, ...],
    trends: tuple[Trend, ...],
    group_size: int,
    weights: LoggedWeights | None,
) -> tuple[Note, ...]:
    """The signs that a run shows, in a fixed order: first what puts all numbers in doubt.

    Args:
        rollouts: The run.
        run: Its measures.
        windows: Those of its windows.
        trends: First window against last.
        group_size: N of the regimes.
        weights: What its logged weights are, if it logged any.

    Source: this project.
    """
    doubts = [note for note in rollouts.notes if note.code in DOUBTS]
    signs: list[Callable[[], Note | None]] = [
        lambda: _truncated(run),
        lambda: _threshold_outside(rollouts),
        lambda: _zero_variance(rollouts, run, group_size),
        lambda: _not_binary(rollouts),
        lambda: _nearly_solved(windows, trends),
        lambda: _sizes_vary(rollouts),
        lambda: _small_groups(group_size),
        lambda: _weights(weights),
        lambda: _other_success(weights),
    ]
    return (*doubts, *(note for sign in signs if (note := sign()) is not None))


def _truncated(run: Part) -> Note | None:
    share = run.truncated_share
    if isnan(share) or share < NEARLY_TRUNCATED:
        return None
    extent = "All" if share == 1.0 else f"{share:.1%} of the"
    return Note(
        "all_truncated",
        0,
        f"{extent} rollouts are truncated: rewards judge unfinished answers. Raise the longest completion length.",
    )


def _threshold_outside(rollouts: Rollouts) -> Note | None:
    low, high, threshold = min(rollouts.rewards), max(rollouts.rewards), rollouts.layout.success_threshold
    if low == high or low <= threshold < high:
        return None
    verdict = "right" if threshold < low else "wrong"
    return Note(
        "threshold_outside_rewards",
        0,
        f"{rollouts.layout.success_column!r} goes from {low:g} to {high:g}: with right above {threshold:g} every "
        f"rollout counts as {verdict}. Set --success-threshold to at least {low:g} and below {high:g}.",
    )


def _zero_variance(rollouts: Rollouts, run: Part, group_size: int) -> Note | None:
    if group_size == 1 or _threshold_outside(rollouts) is not None:  # then that is why, and no advice on training
        return None
    wrong, right = run.all_wrong_share.estimate, run.all_right_share.estimate
    if wrong + right <= ZERO_VARIANCE:
        return None
    return Note(
        "zero_variance_groups",
        round((wrong + right) * run.groups),
        f"{wrong + right:.1%} of the groups have no variance ({wrong:.1%} all wrong, {right:.1%} all right) and teach "
        "nothing. Larger groups, or prompts of middling difficulty, are active more often.",
    )


def _not_binary(rollouts: Rollouts) -> Note | None:
    levels = len(rollouts.rewards)
    if levels <= _MOST_LEVELS:
        return None
    low, high, threshold = min(rollouts.rewards), max(rollouts.rewards), rollouts.layout.success_threshold
    return Note(
        "reward_not_binary",
        levels,
        f"{rollouts.layout.success_column!r} has {levels} different values from {low:g} to {high:g}: it does not look "
        f"binary. Above {threshold:g} counts as right; set --success-threshold, or name another --success-column.",
    )


def _nearly_solved(windows: tuple[Part, ...], trends: tuple[Trend, ...]) -> Note | None:
    rising = any(trend.quantity == "success_rate" and trend.direction == "rising" for trend in trends)
    if not rising or windows[-1].success_rate.estimate < NEARLY_SOLVED:
        return None
    first, last = windows[0].success_rate.estimate, windows[-1].success_rate.estimate
    return Note(
        "success_near_one",
        0,
        f"The success rate has risen from {first:.3f} to {last:.3f}: most groups are or soon will be all right, and "
        "what is still active pulls towards answers that are common already. Stop, or add harder prompts.",
    )


def _sizes_vary(rollouts: Rollouts) -> Note | None:
    sizes = set(rollouts.rows_G.tolist())
    if len(sizes) == 1:
        return None
    return Note(
        "group_size_varies",
        len(sizes),
        f"Groups have {min(sizes)} to {max(sizes)} rollouts. Estimates are those of each group's own size; regimes are "
        "at the size named above.",
    )


def _small_groups(group_size: int) -> Note | None:
    if group_size >= SMALLEST_TELLING_GROUP:
        return None
    if group_size == 1:
        text = "With N = 1 no group is ever active, and nothing here says anything of tail misses. "
        way = "Leave --group-size out, or give the rollouts of one prompt in one generation the same step."
        return Note("group_too_small", 0, text + way)
    why = {
        2: "every active group has X/N = 1/2, so a focal weight is a constant",
    }.get(group_size, f"X/N has {group_size + 1} values")
    return Note(
        "group_too_small",
        0,
        f"With N = {group_size} a group tells little of its prompt's success rate ({why}): regimes of prompts seen "
        "once or twice are mostly the prior's.",
    )


def _weights(weights: LoggedWeights | None) -> Note | None:
    if weights is None or weights.verdict not in ("not focal", "constant"):
        return None
    return Note(
        "weights_not_focal",
        weights.groups,
        f"The logged weights are not (1 - success rate)^gamma of their groups: {weights.verdict}.",
    )


def _other_success(weights: LoggedWeights | None) -> Note | None:
    if weights is None or isnan(weights.success_rate_difference) or weights.success_rate_difference <= _RATE_TOLERANCE:
        return None
    return Note(
        "other_success",
        0,
        f"The run logged success rates that differ by up to {weights.success_rate_difference:.3g} from those that are "
        "recomputed here: it judges success otherwise. Set --success-column and --success-threshold as the run did.",
    )
