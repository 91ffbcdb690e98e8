"""Delta NLL of rare solutions: how much less likely a fixed set of base-model solutions has become.

The paper takes the base model's correct rollouts with the highest length-normalised negative log-likelihood (NLL) and
scores them under the trained model; the mean rise says how far the rare solutions were left behind. For sums over the
sequence the rise has an exact anatomy. With S the set that the solutions were drawn from, pi_0 the base model and pi_t
the trained one,

    E_{pi_0(.|S)}[ln pi_0 / pi_t] = KL(pi_0(.|S) || pi_t(.|S)) + ln(pi_0(S) / pi_t(S)),

redistribution inside S plus the change of S's mass. The rise alone cannot tell the two apart.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray


class NLLRise(NamedTuple):
    """The expected rise of the NLL over a set, in nats, and its two parts: total = redistribution + mass_change."""

    total: FloatArray
    redistribution: FloatArray
    mass_change: FloatArray


def delta_nll_rare(nll_before: ArrayLike, nll_after: ArrayLike, *, lengths: ArrayLike | None = None) -> FloatArray:
    """Mean rise of the negative log-likelihood over a fixed set of sequences.

    mean_s (after_s - before_s) / length_s; positive where the model has moved away from the set.

    The rise of a *rare* set says little by itself: over all that the base model samples it has a non-negative
    expectation for any change whatever (see `nll_rise_parts`). Score a control set of common correct solutions too, and
    compare.

    Args:
        nll_before: -ln pi_0(s | prompt) summed over the tokens of each sequence, in nats, >= 0; sequences on the last
            axis.
        nll_after: The same sequences under the trained model.
        lengths: Tokens of each sequence, whole numbers >= 1: the rise per token, as in the paper. Without them the rise
            of the sequence sums (or of per-token means, if those are what is passed).

    Returns:
        Mean rise in nats (per token, with lengths), float64, over the last axis of the broadcast arguments.

    Raises:
        ValueError: If an NLL is negative or not finite, a length is not a whole number >= 1, the set is empty, or
            shapes do not broadcast.

    Source: Section 5.4 and Appendix M (v2).
    """
    way_out = "pass sums of -log-probability, one per sequence"
    before = check.non_negative("nll_before", nll_before, way_out)
    after = check.non_negative("nll_after", nll_after, way_out)
    tokens = check.whole("lengths", 1 if lengths is None else lengths, 1, "pass the tokens of each sequence")
    check.broadcastable(nll_before=before, nll_after=after, lengths=tokens)
    rise = np.atleast_1d((after - before) / tokens)
    if rise.shape[-1] == 0:
        raise ValueError(
            "nll_before must hold at least one sequence, got none: the mean over an empty set is undefined"
        )
    mean: FloatArray = np.mean(rise, axis=-1)
    return mean[()]


def nll_rise_parts(
    initial_probabilities: ArrayLike, probabilities: ArrayLike, *, members: ArrayLike | None = None
) -> NLLRise:
    """Expected NLL rise over base samples from a set, split into redistribution within the set and change of its mass.

    total = E_{pi_0(.|S)}[ln pi_0 / pi_t], redistribution = KL(pi_0(.|S) || pi_t(.|S)) >= 0 and mass_change =
    ln(pi_0(S) / pi_t(S)), of either sign, for sequence sums.

    Warning: a positive total is no evidence of lost diversity. Over all actions mass_change is 0 and the total is a KL
    divergence, non-negative for *any* change of the policy; over a part, mass may simply have moved elsewhere. Compare
    the rare set with a common-correct control set. No such identity holds for the length-normalised NLL of
    `delta_nll_rare`, which weights every sequence by 1 / length.

    Args:
        initial_probabilities: pi_0, shape (..., actions), sums to 1.
        probabilities: pi_t, shape (..., actions), sums to 1.
        members: S as a boolean array, shape (..., actions); default: all actions.

    Returns:
        The three numbers in nats, float64, over the last axis of the broadcast arguments. pi_t = 0 somewhere in S where
        pi_0 > 0: total and redistribution inf; pi_t(S) = 0: total and mass_change inf, redistribution nan (no
        conditional law is left).

    Raises:
        ValueError: If an argument is no distribution, members is not boolean, pi_0(S) = 0, or shapes do not broadcast.

    Accuracy: each part to about 1e-15 nats, absolute (measured).

    Source: this project (proof `nll_identity`).
    """
    initial = check.distribution("initial_probabilities", initial_probabilities)
    final = check.distribution("probabilities", probabilities)
    within = check.mask("members", np.ones(initial.shape[-1], dtype=np.bool_) if members is None else members)
    check.broadcastable(initial_probabilities=initial, probabilities=final, members=within)
    initial, final = np.where(within, initial, 0.0), np.where(within, final, 0.0)
    initial_mass, final_mass = (np.sum(part, axis=-1, keepdims=True) for part in (initial, final))
    if np.any(initial_mass == 0):
        raise ValueError("members must have initial probability above 0, got 0: nothing would be sampled from the set")
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.sum(rel_entr(initial, final) / initial_mass, axis=-1)
        redistribution = np.sum(rel_entr(initial / initial_mass, final / final_mass), axis=-1)
        mass_change = np.log(initial_mass / final_mass)[..., 0]
    # a divergence next to 0 may round below it
    return NLLRise(total[()], np.maximum(redistribution, 0.0)[()], mass_change[()])
