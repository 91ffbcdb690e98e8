"""What a policy has kept of another one's correct solutions: their mass, their proportions, how many there still are.

Over the correct actions C, with Q_0 and Q_t the correct masses of the initial and of the present policy,

    retained mass     M_ret = sum_C min(p_0, p_t) / Q_0          mass that no correct action has lost,
    overlap           sum_C min(p_0 / Q_0, p_t / Q_t)            the same for the policies given C: 1 - total variation,
    entropy           -sum_C (p_t / Q_t) ln(p_t / Q_t)           ln of the effective number of correct actions.

As sum_C min(p_0, p_t) <= Q_t, a low retained mass may only say that correct mass is low; the overlap is 1 however much
mass is left, as long as its proportions are. Between the two, min(1, Q_t / Q_0) overlap <= M_ret <= min(1, Q_t / Q_0).

A policy is given by its probabilities [..., A] on the last axis, or by those of one action of each class, with `count`
actions in the class; either way they sum to 1.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray


def retained_mass(
    initial_probabilities: ArrayLike, probabilities: ArrayLike, *, correct: ArrayLike, count: ArrayLike = 1
) -> FloatArray:
    """Share of the initial correct mass that is still where it was: M_ret = sum_C min(p_0, p_t) / Q_0.

    Args:
        initial_probabilities: p_0, [..., A], summing to 1 within 1e-9; some of it correct.
        probabilities: p_t, [..., A], summing to 1 within 1e-9.
        correct: C, boolean [A] or [..., A].
        count: Actions that an entry stands for, whole numbers >= 1, [A]; 1: an entry is one action.

    Returns:
        M_ret, float64 of shape [...], in [0, min(1, Q_t / Q_0)]: 1 iff no correct action has lost mass, 0 iff none has
        mass in both. Where every correct action has lost mass it is Q_t / Q_0.

    Raises:
        ValueError: If an argument is no distribution, `correct` not boolean, a count not whole, shapes disagree, or no
            initial mass is correct.

    Source: Eq 26 (v1 and v2).
    """
    before, after, initial_mass, _ = _correct_parts(initial_probabilities, probabilities, correct, count)
    kept: FloatArray = np.sum(np.minimum(before, after), axis=-1) / initial_mass
    return kept[()]


def correct_overlap(
    initial_probabilities: ArrayLike, probabilities: ArrayLike, *, correct: ArrayLike, count: ArrayLike = 1
) -> FloatArray:
    """Overlap of two policies given a correct action: sum_C min(p_0 / Q_0, p_t / Q_t) = 1 - total variation within C.

    Args:
        initial_probabilities: p_0, [..., A], summing to 1 within 1e-9; some of it correct.
        probabilities: p_t, [..., A], summing to 1 within 1e-9.
        correct: C, boolean [A] or [..., A].
        count: Actions that an entry stands for, whole numbers >= 1, [A]; 1: an entry is one action.

    Returns:
        Overlap, float64 of shape [...], symmetric in the policies, in [0, 1]: 1 iff the proportions within C are the
        same, 0 iff no correct action has mass in both. nan where p_t has no correct mass (no proportions are left).

    Raises:
        ValueError: As `retained_mass`.

    Source: this project.
    """
    before, after, initial_mass, mass = _correct_parts(initial_probabilities, probabilities, correct, count)
    with np.errstate(invalid="ignore"):
        shared = np.minimum(before / initial_mass[..., np.newaxis], after / mass[..., np.newaxis])
        overlap: FloatArray = np.minimum(np.sum(shared, axis=-1), 1.0)
    return overlap[()]


def correct_entropy(probabilities: ArrayLike, *, correct: ArrayLike, count: ArrayLike = 1) -> FloatArray:
    """Entropy of a policy given a correct action, in nats; its exponential is the effective number of correct actions.

    Args:
        probabilities: p, [..., A], summing to 1 within 1e-9.
        correct: C, boolean [A] or [..., A].
        count: Actions that an entry stands for, whole numbers >= 1, [A]; 1: an entry is one action.

    Returns:
        Entropy, float64 of shape [...], in [0, ln |C|]: 0 iff one correct action has all the correct mass, ln |C| iff
        all have equal shares. nan where no mass is correct.

    Raises:
        ValueError: If `probabilities` is no distribution, `correct` not boolean, a count not whole, or shapes disagree.

    Source: this project.
    """
    sizes = _sizes(count)
    p, flags = check.distribution("probabilities", probabilities, sizes), check.mask("correct", correct)
    _check_shapes(flags, sizes, probabilities=p)
    kept = p * flags
    mass = np.sum(sizes * kept, axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        # a share may round to above 1, where the entropy of one action would be below 0
        entropy: FloatArray = np.sum(sizes * entr(np.minimum(kept / mass, 1.0)), axis=-1)
    return entropy[()]


def _correct_parts(
    initial_probabilities: ArrayLike, probabilities: ArrayLike, correct: ArrayLike, count: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The mass of every entry in C, 0 elsewhere, of both policies, [..., A], and their sums, [...]."""
    sizes, flags = _sizes(count), check.mask("correct", correct)
    initial = check.distribution("initial_probabilities", initial_probabilities, sizes)
    present = check.distribution("probabilities", probabilities, sizes)
    _check_shapes(flags, sizes, initial_probabilities=initial, probabilities=present)
    before, after = (p * (sizes * flags) for p in (initial, present))
    initial_mass, mass = np.sum(before, axis=-1), np.sum(after, axis=-1)
    if np.any(initial_mass == 0):
        raise ValueError("correct must hold initial probability above 0, got 0: there is no mass to retain")
    return before, after, initial_mass, mass


def _sizes(count: ArrayLike) -> FloatArray:
    sizes = check.action_count(count)
    if sizes.ndim > 1:
        raise ValueError(f"count must be one number or one per entry, got shape {sizes.shape}: pass count [A]")
    return sizes


def _check_shapes(flags: NDArray[np.bool_], sizes: FloatArray, **policies: FloatArray) -> None:
    check.per_action(**policies, correct=flags, **({"count": sizes} if sizes.ndim else {}))
