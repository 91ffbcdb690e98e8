"""What the tiny-world experiment shows: sentences with a direction, and a verdict that follows from an interval.

The rule: a sentence is 'shown' if the t interval over the seeds lies wholly on the side that it names, 'the opposite is
shown' if wholly on the other side, 'not shown' if it holds 0, and 'undetermined' where there is no interval.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fgrpo.llm.experiment.arms import ARMS
from fgrpo.llm.experiment.groups_table import critical_z
from fgrpo.llm.experiment.intervals import SeedMean
from fgrpo.llm.experiment.protocol import BASELINE, PRIMARY_ARM, PRIMARY_METRIC, Protocol
from fgrpo.theory.intervals import Interval

SHOWN, OPPOSITE, NOT_SHOWN, UNDETERMINED = "shown", "the opposite is shown", "not shown", "undetermined"
METRIC_WORDS = {
    "correct_mass": "pass@1",
    "retained_mass": "M_ret",
    "effective_number": "effective number",
    "held_out_pass_at_256": "held-out pass@256",
}
PLACE_WORDS = {"step": "update", "rollouts": "rollouts", "correct_mass": "pass@1", "kl": "KL"}


@dataclass(frozen=True)
class Statement:
    """A sentence, the interval that decides it, and the side of 0 that it names.

    Attributes:
        key: A short name that stays the same.
        sentence: What is claimed.
        found: The mean over seeds and its limits.
        side: 1 if the sentence says that it is above 0, -1 below.
    """

    key: str
    sentence: str
    found: SeedMean
    side: int

    @property
    def verdict(self) -> str:
        """By the rule of the module's text."""
        sign = self.found.interval.sign
        if sign is None:
            return UNDETERMINED
        return {self.side: SHOWN, -self.side: OPPOSITE, 0: NOT_SHOWN}[sign]

    @property
    def words(self) -> str:
        """The interval in words, with what else a reader needs to judge it."""
        if self.found.seeds == 0:
            return "no seed gets there"
        if self.found.interval.sign is None:
            return f"{self.found.interval.mean:+.3f} in one seed, which has no interval"
        text = interval_text(self.found)
        if self.verdict == NOT_SHOWN:
            text += f"; a mean beyond {self.found.interval.half_width:.3f} would have been told from 0"
        return text


def interval_text(found: SeedMean) -> str:
    """Mean, limits and number of seeds."""
    if found.seeds == 0:
        return "not reached"
    interval, seeds = found.interval, seeds_text(found.seeds)
    if math.isnan(interval.lower):
        return f"{interval.mean:+.3f} ({seeds})"
    return f"{interval.mean:+.3f} [{interval.lower:+.3f}, {interval.upper:+.3f}] ({seeds})"


def seeds_text(count: int) -> str:
    """`1 seed`, `5 seeds`."""
    return f"{count} seed" if count == 1 else f"{count} seeds"


def find_interval(table: pd.DataFrame, **wanted: Any) -> SeedMean | None:
    """The interval of the one row of a table with these values; None if there is none."""
    rows = table
    for column, value in wanted.items():
        if rows.empty:  # an empty table has no columns
            return None
        rows = rows[rows[column] == value]
    if rows.empty:
        return None
    row = rows.iloc[0]
    return SeedMean(Interval(*(float(row[name]) for name in Interval._fields)), int(row["seeds"]))


def primary_statement(numbers: Mapping[str, Any]) -> Statement | None:
    """The comparison that the protocol names; None where its arms did not run."""
    return _compared(
        numbers,
        "primary",
        f"{ARMS[PRIMARY_ARM].label} retains more mass than {ARMS[BASELINE].label}, after equal updates",
        (PRIMARY_ARM, BASELINE),
        ("step", None),
        PRIMARY_METRIC,
        1,
    )


def statements(numbers: Mapping[str, Any], protocol: Protocol) -> list[Statement]:
    """All secondary sentences for which there are runs, in the order of the report."""
    made = [*_of_baseline(numbers), *_of_arms(numbers), *_at_matched(numbers, protocol), *_of_controls(numbers)]
    return [statement for statement in made if statement is not None]


def _compared(
    numbers: Mapping[str, Any],
    key: str,
    sentence: str,
    pair: tuple[str, str],
    place: tuple[str, float | None],
    metric: str,
    side: int,
) -> Statement | None:
    on, level = place
    wanted: dict[str, Any] = {"arm": pair[0], "other": pair[1], "on": on, "metric": metric}
    if level is not None:
        wanted["level"] = level
    interval = find_interval(numbers["comparisons"], **wanted)
    return None if interval is None else Statement(key, sentence, interval, side)


def _of_baseline(numbers: Mapping[str, Any]) -> Iterator[Statement | None]:
    for metric, side in (
        ("correct_mass", 1),
        ("retained_mass", -1),
        ("effective_number", -1),
        ("held_out_pass_at_256", -1),
    ):
        interval = find_interval(numbers["changes"], arm=BASELINE, metric=metric)
        verb = "rises" if side > 0 else "falls"
        if interval is not None:
            yield Statement(
                f"baseline_{metric}", f"under {ARMS[BASELINE].label} {METRIC_WORDS[metric]} {verb}", interval, side
            )


def _of_arms(numbers: Mapping[str, Any]) -> Iterator[Statement | None]:
    for arm in ("focal_g05_n8", PRIMARY_ARM):
        for metric, side in (
            ("retained_mass", 1),
            ("effective_number", 1),
            ("held_out_pass_at_256", 1),
            ("correct_mass", -1),
        ):
            if (arm, metric) == (PRIMARY_ARM, PRIMARY_METRIC):
                continue
            more = "more" if side > 0 else "less"
            words = f"{ARMS[arm].label} has {more} {METRIC_WORDS[metric]} than GRPO, after equal updates"
            yield _compared(
                numbers,
                f"{arm}_{metric}",
                words,
                (arm, BASELINE),
                ("step", None),
                metric,
                side,
            )
    yield _compared(
        numbers,
        "dose",
        "gamma 1 retains more mass than gamma .5, after equal updates",
        (PRIMARY_ARM, "focal_g05_n8"),
        ("step", None),
        PRIMARY_METRIC,
        1,
    )


def _at_matched(numbers: Mapping[str, Any], protocol: Protocol) -> Iterator[Statement | None]:
    places = [
        *(("correct_mass", level) for level in protocol.matched_pass_at_1),
        *(("kl", level) for level in protocol.matched_kl),
    ]
    for arm in ("focal_g05_n8", PRIMARY_ARM, "low_lr"):
        for on, level in places:
            yield _compared(
                numbers,
                f"{arm}_at_{on}_{level:g}",
                f"{ARMS[arm].label} retains more mass than GRPO where both have {PLACE_WORDS[on]} {level:g}",
                (arm, BASELINE),
                (on, level),
                PRIMARY_METRIC,
                1,
            )


def _of_controls(numbers: Mapping[str, Any]) -> Iterator[Statement | None]:
    for other in ("low_lr", "constant_scale"):
        label = ARMS[other].label
        yield _compared(
            numbers,
            other,
            f"{label} retains more mass than GRPO, after equal updates",
            (other, BASELINE),
            ("step", None),
            PRIMARY_METRIC,
            1,
        )
        yield _compared(
            numbers,
            f"primary_beyond_{other}",
            f"{ARMS[PRIMARY_ARM].label} retains more mass than the control '{label}', after equal updates",
            (PRIMARY_ARM, other),
            ("step", None),
            PRIMARY_METRIC,
            1,
        )
        yield _compared(
            numbers,
            f"primary_beyond_{other}_at_0.9",
            f"{ARMS[PRIMARY_ARM].label} retains more mass than the control '{label}' where both have pass@1 .9",
            (PRIMARY_ARM, other),
            ("correct_mass", 0.9),
            PRIMARY_METRIC,
            1,
        )
    for size, side in ((2, 1), (32, -1)):
        for on in ("step", "rollouts"):
            yield _compared(
                numbers,
                f"n{size}_{on}",
                f"GRPO retains {'more' if side > 0 else 'less'} mass at N = {size} than at N = 8, after equal "
                f"{'updates' if on == 'step' else 'rollouts'}",
                (f"grpo_n{size}", BASELINE),
                (on, None),
                PRIMARY_METRIC,
                side,
            )


def sharpening(numbers: Mapping[str, Any]) -> str:
    """Whether pass@1 rises while M_ret, effective number and held-out pass@256 fall: shown if all four are."""
    verdicts = [statement.verdict for statement in _of_baseline(numbers) if statement is not None]
    if not verdicts or UNDETERMINED in verdicts:
        return UNDETERMINED
    if all(verdict == SHOWN for verdict in verdicts):
        return SHOWN
    return OPPOSITE if OPPOSITE in verdicts else NOT_SHOWN


def remaining_share(numbers: Mapping[str, Any], level: float) -> float | None:
    """What is left of the primary difference where both arms have a pass@1, as a share; None where there is none."""
    equal = primary_statement(numbers)
    matched = _compared(numbers, "", "", (PRIMARY_ARM, BASELINE), ("correct_mass", level), PRIMARY_METRIC, 1)
    if equal is None or matched is None or not equal.found.interval.mean > 0 or math.isnan(matched.found.interval.mean):
        return None
    return matched.found.interval.mean / equal.found.interval.mean


def tail_miss_agreement(numbers: Mapping[str, Any], protocol: Protocol) -> tuple[str, float]:
    """Whether observed tail misses of GRPO agree with the closed form at all its group sizes, and the bound of |z|."""
    z = [row["z"] for _, row in numbers["tail_miss"].iterrows() if str(row["arm"]).startswith("grpo_")]
    bound = critical_z(protocol.tail_miss_false_alarm, max(1, len(z)))
    if not z:
        return UNDETERMINED, bound
    return ("agree" if max(map(abs, z)) <= bound else "disagree"), bound
