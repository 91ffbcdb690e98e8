"""Pass@k tables, the choice of checkpoints and the comparison of two models, from per-prompt counts alone."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from fgrpo.counts import read_counts
from fgrpo.theory import _validation as check
from fgrpo.theory.pass_estimates import IntervalMethod, pass_at_k, pass_at_k_interval
from fgrpo.theory.significance import PairedTest, Variant, holm_adjust, paired_subsampling_test

EVALUATION_KEY = b"fgrpo.evaluation"
"""Metadata key under which a counts file of `fgrpo evaluate run` says what it is of, as JSON."""

Correction = Literal["holm", "none"]

_CHECKPOINT = re.compile(r"checkpoint-\d+")


@dataclass(frozen=True)
class Counts:
    """The counts of a model.

    Attributes:
        name: The model, or the file if that does not say.
        table: Columns prompt, samples, correct (see `fgrpo.counts.read_counts`).
        run: Which training run the model is a checkpoint of: the folder around a `checkpoint-*`, else the name.
        compute: What its training took until then, in units that all models share, such as steps; None: not known.
    """

    name: str
    table: pd.DataFrame
    run: str
    compute: float | None = None


@dataclass(frozen=True)
class PassRow:
    """Mean pass@k of a model with its confidence limits, each in [0, 1]."""

    k: int
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True)
class ModelRow:
    """A model's line of the table: how many problems, the fewest and most samples of one, and pass@k for each k."""

    model: str
    run: str
    compute: float | None
    problems: int
    fewest_samples: int
    most_samples: int
    interval: IntervalMethod
    level: float
    pass_at_k: list[PassRow]


@dataclass(frozen=True)
class Selected:
    """The checkpoint chosen of a run, None if the run has none within the compute allowed."""

    run: str
    model: str | None
    pass_at_1: float | None
    compute: float | None


@dataclass(frozen=True)
class ComparisonRow:
    """Model A against model B at one k; difference, limits and p-value as `PairedTest` has them."""

    k: int
    pass_a: float
    pass_b: float
    difference: float
    lower: float
    upper: float
    p_value: float
    adjusted_p_value: float
    reject: bool


@dataclass(frozen=True)
class Comparison:
    """The paired subsampling test of two models on the same problems, and how it was made."""

    a: str
    b: str
    problems: int
    only_a: int
    only_b: int
    variant: Variant
    subsample: int
    iterations: int
    level: float
    correction: Correction
    rows: list[ComparisonRow]


def load_counts(path: str | PathLike[str]) -> Counts:
    """The counts in a file, with what it says of the model.

    Args:
        path: As for `fgrpo.counts.read_counts`; a parquet file of `fgrpo evaluate run` names its model and step.

    Raises:
        ValueError: As `fgrpo.counts.read_counts`.

    Source: this project.
    """
    table = read_counts(path)
    about: dict[str, Any] = {}
    if Path(path).suffix.lower() == ".parquet":
        import pyarrow.parquet as pq

        about = json.loads((pq.read_schema(path).metadata or {}).get(EVALUATION_KEY, b"{}"))
    name = str(about.get("model", path))
    return Counts(name, table, run_of(name), about.get("step"))


def run_of(model: str) -> str:
    """The run that a model is a checkpoint of: the folder around `checkpoint-STEP`; else the model's own name."""
    path = Path(model)
    return str(path.parent) if _CHECKPOINT.fullmatch(path.name) else model


def regrouped(
    counts: Sequence[Counts], *, runs: Sequence[str] | None = None, compute: Sequence[float] | None = None
) -> list[Counts]:
    """The same counts with other runs or compute, one for each.

    Raises:
        ValueError: If there are not as many as counts.
    """
    for name, values in (("runs", runs), ("compute", compute)):
        if values is not None and len(values) != len(counts):
            raise ValueError(
                f"--{name} must have one entry per model, got {len(values)} for {len(counts)}: list them all"
            )
    return [
        replace(one, run=one.run if runs is None else runs[i], compute=one.compute if compute is None else compute[i])
        for i, one in enumerate(counts)
    ]


def pass_row(
    counts: Counts, k: Sequence[int], *, level: float = 0.95, interval: IntervalMethod | None = None
) -> ModelRow:
    """Pass@k of a model: the unbiased estimate, averaged over problems, with an interval for each k.

    Args:
        counts: The model's counts.
        k: Tries, each in [1, fewest samples of a problem].
        level: Confidence, in (0, 1).
        interval: One of the methods of `fgrpo.theory.pass_at_k_interval`; default: `over_problems`, and
            `single_problem` where there is only one.

    Returns:
        The model's line.

    Raises:
        ValueError: If k is not whole or above the samples of a problem, the level is out of range, or the counts do not
            suffice for the method; the line names the model.

    Source: `fgrpo.theory.pass_at_k_interval`.
    """
    if interval is not None:
        check.one_of("interval", interval, get_args(IntervalMethod))
    samples, correct = (counts.table[name].to_numpy() for name in ("samples", "correct"))
    method = interval or ("over_problems" if samples.size > 1 else "single_problem")
    try:
        limits = pass_at_k_interval(samples, correct, np.asarray(k), level=level, method=method)
    except ValueError as error:
        raise ValueError(f"{counts.name}: {error}") from None
    rows = zip(k, limits.estimate.tolist(), limits.lower.tolist(), limits.upper.tolist(), strict=True)
    return ModelRow(
        counts.name,
        counts.run,
        counts.compute,
        samples.size,
        int(samples.min()),
        int(samples.max()),
        method,
        level,
        [PassRow(*row) for row in rows],
    )


def select_best(counts: Sequence[Counts], baseline: str) -> list[Selected]:
    """The paper's choice of checkpoints: the baseline's best by mean pass@1, the others' best at no more compute.

    Args:
        counts: Checkpoints of several runs.
        baseline: Run of the baseline: one of the runs, or its last folder's name if only one has that.

    Returns:
        The choice for each run, the baseline first. Of equally good ones, the one of less compute.

    Raises:
        ValueError: If no run or several have the baseline's name, or the compute of a checkpoint is not known.

    Source: Appendix L.4 (v2); its mean is over benchmarks, this one over problems.
    """
    unknown = [one.name for one in counts if one.compute is None]
    if unknown:
        raise ValueError(
            f"each checkpoint must have its compute, got none for {unknown[0]!r}: pass --compute, one number per model"
        )
    runs = list(dict.fromkeys(one.run for one in counts))
    named = [run for run in runs if baseline in (run, Path(run).name)]
    if len(named) != 1:
        raise ValueError(
            f"the baseline must be one of the runs {', '.join(runs)}, got {check.shown(baseline)}: "
            f"{check.closest(baseline, runs)}"
        )
    best = _best(named[0], counts, np.inf)
    limit = np.inf if best.compute is None else best.compute
    return [best, *(_best(run, counts, limit) for run in runs if run != named[0])]


def _best(run: str, counts: Sequence[Counts], limit: float) -> Selected:
    """The run's best checkpoint within a compute."""
    within = [
        (float(np.mean(one.table["correct"] / one.table["samples"])), one)
        for one in counts
        if one.run == run and one.compute is not None and one.compute <= limit
    ]
    if not within:
        return Selected(run, None, None, None)
    score, one = max(within, key=lambda pair: (pair[0], -(pair[1].compute or 0.0)))
    return Selected(run, one.name, score, one.compute)


def compare(
    a: Counts,
    b: Counts,
    k: Sequence[int],
    *,
    subsample: int | None = None,
    variant: Variant = "raw",
    correction: Correction = "holm",
    common: bool = False,
    iterations: int = 50_000,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """The paired subsampling test of two models for several k, with the p-values corrected for their number.

    Args:
        a: Counts of model A.
        b: Counts of model B on the same problems, identified by `prompt`, with as many samples.
        k: Tries, each in [1, subsample].
        subsample: m, samples drawn per problem and iteration; default: a quarter of the fewest samples, as in the
            paper, or the largest k if that is more.
        variant: See `fgrpo.theory.paired_subsampling_test`: 'raw' is the paper's.
        correction: 'holm' over the k values; 'none'.
        common: Whether to leave out problems that only one of the two has; else they are refused.
        iterations: Draws of the subsampling distribution.
        level: Confidence of the intervals, which are for each k by itself; 1 - level is the family-wise level of
            `reject`.
        seed: Seed of the draws; the same ones for every k.

    Returns:
        The comparison; a difference above 0 speaks for A.

    Raises:
        ValueError: If problems differ without `common`, none is shared, a problem has different samples in the two, or
            an option is out of range.

    Source: Appendix Q (v2); the correction, which the paper does not make: [holm1979stepdown].
    """
    check.one_of("correction", correction, ("holm", "none"))
    if len(k) == 0 or len(set(k)) != len(k):
        raise ValueError(f"k must be different numbers of tries, got {check.shown(list(k))}: list each once")
    start = int(check.scalar("seed", check.whole("seed", seed, 0, "pass a seed such as 0")))
    both = a.table.merge(b.table, on="prompt", how="inner", suffixes=("_a", "_b"))
    only_a, only_b = len(a.table) - len(both), len(b.table) - len(both)
    if both.empty or ((only_a or only_b) and not common):
        raise ValueError(
            f"both models must have the same problems, got {only_a} of {len(a.table)} only in {a.name!r} and {only_b} "
            f"of {len(b.table)} only in {b.name!r}: "
            + ("check the column prompt" if both.empty else "pass --common to compare on the others")
        )
    unequal = both[both["samples_a"] != both["samples_b"]]
    if not unequal.empty:
        first = unequal.iloc[0]
        raise ValueError(
            f"both models must have as many samples of a problem, got {first['samples_a']} and {first['samples_b']} of "
            f"{check.shown(first['prompt'])} ({len(unequal)} problems in all): count equally many of both"
        )
    n, c_a, c_b = (both[name].to_numpy() for name in ("samples_a", "correct_a", "correct_b"))
    m = max(int(n.min()) // 4, max(k)) if subsample is None else subsample
    tests = [
        paired_subsampling_test(
            n,
            c_a,
            c_b,
            tries,
            subsample=m,
            variant=variant,
            iterations=iterations,
            level=level,
            rng=np.random.default_rng(start),
        )
        for tries in k
    ]
    p_values = np.array([test.p_value for test in tests])
    adjusted = holm_adjust(p_values) if correction == "holm" else p_values
    rows = [
        _comparison_row(
            tries, float(np.mean(pass_at_k(n, c_a, tries))), float(np.mean(pass_at_k(n, c_b, tries))), test, float(p)
        )
        for tries, test, p in zip(k, tests, adjusted, strict=True)
    ]
    return Comparison(a.name, b.name, len(both), only_a, only_b, variant, m, iterations, level, correction, rows)


def _comparison_row(k: int, pass_a: float, pass_b: float, test: PairedTest, adjusted: float) -> ComparisonRow:
    # 1e-12: 1 - level rounds, and a p-value at the level rejects, as in PairedTest
    reject = adjusted <= 1.0 - test.level + 1e-12
    return ComparisonRow(k, pass_a, pass_b, test.estimate, test.lower, test.upper, test.p_value, adjusted, reject)


def to_json(rows: Sequence[ModelRow], selected: Sequence[Selected] | None = None) -> dict[str, Any]:
    """The table as JSON has it; `selected` only where a choice was asked for."""
    models = {"models": [asdict(row) for row in rows]}
    return models if selected is None else {**models, "selected": [asdict(one) for one in selected]}
