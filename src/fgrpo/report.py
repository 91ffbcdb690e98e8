"""report.md: the sentences of the paper about Figures 2, 4 and 5 beside what was measured."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pandas import DataFrame

from fgrpo.claims.evidence import DEFAULT_READING, OTHER_READINGS, Evidence, Runs, reading_words
from fgrpo.claims.figures import FIGURE_CLAIMS
from fgrpo.claims.model import Claim, Finding, Verdict
from fgrpo.claims.text import ranges
from fgrpo.simulate import PolicyConfig
from fgrpo.simulate.summary import counted, final_rows
from fgrpo.theory import tail_miss_probability

_GLOSSARY = """\
- **N**: group size, rollouts drawn for the prompt in a step. **gamma**: focal exponent; the advantages of a group are
  multiplied by (1 - success rate)^gamma, and gamma 0 leaves them as they are.
- **mu**: success rate, the probability that a rollout is correct. **tau**: rare mass, the probability of the
  rare-correct region; here often that of one leaf, a single correct action.
- **Active group**: some rollouts right and some wrong; others give no gradient. **Tail miss**, Pr(B): an active group
  without a rollout in the rare region.
- **Q_pos**: total probability of the correct actions. **M_ret**: retained mass, the share of each correct action's
  initial probability that it still has, in sum; 1 if none has lost any. **Collapse zone**: the group sizes whose mean
  final M_ret at gamma 0 is below 1/2."""


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
    details = "\n".join(_detail(claim, finding, evidence) for claim, finding in findings)
    return (
        "\n\n".join(
            [
                "# Reproduction of Figures 2, 4 and 5",
                _setting(evidence, runs),
                _GLOSSARY,
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


def _detail(claim: Claim, finding: Finding, evidence: Evidence) -> str:
    """A sentence's finding, and whether it comes from these runs: a reduced report speaks of both scales."""
    without_runs = replace(evidence, results=evidence.results.iloc[:0])
    of_runs = claim.judge(without_runs).verdict is Verdict.UNDETERMINED
    text = f"- **{claim.id}** {claim.sentence} *{'Measured' if of_runs else 'Computed'}:* {finding.measured}."
    if not claim.sharpened:
        return text
    elsewhere = of_runs and _reduced(evidence)
    note = f" (runs that it names have {PolicyConfig().actions} actions, these do not)" if elsewhere else ""
    return f"{text} *Sharpened{note}:* {claim.sharpened}"


def _reduced(evidence: Evidence) -> bool:
    return evidence.policy.actions != PolicyConfig().actions


def _setting(evidence: Evidence, runs: Runs) -> str:
    policy = evidence.policy
    return (
        f"Default reading `{DEFAULT_READING}` ({reading_words(DEFAULT_READING)}); "
        f"{policy.actions} actions, {policy.correct} of them correct; {runs.steps} steps; "
        f"{len(runs.group_sizes)} group sizes from {runs.group_sizes[0]} to {runs.group_sizes[-1]}; "
        f"{counted(runs.rows['seed'].nunique(), 'seed')}. "
        f"Computed by `fgrpo reproduce`, fgrpo {_distinct(evidence, 'fgrpo_version')}, "
        f"engine {_distinct(evidence, 'engine')}, numpy {_distinct(evidence, 'numpy_version')}."
        + (" **Reduced action space: what is measured is not the paper's.**" if _reduced(evidence) else "")
        + " *Measured* is read from these runs; *computed* follows from closed forms at the paper's own numbers."
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
    seeds = counted(runs.rows["seed"].nunique(), "seed")
    return f"`{name}` ({reading_words(name)}; {seeds}):\n\n{_final_values(evidence, runs)}"


def _long_runs(evidence: Evidence) -> str:
    runs = evidence.long_runs
    steps = list(range(evidence.steps, runs.steps + 1, evidence.steps // 2))
    rows = [
        [str(n), f"{gamma:g}", *(f"{runs.at_step(step, 'retained_mass', gamma).loc[n]:.3f}" for step in steps)]
        for n in runs.group_sizes
        for gamma in (0.0, 1.0)
    ]
    return markdown_table(["N", "gamma", *(f"T = {step}" for step in steps)], rows)
