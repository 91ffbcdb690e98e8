"""report.md: the sentences of the paper about Figures 2, 4 and 5 beside what was measured."""

from collections.abc import Iterable, Sequence

from pandas import DataFrame

from fgrpo.claims.evidence import DEFAULT_READING, OTHER_READINGS, Evidence, Runs, reading_words
from fgrpo.claims.figures import FIGURE_CLAIMS
from fgrpo.claims.text import ranges
from fgrpo.simulate.summary import final_rows
from fgrpo.theory import tail_miss_probability


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells are texts, and vertical bars in them are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def reproduction_report(evidence: Evidence) -> str:
    """The report as Markdown text, computed from the stored runs and the closed forms."""
    runs = evidence.runs(DEFAULT_READING)
    findings = [(claim, claim.check(evidence)) for claim in FIGURE_CLAIMS]
    summary = markdown_table(
        ["id", "place", "the paper says", "verdict"],
        [[claim.id, claim.place, claim.sentence, f"**{finding.words}**"] for claim, finding in findings],
    )
    details = "\n".join(
        f"- **{claim.id}** {claim.sentence} *Measured:* {finding.measured}."
        + (f" *Sharpened:* {claim.sharpened}" if claim.sharpened else "")
        for claim, finding in findings
    )
    return (
        "\n\n".join(
            [
                "# Reproduction of Figures 2, 4 and 5",
                _setting(evidence, runs),
                "![Figure 4](figure_4.png)",
                "## What the paper says of these figures, and what was measured",
                "Figures are numbered as in version 1 of the paper (v2: Figure 3, 2 and 5). Sentences are shortened.",
                summary,
                details,
                "## Final values of the default reading",
                "The group sizes whose mean final M_ret at gamma 0 is below 1/2 (the collapse zone): "
                + ranges(runs.collapsed, runs.group_sizes)
                + ". Pr(B) is the tail-miss probability of one leaf at the start: it does not locate the zone.",
                _final_values(evidence, runs),
                "## The other readings",
                "The text of Appendix J leaves open whether p_j stands for p_j / p_j^old, and the weight decay; an "
                "Adam-type optimizer is documented by Hu et al. (2025), whose set-up it adopts. On a few group sizes:",
                *(_other_reading(evidence, name) for name in OTHER_READINGS),
                "## When one stops",
                "The default reading, run on after the sweep's last step; mean retained mass:",
                _long_runs(evidence),
            ]
        )
        + "\n"
    )


def _setting(evidence: Evidence, runs: Runs) -> str:
    policy = evidence.policy
    return (
        f"Default reading `{DEFAULT_READING}` ({reading_words(DEFAULT_READING)}); "
        f"{policy.actions} actions, {policy.correct} of them correct; {runs.steps} steps; "
        f"{len(runs.group_sizes)} group sizes from {runs.group_sizes[0]} to {runs.group_sizes[-1]}; "
        f"{runs.rows['seed'].nunique()} seeds. "
        f"Computed by `fgrpo reproduce`, fgrpo {_distinct(evidence, 'fgrpo_version')}, "
        f"engine {_distinct(evidence, 'engine')}, numpy {_distinct(evidence, 'numpy_version')}."
        + ("" if policy.actions == 128_000 else " **Reduced action space: numbers are not the paper's.**")
    )


def _distinct(evidence: Evidence, column: str) -> str:
    """All values of a column: runs that an earlier version or another engine computed are kept and reused."""
    return " and ".join(sorted(map(str, evidence.results[column].unique())))


def _final_values(evidence: Evidence, runs: Runs) -> str:
    final = final_rows(runs.rows)
    miss = tail_miss_probability(evidence.start["correct_mass"], evidence.start["leaf_mass"], runs.group_sizes)
    header = [
        "N",
        "Pr(B)",
        *(f"{name}, gamma {gamma}" for gamma in (0, 1) for name in ("Q_pos", "M_ret (s.d.)", "entropy")),
    ]
    rows = []
    for group_size, risk in zip(runs.group_sizes, miss, strict=True):
        row = [str(group_size), f"{risk:.4f}"]
        for gamma in (0, 1):
            row += _values(final[(final["group_size"] == group_size) & (final["gamma"] == gamma)])
        rows.append(row)
    return markdown_table(header, rows)


def _values(final: DataFrame) -> list[str]:
    retained = final["retained_mass"]
    spread = f" ({retained.std():.3f})" if len(retained) > 1 else ""
    return [f"{final['correct_mass'].mean():.4f}", f"{retained.mean():.3f}{spread}", f"{final['entropy'].mean():.2f}"]


def _other_reading(evidence: Evidence, name: str) -> str:
    runs = evidence.runs(name)
    seeds = runs.rows["seed"].nunique()
    return f"`{name}` ({reading_words(name)}; {seeds} seeds):\n\n{_final_values(evidence, runs)}"


def _long_runs(evidence: Evidence) -> str:
    runs = evidence.long_runs
    steps = list(range(evidence.steps, runs.steps + 1, evidence.steps // 2))
    rows = [
        [str(n), f"{gamma:g}", *(f"{runs.at_step(step, 'retained_mass', gamma).loc[n]:.3f}" for step in steps)]
        for n in runs.group_sizes
        for gamma in (0.0, 1.0)
    ]
    return markdown_table(["N", "gamma", *(f"T = {step}" for step in steps)], rows)
