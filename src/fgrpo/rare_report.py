"""What scores of a rare-correct probe come to: rises of the negative log-likelihood, with intervals over problems."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray
from fgrpo.theory.intervals import student_half_width
from fgrpo.theory.rare_nll import delta_nll_rare


@dataclass(frozen=True)
class Rise:
    """A mean rise of the NLL per token in nats, and its confidence limits; None where one problem gives none."""

    estimate: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class ProbeRises:
    """Rises of the rare set and of the control set, and rare minus control; all with intervals of one level."""

    rare: Rise
    control: Rise
    difference: Rise
    sequences: int
    problems: int
    level: float


def probe_rises(scores: pd.DataFrame, *, level: float = 0.95) -> ProbeRises:
    """Mean rise of the NLL per token of the rare set and of the control set, and the difference.

    Completions of one problem are not independent, so the intervals count problems: the mean's linearised variance over
    problems, with Student's t of one degree of freedom fewer than there are problems. They are for a population of
    problems of which these are a random sample, given how the sets were chosen.

    Args:
        scores: Columns set (`rare`, `control`), prompt, tokens, nll_before, nll_after, as of
            `fgrpo.rare_probe.score_probe`.
        level: Confidence, in (0, 1).

    Returns:
        The three rises. Only the difference says that rare solutions were left behind *more* than common ones.

    Raises:
        ValueError: If a set is empty or a score is negative or not finite.

    Source: Section 5.4 and Appendix M (v2); the interval and the control: this project.
    """
    confidence = check.scalar("level", check.open_probability("level", level))
    parts = {name: scores[scores["set"] == name] for name in ("rare", "control")}
    means = {
        name: float(delta_nll_rare(part["nll_before"], part["nll_after"], lengths=part["tokens"]))
        for name, part in parts.items()
    }
    influences = {
        name: _influences(part, means[name], pd.Index(scores["prompt"].unique())) for name, part in parts.items()
    }
    return ProbeRises(
        rare=_rise(means["rare"], influences["rare"], confidence),
        control=_rise(means["control"], influences["control"], confidence),
        difference=_rise(
            means["rare"] - means["control"],
            np.nan_to_num(influences["rare"]) - np.nan_to_num(influences["control"]),
            confidence,
        ),
        sequences=len(parts["rare"]),
        problems=scores["prompt"].nunique(),
        level=confidence,
    )


def _influences(part: pd.DataFrame, mean: float, prompts: "pd.Index[str]") -> FloatArray:
    """What each problem adds to the deviation of the mean; nan for problems without a completion in the set."""
    deviation = (part["nll_after"] - part["nll_before"]) / part["tokens"] - mean
    return np.asarray((deviation.groupby(part["prompt"]).sum() / len(part)).reindex(prompts), dtype=np.float64)


def _rise(estimate: float, influences: FloatArray, level: float) -> Rise:
    present = influences[~np.isnan(influences)]
    count = present.size
    if count < 2:
        return Rise(estimate, None, None)
    error = np.sqrt(count / (count - 1) * np.sum(present**2))
    half_width = float(student_half_width(error, count - 1, level))
    return Rise(estimate, estimate - half_width, estimate + half_width)


def rises_text(models: Sequence[str], rises: Sequence[ProbeRises]) -> str:
    """The rises for people, one line a model and set."""
    lines = []
    for model, one in zip(models, rises, strict=True):
        lines.append(f"{model}: mean rise of the NLL per token, in nats")
        for name, rise in (("rare", one.rare), ("control", one.control), ("rare - control", one.difference)):
            limits = "no interval from one problem" if rise.lower is None else f"[{rise.lower:+.4f}, {rise.upper:+.4f}]"
            lines.append(f"  {name:<14}  {rise.estimate:+.4f}  {limits}")
    first = rises[0]
    lines.append(
        f"{first.sequences} completions in each set, {first.problems} problems; intervals: {100 * first.level:g} %, "
        "Student's t over problems"
    )
    return "\n".join(lines)
