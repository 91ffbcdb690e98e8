"""Several rare modes at once: disjoint rare-correct regions, each of which an active group may miss.

That a group is active and misses all the modes of a set J is a tail miss of their union: Lemma 3.1 with tau_J, the sum
of their masses. Expectations over modes need single modes only, at any number of them; the law of the number missed
needs all sets J, by inclusion and exclusion, and with it a limit on the number of modes.
"""

import math
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from fgrpo.theory import _tail_miss_kernel as kernel
from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray

MOST_MODES = 12


def expected_modes_missed(success_rate: ArrayLike, rare_masses: ArrayLike, group_size: ArrayLike) -> FloatArray:
    """Expected number of modes that an active group misses, E[#missed 1_A]: the sum of Pr(B_tau) over the modes.

    Args:
        success_rate: mu in [0, 1], shape [...].
        rare_masses: tau_m >= 0, probabilities of disjoint rare-correct regions along the last axis, [..., modes]; their
            sum is at most mu. Any number of modes, 0 included.
        group_size: N, rollouts per prompt, shape [...]: 0 or any real number >= 1.

    Returns:
        Number in [0, modes], float64, of the broadcast shape [...]; a sum of non-negative terms, each as accurate as
        `tail_miss_probability`.

    Raises:
        ValueError: If an argument is out of range or not a number, or the masses sum to more than success_rate.

    Source: this project (linearity, Lemma 3.1 for each mode).
    """
    _, single = _single_misses(success_rate, rare_masses, group_size)
    expected: FloatArray = np.sum(single, axis=-1)
    return expected[()]


def expected_mass_missed(success_rate: ArrayLike, rare_masses: ArrayLike, group_size: ArrayLike) -> FloatArray:
    """Expected probability mass of the modes that an active group misses: the sum of tau_m Pr(B_tau_m).

    Args:
        success_rate: mu in [0, 1], shape [...].
        rare_masses: tau_m >= 0 along the last axis, [..., modes]; their sum is at most mu. Any number of modes.
        group_size: N, rollouts per prompt, shape [...]: 0 or any real number >= 1.

    Returns:
        Mass in [0, mu], float64, of the broadcast shape [...]; accuracy as `expected_modes_missed`.

    Raises:
        ValueError: If an argument is out of range or not a number, or the masses sum to more than success_rate.

    Source: this project (linearity, Lemma 3.1 for each mode).
    """
    tau, single = _single_misses(success_rate, rare_masses, group_size)
    expected: FloatArray = np.sum(tau * single, axis=-1)
    return expected[()]


def any_mode_missed_probability(success_rate: ArrayLike, rare_masses: ArrayLike, group_size: ArrayLike) -> FloatArray:
    """Probability that a group is active and misses at least one mode.

    At least the tail-miss probability of the rarest mode, and at most `expected_modes_missed`.

    Args:
        success_rate: mu in [0, 1], shape [...].
        rare_masses: tau_m >= 0 along the last axis, [..., modes]; their sum is at most mu. At most 12 modes.
        group_size: N, rollouts per prompt, shape [...]: 0 or any real number >= 1.

    Returns:
        Probability in [0, 1], float64, of the broadcast shape [...]; 0 for no modes. Relative error at most
        2^modes times that of `tail_miss_probability` (below 4e-12 (1 + N lambda) for 12 modes): no single term of the
        sum exceeds the result.

    Raises:
        ValueError: If an argument is out of range or not a number, the masses sum to more than success_rate, or there
            are more than 12 modes.

    Source: this project (inclusion and exclusion over Lemma 3.1).
    """
    sums = _missed_set_sums(success_rate, rare_masses, group_size)
    terms = [(-1) ** (size + 1) * sums[size] for size in range(1, len(sums))]
    total = sum(terms, start=np.zeros_like(sums[0]))
    return np.clip(total, 0.0, 1.0)[()]


def modes_missed_distribution(success_rate: ArrayLike, rare_masses: ArrayLike, group_size: ArrayLike) -> FloatArray:
    """Probabilities that a group is active and misses exactly m = 0, 1, ... modes.

    They sum to the active probability; the rest belongs to homogeneous groups.

    Args:
        success_rate: mu in [0, 1], shape [...].
        rare_masses: tau_m >= 0 along the last axis, [..., modes]; their sum is at most mu. At most 12 modes.
        group_size: N, rollouts per prompt, shape [...]: 0 or any real number >= 1.

    Returns:
        Probabilities, float64, [..., modes + 1]. The absolute error is at most the tail-miss probability of the rarest
        mode times 3^modes 4 eps (1 + N lambda): below 5e-10 (1 + N lambda) for 12 modes, 1e-12 for 6. For the smallest
        entries no relative accuracy is promised.

    Raises:
        ValueError: If an argument is out of range or not a number, the masses sum to more than success_rate, or there
            are more than 12 modes.

    Source: this project (inclusion and exclusion over Lemma 3.1).
    """
    sums = _missed_set_sums(success_rate, rare_masses, group_size)
    modes = len(sums) - 1
    exactly = [
        sum((-1) ** (size - m) * math.comb(size, m) * sums[size] for size in range(m, modes + 1))
        for m in range(modes + 1)
    ]
    law: FloatArray = np.clip(np.stack(exactly, axis=-1), 0.0, 1.0)
    return law


def _inputs(
    success_rate: ArrayLike, rare_masses: ArrayLike, group_size: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Checked mu [...], masses [..., modes] and N [...]."""
    mu = check.probability("success_rate", success_rate)
    tau = check.probability("rare_masses", rare_masses)
    if tau.ndim == 0:
        raise ValueError("rare_masses must have an axis of modes, got a number: pass [mass] for a single mode")
    total = np.sum(tau, axis=-1)
    # sums of masses that make up all of mu may end a rounding error above it
    check.at_most("the sum of rare_masses", total * (1.0 - 1e-12), "success_rate", mu, "they are disjoint and correct")
    n = np.maximum(check.group_size(group_size), 1.0)
    check.broadcastable(**{"success_rate": mu, "the sum of rare_masses": total, "group_size": n})
    return mu, tau, n


def _single_misses(
    success_rate: ArrayLike, rare_masses: ArrayLike, group_size: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """The masses and Pr(B_tau) of every mode, [..., modes]."""
    mu, tau, n = _inputs(success_rate, rare_masses, group_size)
    mu, n = mu[..., np.newaxis], n[..., np.newaxis]
    return tau, kernel.blockwise(kernel.probability, mu, np.minimum(tau, mu), n)


def _missed_set_sums(success_rate: ArrayLike, rare_masses: ArrayLike, group_size: ArrayLike) -> list[FloatArray]:
    """For s = 0..modes, the sum over all sets of s modes of Pr(active, and these missed), each of shape [...]."""
    mu, tau, n = _inputs(success_rate, rare_masses, group_size)
    modes = tau.shape[-1]
    if modes > MOST_MODES:
        raise ValueError(
            f"rare_masses must have at most {MOST_MODES} modes here, got {modes}: "
            "inclusion and exclusion would lose its digits; expected_modes_missed takes any number"
        )
    sums = []
    for size in range(modes + 1):
        sets = np.array(list(combinations(range(modes), size)), dtype=np.intp).reshape(math.comb(modes, size), size)
        union = np.sum(tau[..., sets], axis=-1)  # [..., sets]
        rate = mu[..., np.newaxis]
        missed = kernel.blockwise(kernel.probability, rate, np.minimum(union, rate), n[..., np.newaxis])
        sums.append(np.sum(missed, axis=-1))
    return sums
