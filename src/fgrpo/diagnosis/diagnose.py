"""Tail-miss diagnosis of a training run, whatever made it."""

from collections.abc import Sequence
from os import PathLike

import numpy as np

from fgrpo.diagnosis.answers import NO_ANSWER
from fgrpo.diagnosis.columns import Reading
from fgrpo.diagnosis.measures import CONFIDENCE, Measure, answer_codes, regime_of_counts, share_estimate
from fgrpo.diagnosis.model import Diagnosis, PromptHistory, PromptWindow
from fgrpo.diagnosis.read import read_rollouts
from fgrpo.diagnosis.rollouts import IntArray, Rollouts
from fgrpo.diagnosis.warning_signs import DOUBTS, warning_signs
from fgrpo.diagnosis.weights import bands_of, logged_weights, what_if
from fgrpo.theory import _validation as check

RARE_FRACTIONS = (0.05, 0.1)
GAMMAS = (0.5, 1.0, 2.0)
ANSWERS = ("auto", "boxed", "text")


def diagnose(
    path: str | PathLike[str],
    *,
    reading: Reading | None = None,
    rare_fractions: Sequence[float] = RARE_FRACTIONS,
    gammas: Sequence[float] = GAMMAS,
    level: float = 0.5,
    windows: int = 10,
    answer: str = "auto",
) -> Diagnosis:
    """What a run's rollouts show of success, activity, tail misses and answers, and what a focal weight would do.

    Args:
        path: A run folder of TRL with logged completions, or plain rows; see `read_rollouts`.
        reading: How to take columns and groups.
        rare_fractions: Assumed rho = tau / mu, each in [0, 1]: no run shows which right answers are rare.
        gammas: Focal exponents, >= 0, to recompute weights for; 0 is added.
        level: Tail-miss probability in (0, 1) from which on a group size counts as miss-prone.
        windows: Most parts that the logged steps are cut into.
        answer: What tells right answers apart: 'boxed' (the last one), 'text' (all of it), or 'auto': boxed where at
            least half of the right rollouts have a box.

    Returns:
        The numbers, as frozen dataclasses; `Diagnosis.to_dict` for JSON.

    Raises:
        ValueError: If an argument is out of range, or the path cannot be read or grouped.

    Source: this project.
    """
    rhos = tuple(check.probability("rare_fraction", list(rare_fractions)).tolist())
    exponents = tuple(sorted({0.0, *check.gamma(list(gammas)).tolist()}))
    delta = float(check.open_probability("level", level))
    most = int(check.whole("windows", windows, 1, "pass how many parts the steps are cut into"))
    check.one_of("answer", answer, ANSWERS)
    wanted = reading or Reading()
    check.finite("success_threshold", wanted.success_threshold, "0.5 serves {0, 1} and {-1, 1}")
    if wanted.group_size is not None:
        check.integer_group_size(wanted.group_size)
    rollouts = read_rollouts(path, wanted)

    sizes, groups = np.unique(rollouts.rows_G, return_counts=True)
    n = rollouts.layout.group_size or int(sizes[np.argmax(groups)])
    kind = _answer_kind(rollouts, answer)
    measure = Measure(rollouts, rhos, n, delta, kind)
    steps = np.unique(rollouts.step_G)
    window_G = _windows(rollouts.step_G, steps, min(most, len(steps)))
    parts = tuple(measure.part(window_G == i) for i in range(window_G.max() + 1))
    run = measure.part(np.ones(len(window_G), dtype=bool))
    trends = measure.trends(window_G == 0, window_G == window_G.max()) if len(parts) > 1 else ()
    weights = logged_weights(rollouts)
    return Diagnosis(
        path=str(path),
        layout=rollouts.layout,
        group_size=n,
        group_sizes=tuple(zip(sizes.tolist(), groups.tolist(), strict=True)),
        level=delta,
        confidence=CONFIDENCE,
        answer=kind,
        run=run,
        windows=parts,
        trends=trends,
        prompts=_histories(measure, window_G),
        bands=bands_of(rollouts),
        what_if=tuple(what_if(rollouts, gamma, measure.tail_miss_G) for gamma in exponents),
        logged_weights=weights,
        notes=tuple(note for note in rollouts.notes if note.code not in DOUBTS),
        warnings=warning_signs(rollouts, run, parts, trends, n, weights),
    )


def _windows(step_G: IntArray, steps: IntArray, count: int) -> IntArray:
    """Window of each group: consecutive logged steps, as many in each window as can be."""
    window_S = np.repeat(np.arange(count), [len(part) for part in np.array_split(steps, count)])
    return window_S[np.searchsorted(steps, step_G)]


def _answer_kind(rollouts: Rollouts, answer: str) -> str:
    if not rollouts.has_text:
        return "none"
    if answer != "auto":
        return answer
    boxed = (rollouts.boxed_C != NO_ANSWER).sum()
    return "boxed" if 2 * boxed >= len(rollouts.boxed_C) else "text"


def _histories(measure: Measure, window_G: IntArray) -> tuple[PromptHistory, ...]:
    """Every prompt over the run, by falling tail-miss estimate at the first rare fraction."""
    run = measure.rollouts
    count = len(run.prompts)
    groups = np.bincount(run.prompt_G, minlength=count)
    totals = [np.bincount(run.prompt_G, part, count).astype(np.int64) for part in (run.correct_G, run.scored_G)]
    missed = [np.bincount(run.prompt_G, values, count) / np.maximum(groups, 1) for values in measure.tail_miss_G]
    visit, place = np.unique(np.stack((run.prompt_G, window_G)), axis=1, return_inverse=True)
    correct_V, scored_V = (
        np.bincount(place.reshape(-1), part).astype(np.int64) for part in (run.correct_G, run.scored_G)
    )
    last_V = np.append(np.diff(visit[0]) > 0, True)  # of its prompt
    regimes = [
        dict(
            zip(
                visit[0][last_V].tolist(),
                regime_of_counts(correct_V[last_V], scored_V[last_V], rho, measure.group_size, measure.level).tolist(),
                strict=True,
            )
        )
        for rho in measure.rare_fractions
    ]
    windows: list[list[PromptWindow]] = [[] for _ in range(count)]
    for prompt, window, correct, scored in zip(*visit.tolist(), correct_V.tolist(), scored_V.tolist(), strict=True):
        windows[prompt].append(PromptWindow(window, scored, correct, share_estimate(correct, scored)))
    distinct = _distinct_per_prompt(measure)
    seen = np.flatnonzero(groups)
    order = seen[np.argsort(-missed[0][seen], kind="stable")] if missed else seen
    return tuple(
        PromptHistory(
            prompt=run.prompts[i],
            groups=int(groups[i]),
            rollouts=int(totals[1][i]),
            correct=int(totals[0][i]),
            success_rate=share_estimate(int(totals[0][i]), int(totals[1][i])),
            tail_miss=tuple(float(values[i]) for values in missed),
            regimes=tuple(regime[i] for regime in regimes),
            distinct_correct=None if distinct is None else int(distinct[i]),
            windows=tuple(windows[i]),
        )
        for i in order.tolist()
    )


def _distinct_per_prompt(measure: Measure) -> IntArray | None:
    run = measure.rollouts
    if measure.answer == "none":
        return None
    code = answer_codes(run, measure.answer)
    answered = code != NO_ANSWER
    pairs = np.unique(np.stack((run.prompt_G[run.answer_group_C[answered]], code[answered])), axis=1)
    return np.bincount(pairs[0], minlength=len(run.prompts)).astype(np.int64)
