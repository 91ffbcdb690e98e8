"""Tables of pass@k and comparisons as text."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fgrpo.evaluation import Comparison, Counts, ModelRow, Selected
from fgrpo.words import table

_INTERVALS = {
    "over_problems": "for a population of such problems (Student's t over problems; where all have one estimate, "
    "Clopper-Pearson with problems as trials)",
    "within_problems": "for these problems (normal, from the variance of the samples: no width, and no certainty, "
    "where every estimate is 0 or 1)",
    "single_problem": "for the one problem (Clopper-Pearson, exact)",
}
_VARIANTS = {
    "raw": "raw quantiles, as the paper (conservative for independent samples)",
    "rescaled": "rescaled by sqrt(m/n) (too narrow at m = n/4)",
    "finite_population": "rescaled by sqrt(m/(n-m)) (nominal level at small k)",
}


def table_text(rows: Sequence[ModelRow], selected: Sequence[Selected] | None = None) -> str:
    """The table of pass@k for people, and which interval it has."""
    names = [*(f"pass@{one.k}" for one in rows[0].pass_at_k)]
    lines = [
        [
            row.model,
            str(row.problems),
            str(row.fewest_samples)
            if row.fewest_samples == row.most_samples
            else f"{row.fewest_samples}-{row.most_samples}",
            *(f"{one.estimate:.4f} [{one.lower:.4f}, {one.upper:.4f}]" for one in row.pass_at_k),
        ]
        for row in rows
    ]
    text = table(["model", "problems", "samples", *names], lines, indent="", left=1)
    for method in dict.fromkeys(row.interval for row in rows):
        text.append(f"intervals: {100 * rows[0].level:g} %, {_INTERVALS[method]}, for each k by itself")
    for i, one in enumerate(selected or ()):
        rule = "baseline, best mean pass@1" if i == 0 else "best mean pass@1 at no more compute"
        found = "none" if one.model is None else f"{one.model} (pass@1 {one.pass_at_1:.4f}, compute {one.compute:g})"
        text.append(f"selected of {one.run} ({rule}): {found}")
    return "\n".join(text)


def table_warnings(paths: Sequence[Path], counts: Sequence[Counts]) -> Iterator[str]:
    """What a reader of the table should know of its files before comparing lines.

    Args:
        paths: The files.
        counts: What they hold, in the same order.
    """
    places = [path.resolve() for path in paths]
    for place, path in dict(zip(places, paths, strict=True)).items():
        if (times := places.count(place)) > 1:
            yield f"{path} is given {'twice' if times == 2 else f'{times} times'}: its lines are of one file"
    first = counts[0]
    known = set(first.table["prompt"])
    for one in counts:
        samples, problems = one.table["samples"], set(one.table["prompt"])
        if samples.min() != samples.max():
            yield f"{one.name}: problems have {samples.min()} to {samples.max()} samples; each weighs the same"
        if problems != known:
            yield (
                f"{first.name} and {one.name} have different problems ({len(known - problems)} only in the first, "
                f"{len(problems - known)} only in the second, {len(known & problems)} in both): their lines are not "
                "comparable"
            )


def comparison_text(comparison: Comparison) -> str:
    """The comparison for people, with the variant of the test and the correction."""
    adjusted = "p (Holm)" if comparison.correction == "holm" else "p"
    lines = [
        [
            str(row.k),
            f"{row.pass_a:.4f}",
            f"{row.pass_b:.4f}",
            f"{row.difference:+.4f} [{row.lower:+.4f}, {row.upper:+.4f}]",
            f"{row.adjusted_p_value:.4g}",
            ("A better" if row.difference > 0 else "B better") if row.reject else "not told apart",
        ]
        for row in comparison.rows
    ]
    return "\n".join(
        [
            f"A {comparison.a}",
            f"B {comparison.b}",
            *table(["k", "pass@k A", "pass@k B", "A - B", adjusted, "verdict"], lines, indent="", left=1),
            f"paired subsampling test on {comparison.problems} problems, m = {comparison.subsample}, "
            f"{comparison.iterations:,} iterations",
            f"interval: {100 * comparison.level:g} %, {_VARIANTS[comparison.variant]}, for each k by itself",
        ]
    )
