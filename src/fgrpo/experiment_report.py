"""The report of the tiny-world experiment: Markdown and JSON, every sentence derived from the numbers."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

import fgrpo
from fgrpo.experiment_verdicts import (
    METRIC_WORDS,
    NOT_SHOWN,
    Statement,
    find_interval,
    interval_text,
    primary_statement,
    remaining_share,
    seeds_text,
    sharpening,
    statements,
    tail_miss_agreement,
)
from fgrpo.llm.experiment.arms import ARMS, CORE
from fgrpo.llm.experiment.intervals import SeedMean, last_step, seeds_where
from fgrpo.llm.experiment.protocol import BASELINE, PRIMARY_ARM, PRIMARY_METRIC, Protocol
from fgrpo.report import markdown_table
from fgrpo.simulate.files import write_atomically
from fgrpo.theory.intervals import Interval

REPORT, NUMBERS, FIGURE, TABLE = "report.md", "numbers.json", "tiny_world", "runs.parquet"
_SHOWN_METRICS = tuple(METRIC_WORDS)


def write_report(runs: pd.DataFrame, protocol: Protocol, folder: Path) -> list[Path]:
    """Write the table of all runs, the numbers, the figure and the report.

    Args:
        runs: The rows of all runs.
        protocol: The protocol that they followed.
        folder: Where to.

    Returns:
        The files, the report first.

    Raises:
        OSError: If a file cannot be written.
    """
    from io import BytesIO

    from fgrpo.figures.save import save_figure
    from fgrpo.figures.tiny_world import figure_tiny_world, tiny_world_alt_text, tiny_world_data
    from fgrpo.llm.experiment.numbers import experiment_numbers

    numbers = experiment_numbers(runs, protocol)
    arms = list(numbers["final"]["arm"].unique())
    drawn = {name: ARMS[name].label for name in ([*CORE] if set(CORE) <= set(arms) else arms[: len(CORE)])}
    data = tiny_world_data(numbers["curves"], numbers["tail_miss"], drawn)
    table = BytesIO()
    runs.to_parquet(table, index=False)
    write_atomically(folder / TABLE, table.getvalue())
    write_atomically(folder / NUMBERS, numbers_json(numbers, protocol).encode())
    figures = save_figure(figure_tiny_world(data), folder, FIGURE, data=data, description=tiny_world_alt_text(data))
    write_atomically(folder / REPORT, report_text(numbers, protocol).encode())
    return [folder / REPORT, folder / NUMBERS, folder / TABLE, *figures]


def numbers_json(numbers: Mapping[str, Any], protocol: Protocol) -> str:
    """The numbers, the protocol and the verdicts as JSON; what does not exist is null."""
    primary = primary_statement(numbers)
    agreement, bound = tail_miss_agreement(numbers, protocol)
    content = {
        "fgrpo_version": fgrpo.__version__,
        "protocol": vars(protocol),
        "primary": None if primary is None else _statement_json(primary),
        "sharpening": sharpening(numbers),
        "statements": [_statement_json(statement) for statement in statements(numbers, protocol)],
        "tail_miss_agreement": {"verdict": agreement, "largest_z_allowed": bound},
        **{name: table.to_dict("records") for name, table in numbers.items()},
    }
    return json.dumps(_without_nan(content), indent=1) + "\n"


def _statement_json(statement: Statement) -> dict[str, Any]:
    return {
        "key": statement.key,
        "sentence": statement.sentence,
        "verdict": statement.verdict,
        **statement.found.columns(),
    }


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def report_text(numbers: Mapping[str, Any], protocol: Protocol) -> str:
    """The report as Markdown text."""
    made = statements(numbers, protocol)
    parts = [
        "# The tiny world: what training keeps of rare correct answers",
        _setting(numbers, protocol),
        f"![Pass@1, retained mass and tail misses]({FIGURE}.png)",
        "## What is shown",
        _primary(numbers),
        _sharpening(numbers),
        _remaining(numbers, protocol),
        _tail_miss_words(numbers, protocol),
        "Secondary sentences. A sentence is 'shown' if its t interval over the seeds "
        f"({protocol.level:.0%}) lies wholly on the side that it names, 'the opposite is shown' if wholly on the "
        "other, 'not shown' if it holds 0. There is no correction for the number of sentences: of twenty about "
        "nothing, one comes out as shown or as its opposite.",
        markdown_table(
            ["sentence", "verdict", "measured"],
            [[statement.sentence, f"**{statement.verdict}**", statement.words] for statement in made],
        ),
        _not_shown(made),
        "## The arms at the end",
        _final(numbers),
        "## Differences to the baseline",
        "Paired by seed: at equal updates, at equal rollouts (the smaller total of the two), and where both runs first "
        "reach a pass@1 or a KL divergence from the start (linear between evaluations). Seeds in which one of the two "
        "does not get there are left out, which is no random choice: beware of fewer seeds in a row.",
        _comparisons(numbers),
        f"## Who gains: {ARMS[PRIMARY_ARM].label} against {ARMS[BASELINE].label}, by prompt",
        _who_gains(numbers),
        "## Tail misses and unsampled correct mass",
        _tail_miss(numbers, protocol),
        "## The weight on one prompt",
        _weights(numbers),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _setting(numbers: Mapping[str, Any], protocol: Protocol) -> str:
    seeds = int(numbers["final"]["seeds"].max())
    return (
        f"16 prompts ask for three digits with a given sum (28 to 75 correct answers each); three answers are common, "
        "all others rare. A base model trained from scratch is trained on by the real TRL trainer: "
        f"{protocol.steps} updates, {protocol.prompts_per_update} prompts each, AdamW {protocol.learning_rate:g}, "
        f"{seeds_text(seeds)} (base model, world and training). Every number of a policy is exact: all correct "
        "completions are scored; only the KL divergence is that of a coarser outcome, the three digits written first, "
        "and so a lower bound. M_ret is the primary number. The verifier of the held-out prompts accepts a hidden "
        "quarter of the rare answers, so that its pass@k is a mass of rare answers by construction. Seeds, settings "
        f"and the primary comparison were fixed in `Protocol` before the runs. fgrpo {fgrpo.__version__}."
    )


def _primary(numbers: Mapping[str, Any]) -> str:
    primary = primary_statement(numbers)
    if primary is None:
        return "The arms of the primary comparison did not run."
    all_curves = numbers["curves"]
    step = last_step(all_curves, (PRIMARY_ARM, BASELINE))
    arm, other = (seeds_where(all_curves, name, "step", step)[PRIMARY_METRIC] for name in (PRIMARY_ARM, BASELINE))
    by_seed = ", ".join(f"{difference:+.3f}" for difference in arm - other)
    return (
        f"**Primary comparison: {primary.sentence}: {primary.verdict}**, M_ret {primary.words}. "
        f"Seed by seed: {by_seed}."
    )


def _sharpening(numbers: Mapping[str, Any]) -> str:
    parts = [
        f"{words} {interval_text(interval)}"
        for metric, words in METRIC_WORDS.items()
        if (interval := find_interval(numbers["changes"], arm=BASELINE, metric=metric)) is not None
    ]
    return (
        f"**That pass@1 rises while M_ret, effective number and held-out pass@256 fall under {ARMS[BASELINE].label}: "
        f"{sharpening(numbers)}.** Changes from the start: {'; '.join(parts)}."
    )


def _remaining(numbers: Mapping[str, Any], protocol: Protocol) -> str:
    parts = []
    for level in protocol.matched_pass_at_1:
        share = remaining_share(numbers, level)
        interval = find_interval(
            numbers["comparisons"],
            arm=PRIMARY_ARM,
            other=BASELINE,
            on="correct_mass",
            level=level,
            metric="retained_mass",
        )
        if interval is not None:
            percent = "" if share is None else f", {share:.0%} of the difference at equal updates"
            parts.append(f"at {level:g}: {interval_text(interval)}{percent}")
    if not parts:
        return ""
    return f"What remains of it where both have the same pass@1, M_ret {'; '.join(parts)}."


def _tail_miss_words(numbers: Mapping[str, Any], protocol: Protocol) -> str:
    agreement, bound = tail_miss_agreement(numbers, protocol)
    rows = [row for _, row in numbers["tail_miss"].iterrows() if str(row["arm"]).startswith("grpo_")]
    measured = "; ".join(
        f"N = {row['group_size']}: {row['observed']:.3f} observed, {row['expected']:.3f} expected, z {row['z']:+.2f}"
        for row in sorted(rows, key=lambda row: row["group_size"])
    )
    return (
        f"**Observed tail misses and Lemma 3.1 with the exact masses of each group: {agreement}** "
        f"(all |z| at most {bound:.2f}, a test with false-alarm rate {protocol.tail_miss_false_alarm:g} over its group "
        f"sizes). {measured}."
    )


def _not_shown(made: list[Statement]) -> str:
    left = [statement for statement in made if statement.verdict == NOT_SHOWN]
    if not left:
        return ""
    return (
        f"{len(left)} of {len(made)} sentences are not shown. That is no evidence of no difference: the intervals say "
        "which sizes remain possible, and the table above from which size on a difference would have been told from 0."
    )


def _final(numbers: Mapping[str, Any]) -> str:
    table = numbers["final"]
    metrics = ["correct_mass", "retained_mass", "effective_number", "delta_nll_rare", "delta_nll_common", "kl"]
    metrics += ["held_out_pass_at_1", "held_out_pass_at_64", "held_out_pass_at_256"]
    header = ["arm", "pass@1", "M_ret", "effective number", "Delta NLL rare", "Delta NLL common", "KL"]
    header += ["held-out pass@1", "@64", "@256"]
    rows = []
    for arm in table["arm"].unique():
        found = [find_interval(table, arm=arm, metric=metric) for metric in metrics]
        rows.append([ARMS[arm].label, *(_plus_minus(one.interval) for one in found if one is not None)])
    return "Means over the seeds, plus or minus half the t interval.\n\n" + markdown_table(header, rows)


def _plus_minus(interval: Interval) -> str:
    if math.isnan(interval.lower):
        return f"{interval.mean:.3f}"
    return f"{interval.mean:.3f} ± {interval.half_width:.3f}"


def _comparisons(numbers: Mapping[str, Any]) -> str:
    table = numbers["comparisons"]
    if table.empty:
        return "Only the baseline ran."
    words = {"step": "update {:g}", "rollouts": "{:g} rollouts", "correct_mass": "pass@1 {:g}", "kl": "KL {:g}"}
    rows = []
    for (arm, other, on, level), _ in table.groupby(["arm", "other", "on", "level"], sort=False):
        found = [
            find_interval(table, arm=arm, other=other, on=on, level=level, metric=metric) for metric in _SHOWN_METRICS
        ]
        rows.append(
            [
                f"{ARMS[str(arm)].label} - {ARMS[str(other)].label}",
                words[str(on)].format(level),
                *(interval_text(one) for one in found if one is not None),
            ]
        )
    return markdown_table(["arms", "at", *METRIC_WORDS.values()], rows)


def _who_gains(numbers: Mapping[str, Any]) -> str:
    table = numbers["who_gains"]
    if primary_statement(numbers) is None:
        return "The two arms did not both run."
    rows = table[(table["arm"] == PRIMARY_ARM) & (table["other"] == BASELINE)]
    lines = []
    for _, row in rows.iterrows():
        cells = [f"{row['base_success_rate']:.2f}", f"{row['start']:.3f}"]
        for metric in ("correct_mass", "retained_mass"):
            difference = Interval(*(row[f"{metric}_{name}"] for name in Interval._fields))
            text = interval_text(SeedMean(difference, row[f"{metric}_seeds"]))
            cells += [f"{row[f'{metric}_other']:.3f}", f"{row[f'{metric}_arm']:.3f}", text]
        lines.append(cells)
    more = sum(row["retained_mass_mean"] > 0 for _, row in rows.iterrows())
    up = sum(row["correct_mass_mean"] > 0 for _, row in rows.iterrows())
    header = ["base success rate", "pass@1 at the start"]
    for words in ("pass@1", "M_ret"):
        header += [f"{words} GRPO", f"{words} F-GRPO", "difference"]
    return (
        f"Of {len(rows)} prompts {more} retain more mass on average, {up} have a higher pass@1. A base success rate "
        "belongs to another sum in each seed.\n\n" + markdown_table(header, lines)
    )


def _tail_miss(numbers: Mapping[str, Any], protocol: Protocol) -> str:
    unsampled = numbers["unsampled"].set_index("arm")
    rows = []
    for _, row in _in_order(numbers["tail_miss"]).iterrows():
        change = unsampled.loc[row["arm"]]
        share = Interval(change["share_fell"], change["lower"], change["upper"])
        rows.append(
            [
                ARMS[row["arm"]].label,
                f"{row['groups']}",
                f"{row['observed']:.4f}",
                f"{row['expected']:.4f}",
                f"{row['z']:+.2f}",
                f"{row['z_frozen']:+.2f}",
                _plus_minus(share),
                f"{change['correct_mass_change']:+.5f}",
                f"{change['unsampled_mass_change']:+.5f}",
            ]
        )
    header = ["arm", "groups", "tail misses", "closed form", "z", "z, masses frozen"]
    header += ["unsampled mass fell", "change of correct mass", "of unsampled correct mass"]
    return (
        f"Groups of the first {protocol.tail_miss_updates} updates, the rare answers as the rare region. z = "
        "sum(o - p) / sqrt(sum p (1 - p)) with p from the masses of the policy that drew the group: differences of a "
        "martingale, so about standard normal however the policy moves. 'Masses frozen' takes those of a prompt's "
        "first generation instead: a wrong target, to see what the test can tell. The last three columns are about "
        "groups whose correct mass rose over the updates of their generation: how often the correct mass that was not "
        "sampled fell (mean over seeds), and the mean changes.\n\n" + markdown_table(header, rows)
    )


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order in which the arms are listed."""
    places = {name: place for place, name in enumerate(ARMS)}
    return table.sort_values("arm", key=lambda names: names.map(places), kind="stable")


def _weights(numbers: Mapping[str, Any]) -> str:
    table = numbers["weights"]
    if table.empty:
        return "No arm with a focal weight ran."
    rows = [
        [
            ARMS[row["arm"]].label,
            f"{row['first_step']} to {row['last_step']}",
            f"{row['groups']}",
            f"{row['mean_success_rate']:.3f}",
            f"{row['mean_weight']:.3f}",
            f"{row['variance']:.4f}",
            f"{row['sampling_variance']:.4f}",
            f"{row['drift_variance']:.4f}",
        ]
        for _, row in _in_order(table).iterrows()
    ]
    header = ["arm", "updates", "groups", "success rate", "mean g", "variance of g", "from sampling", "from drift"]
    return (
        "The prompt with base success rate .5, all seeds: the variance of g over its groups, and what the closed forms "
        "give for sampling N rollouts at the success rate of the moment and for the drift of that rate (updates, "
        "seeds).\n\n" + markdown_table(header, rows)
    )
