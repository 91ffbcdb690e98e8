"""The data of the regime diagram: where in success rate, rare fraction and group size updates miss the rare mode."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame, concat

from fgrpo.simulate.summary import final_rows, seed_summary, split_by_length
from fgrpo.theory import _validation as check
from fgrpo.theory import peak_group_size, shrunk_success_rate, tail_miss_probability, tail_miss_regime

_POINTS = 61  # per axis of a panel
_EDGE = 1e-3  # success rates and rare fractions of 0 and 1 have no tail miss, and no peak
_SMALLEST_RARE_FRACTION = 1e-2
_SMALLEST_LARGEST_GROUP_SIZE = 512


def regime_diagram_data(
    group_size: int = 8,
    *,
    level: float = 0.5,
    rare_fraction: float = 0.1,
    success_rate: float | None = None,
    counts: DataFrame | None = None,
    results: DataFrame | None = None,
) -> DataFrame:
    """What the regime diagram draws.

    Args:
        group_size: N, rollouts per prompt, a whole number >= 1.
        level: Tail-miss probability in (0, 1) from which on a group size counts as miss-prone.
        rare_fraction: rho = tau / mu in (0, 1), an assumption: that of the risk panel, and of all prompts in `counts`.
        success_rate: mu in (0, 1) of one prompt of yours; its rare mass is rare_fraction * mu.
        counts: Your prompts, a row each with samples and correct, as `fgrpo.counts.read_counts` returns them.
        results: Tidy results of a sweep, one reading and setting, as `fgrpo.simulate.load_results` returns them.

    Returns:
        Rows of up to four panels; level is the same in all of them, and what does not apply is missing.
        'regimes': group_size as given, success_rate and rare_fraction over a grid; 'risk': rare_fraction as given,
        success_rate and group_size (real numbers) over a grid; 'prompts': group_size and rare_fraction as given,
        success_rate as given, or of counts the shrunk rate (correct + 1) / (samples + 2), prompts the number of prompts
        with it. All three hold rare_mass, tail_miss_probability, peak_group_size (real maximiser) and regime there.
        'sweep': group_size, gamma, retained_mass (mean over seeds after the last step), smallest, largest, seeds,
        reading.

    Raises:
        ValueError: If an argument is out of range, a column of `counts` or `results` is missing or a count out of
            range, or the results mix settings, lack gamma 0 or hold an unfinished run.

    Source: this project, on Lemma 3.1 (v1 and v2).
    """
    n = check.scalar("group_size", check.integer_group_size(group_size))
    delta = check.scalar("level", check.open_probability("level", level))
    rho = check.scalar("rare_fraction", check.probability("rare_fraction", rare_fraction))
    if not 0.0 < rho < 1.0:
        raise ValueError(
            f"rare_fraction must be strictly between 0 and 1, got {rho:g}: pass the assumed tau / mu, such as 0.1"
        )
    if success_rate is not None:
        check.open_probability("success_rate", success_rate)
    rates = np.linspace(_EDGE, 1.0 - _EDGE, _POINTS)
    # a decade below the fraction at which N rollouts tend to meet the region
    lowest = 10.0 ** np.floor(np.log10(min(_SMALLEST_RARE_FRACTION, rho, 0.1 / n)))
    fractions = np.geomspace(lowest, 1.0 - _EDGE, _POINTS)
    sizes = np.geomspace(1.0, max(_SMALLEST_LARGEST_GROUP_SIZE, 4.0 * n), _POINTS)
    panels = [
        _field(*np.meshgrid(rates, fractions, n, indexing="ij"), delta).assign(panel="regimes"),
        _field(*np.meshgrid(rates, rho, sizes, indexing="ij"), delta).assign(panel="risk"),
    ]
    if success_rate is not None:
        panels.append(_field(success_rate, rho, n, delta).assign(prompts=1, panel="prompts"))
    if counts is not None:
        rates, copies = _shrunk_rates(counts)
        panels.append(_field(rates, rho, n, delta).assign(prompts=copies, panel="prompts"))
    if results is not None:
        panels.append(_final_retained_mass(results).assign(panel="sweep"))
    data = concat(panels, ignore_index=True).assign(level=delta)
    first = ["panel", "level"]
    return data[[*first, *data.columns.difference(first, sort=False)]]


def _field(success_rate: ArrayLike, rare_fraction: ArrayLike, group_size: ArrayLike, level: float) -> DataFrame:
    """A row per point: what the theory says there."""
    mu, rho, n = (np.ravel(array) for array in np.broadcast_arrays(success_rate, rare_fraction, group_size))
    tau = rho * mu
    return DataFrame(
        {
            "success_rate": mu,
            "rare_fraction": rho,
            "rare_mass": tau,
            "group_size": n,
            "tail_miss_probability": tail_miss_probability(mu, tau, n),
            "peak_group_size": peak_group_size(mu, tau, integer=False),
            "regime": tail_miss_regime(mu, tau, n, level=level),
        }
    )


def _shrunk_rates(counts: DataFrame) -> tuple[check.FloatArray, NDArray[np.int64]]:
    """The shrunk success rates of the prompts, ascending, and how many prompts have each."""
    missing = [name for name in ("samples", "correct") if name not in counts.columns]
    if missing:
        raise ValueError(
            f"counts must have the column {missing[0]!r}, got {list(counts.columns)}: use fgrpo.counts.read_counts"
        )
    samples, correct = check.problem_counts(counts["samples"].to_numpy(), correct=counts["correct"].to_numpy())
    rates, copies = np.unique(shrunk_success_rate(correct / samples, samples), return_counts=True)
    return rates, copies


def _final_retained_mass(results: DataFrame) -> DataFrame:
    """Retained mass after the last step of the sweep, over the seeds, for each group size and gamma."""
    sweep, _ = split_by_length(results)
    summary = seed_summary(final_rows(sweep), ["retained_mass"]).rename(columns={"mean": "retained_mass"})
    return summary.drop(columns=["metric", "step"]).assign(reading=results["reading"].iloc[0])
