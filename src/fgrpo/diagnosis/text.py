"""A diagnosis in plain words, legible at 100 columns."""

from collections.abc import Iterator
from math import isnan

from fgrpo.diagnosis.model import Diagnosis, Estimate, LoggedWeights, Part, Trend
from fgrpo.diagnosis.rollouts import counted
from fgrpo.words import name, percent, short, table, words

MOST_PROMPTS = 5
_KINDS = {"trl": ("table", "of completions of a TRL run"), "rows": ("file", "with a row per rollout")}
_ANSWERS = {
    "boxed": r"answers are told apart by their last \boxed{}, white space and $ left out",
    "text": "answers are told apart by their whole text",
}


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """The diagnosis as paragraphs and small tables, warnings first.

    Args:
        diagnosis: Answer of `fgrpo.diagnosis.diagnose.diagnose`.

    Returns:
        Lines of at most 100 characters (but for wide tables), without a newline at the end.

    Source: this project.
    """
    return "\n".join(
        line
        for section in (_read, _warnings, _overview, _tail_misses, _over_time, _answers, _prompts, _focal, _logged)
        for line in section(diagnosis)
    )


def _read(diagnosis: Diagnosis) -> Iterator[str]:
    layout, run = diagnosis.layout, diagnosis.run
    sizes = ", ".join(f"{size} in {counted(groups, 'group')}" for size, groups in diagnosis.group_sizes[:6])
    more = ", ..." if len(diagnosis.group_sizes) > 6 else ""
    noun, of_what = _KINDS[layout.kind]
    yield words(
        f"{diagnosis.path}: {counted(run.rollouts, 'scored rollout')} of {counted(run.prompts, 'different prompt')}, "
        f"in {counted(run.groups, 'group')}; logged steps {window_name(run)}; read from "
        f"{counted(layout.files, noun)} {of_what}."
    )
    yield words(f"Right is {layout.success_column!r} above {short(layout.success_threshold)}.")
    yield words(f"Groups: {layout.rule}. Rollouts per group: {sizes}{more}; N = {diagnosis.group_size}.")
    for note in diagnosis.notes:
        yield words(f"Note: {note.text}")


def _warnings(diagnosis: Diagnosis) -> Iterator[str]:
    yield ""
    if not diagnosis.warnings:
        yield "Warnings: none"
    for note in diagnosis.warnings:
        yield words(f"WARNING {note.code}: {note.text}")


def _overview(diagnosis: Diagnosis) -> Iterator[str]:
    run = diagnosis.run
    yield ""
    yield f"Over all logged steps ({diagnosis.confidence:.0%} intervals take groups as independent)"
    yield from table(
        ("", "", "interval", ""),
        (
            ("success rate", short(run.success_rate.estimate), _limits(run.success_rate), "mean of X/N"),
            _share("active groups", run.active_share, "some right, some wrong"),
            _share("all wrong", run.all_wrong_share, "no variance, no update"),
            _share("all right", run.all_right_share, "no variance, no update"),
        ),
    )
    if not isnan(run.truncated_share):
        yield f"  Truncated rollouts: {percent(run.truncated_share)}"


def _tail_misses(diagnosis: Diagnosis) -> Iterator[str]:
    if not diagnosis.run.tail_miss:
        return
    yield ""
    yield words(
        "Tail misses: active groups without a rollout from the rare part of the right answers. How large that part is "
        "(rare fraction, of the success rate) is your assumption. Estimates: the mean of (1 - rare fraction)^X over "
        "active groups is unbiased; the closed form at X/N in place of the success rate is not."
    )
    yield from table(
        ("rare fraction", "Pr(tail miss)", "interval", "biased plug-in", "first to last window"),
        (
            (
                short(miss.rare_fraction),
                short(miss.probability.estimate),
                _limits(miss.probability),
                short(miss.plug_in),
                _change(diagnosis, "tail_miss", miss.rare_fraction),
            )
            for miss in diagnosis.run.tail_miss
        ),
    )
    part = diagnosis.windows[-1]
    yield words(
        f"Regimes at N = {diagnosis.group_size} of the {part.prompts} prompts of the last window (steps "
        f"{window_name(part)}), level {short(diagnosis.level)}, at success rates shrunk by a uniform "
        "prior:"
    )
    yield from table(
        ("rare fraction", "inactive", "miss-prone", "covered"),
        (
            (short(one.rare_fraction), percent(one.inactive), percent(one.miss_prone), percent(one.covered))
            for one in part.regimes
        ),
    )


def _over_time(diagnosis: Diagnosis) -> Iterator[str]:
    if len(diagnosis.windows) < 2:
        return
    yield ""
    rhos = [miss.rare_fraction for miss in diagnosis.run.tail_miss]
    yield "Over time"
    yield from table(
        ("steps", "groups", "success rate", "active", "all wrong", "all right", *(f"miss at {r:g}" for r in rhos)),
        (
            (
                window_name(part),
                str(part.groups),
                short(part.success_rate.estimate),
                *(percent(one.estimate) for one in (part.active_share, part.all_wrong_share, part.all_right_share)),
                *(short(miss.probability.estimate) for miss in part.tail_miss),
            )
            for part in diagnosis.windows
        ),
    )
    yield words(
        f"Success rate: {_change(diagnosis, 'success_rate')}. Active: {_change(diagnosis, 'active_share')}.", "  "
    )


def _answers(diagnosis: Diagnosis) -> Iterator[str]:
    yield ""
    if diagnosis.answer == "none":
        yield "Distinct right answers: not known, the run has no text of right rollouts"
        return
    run, first, last = diagnosis.run, diagnosis.windows[0], diagnosis.windows[-1]
    counts = [history.distinct_correct or 0 for history in diagnosis.prompts]
    yield words(f"Distinct right answers ({_ANSWERS[diagnosis.answer]})")
    yield words(
        f"per prompt over the run: mean {short(sum(counts) / len(counts))}, most {max(counts)}; per group with a right "
        f"rollout: {short(run.distinct_correct)}; pairs of right rollouts of a group that differ: "
        f"{percent(run.correct_pairs_differ)} (first window {percent(first.correct_pairs_differ)}, last "
        f"{percent(last.correct_pairs_differ)}).",
        "  ",
    )
    if diagnosis.answer == "boxed" and max(counts) <= 1:
        yield words("No prompt has two: where a right answer is unique, --answer text tells solutions apart.", "  ")


def _prompts(diagnosis: Diagnosis) -> Iterator[str]:
    rhos = [miss.rare_fraction for miss in diagnosis.run.tail_miss]
    yield ""
    order = f", the largest tail-miss estimate at {rhos[0]:g} first" if rhos else ""
    yield f"Prompts ({min(MOST_PROMPTS, len(diagnosis.prompts))} of {len(diagnosis.prompts)}{order}; all in --json)"
    yield from table(
        (
            "prompt",
            "groups",
            "success rate",
            "interval",
            "last window",
            *(f"miss at {rho:g}" for rho in rhos),
            "regime",
        ),
        (
            (
                name(one.prompt),
                str(one.groups),
                short(one.success_rate.estimate),
                _limits(one.success_rate),
                short(one.windows[-1].success_rate.estimate),
                *map(short, one.tail_miss),
                one.regimes[0] if one.regimes else "-",
            )
            for one in diagnosis.prompts[:MOST_PROMPTS]
        ),
    )


def _focal(diagnosis: Diagnosis) -> Iterator[str]:
    rhos = [miss.rare_fraction for miss in diagnosis.run.tail_miss]
    yield ""
    yield words(
        "What the focal weight (1 - X/N)^gamma would have been on these groups (recomputed; a run with it would have "
        "gone elsewhere). Strength is the mean size of a group's advantages, divided by the group's standard deviation "
        "(without division: see --json)."
    )
    bands = [f"X/N {band.low:g}-{band.high:g}" for band in diagnosis.bands]
    yield from table(
        ("gamma", "mean weight", "if active", "effective groups", "total strength", *(f"miss at {r:g}" for r in rhos)),
        (
            (
                short(row.gamma),
                short(row.mean_weight),
                short(row.mean_weight_given_active),
                percent(row.effective_share),
                short(row.strength[0].matched_scale),
                *map(percent, row.strength[0].tail_miss_shares),
            )
            for row in diagnosis.what_if
        ),
    )
    yield words(
        "effective groups: (sum g)^2 / sum g^2 over the active groups; total strength: the constant factor of a "
        "control run; miss at: estimated share of the strength in tail-miss groups. Share of the strength by X/N:",
        "  ",
    )
    yield from table(
        ("gamma", *bands),
        ((short(row.gamma), *map(percent, row.strength[0].shares)) for row in diagnosis.what_if),
    )
    yield from table(
        ("active groups", *bands),
        [("", *(f"{percent(band.share_of_active_groups)} ({band.groups})" for band in diagnosis.bands))],
    )


def _logged(diagnosis: Diagnosis) -> Iterator[str]:
    if (weights := diagnosis.logged_weights) is None:
        return
    yield ""
    yield words(f"Logged weights: {verdict_words(weights)}")


def verdict_words(weights: LoggedWeights) -> str:
    """What the logged weights are, in a sentence."""
    fit = f"gamma {short(weights.gamma)}, largest error {short(weights.largest_error)}"
    about = f"on {counted(weights.groups, 'active group')}, mean {short(weights.mean_weight)}"
    return {
        "focal": f"focal, (1 - success rate)^gamma with {fit} ({about}).",
        "focal, renormalised": f"focal up to a factor for each step (renormalised), {fit} ({about}).",
        "no weight": f"all 1: no weight ({about}).",
        "constant": f"a constant, whatever the success rate ({about}): not focal.",
        "not focal": f"not focal ({about}); the best exponent gives {fit}.",
        "cannot tell": f"cannot be told from a constant: X/N is the same in all groups, or there are none ({about}).",
    }[weights.verdict]


def trend_words(trend: Trend) -> str:
    """A trend in words: its direction, the change and its interval."""
    change = trend.change
    limits = "" if isnan(change.lower) else f" ({change.lower:+.3f} to {change.upper:+.3f})"
    return f"{trend.direction}, {change.estimate:+.3f}{limits}"


def _change(diagnosis: Diagnosis, quantity: str, rare_fraction: float | None = None) -> str:
    for trend in diagnosis.trends:
        if trend.quantity == quantity and rare_fraction in (None, trend.rare_fraction):
            return trend_words(trend)
    return "-"


def _share(title: str, share: Estimate, meaning: str) -> tuple[str, str, str, str]:
    limits = "-" if isnan(share.lower) else f"{share.lower:.1%} to {share.upper:.1%}"
    return title, percent(share.estimate), limits, meaning


def _limits(estimate: Estimate) -> str:
    return "-" if isnan(estimate.lower) else f"{short(estimate.lower)} to {short(estimate.upper)}"


def window_name(part: Part) -> str:
    """The steps of a window."""
    return f"{part.first_step}" if part.first_step == part.last_step else f"{part.first_step} to {part.last_step}"
