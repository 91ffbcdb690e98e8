"""What a model of the tiny world does, exactly: the probability of every correct completion, and what follows from it.

One forward pass per family of prompts gives the log-probability of each correct completion with its end token, hence
the correct mass Q_pos, the rare mass, the retained mass M_ret, entropy, effective number and overlap of the correct
answers, Delta NLL of rare and of common answers, and pass@k = 1 - (1 - q)^k: none of them is sampled or estimated.

The Kullback-Leibler divergence from the start is that of a coarser outcome: which three digits are written first, 1,000
cells and one for everything else. It is exact for that outcome and a lower bound of the divergence over completions.

A held-out prompt has a stricter verifier, which accepts the hidden answers only (`AnswerModes`). Its pass@k is a mass
of rare answers by construction, so it falls whenever they do: retained mass is the primary number, pass@k of the
held-out prompts a picture of it.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import rel_entr

from fgrpo.llm.tiny_world.modes import AnswerModes, third_digits
from fgrpo.llm.tiny_world.task import FAMILIES, SUMS, asked_sum, prompts
from fgrpo.llm.tiny_world.tree import DIGITS, PAIRS, digit_log_probabilities
from fgrpo.theory import correct_entropy, correct_overlap, delta_nll_rare, retained_mass
from fgrpo.theory._validation import FloatArray

PASS_AT = (1, 64, 256)
"""The k of the exact pass@k."""


@dataclass(frozen=True)
class ExactPolicy:
    """The probabilities of a model's answers to some prompts.

    Attributes:
        log_correct_PA: Log-probability of each correct completion with its end token, [P, 100] over its first two
            digits; -inf where two digits have no third that makes the sum.
        openings_PO: Probability of the 1,000 triples of digits as the first three tokens, and last of anything else:
            [P, 1001].
    """

    log_correct_PA: FloatArray
    openings_PO: FloatArray

    @property
    def correct_PA(self) -> FloatArray:
        """Probability of each correct completion, 0 where there is none."""
        return np.exp(self.log_correct_PA)

    @property
    def completions_PC(self) -> FloatArray:
        """The correct completions and one entry for all the others, [P, 101]: a distribution."""
        correct_PA = self.correct_PA
        return np.concatenate([correct_PA, np.maximum(1.0 - correct_PA.sum(axis=1, keepdims=True), 0.0)], axis=1)


def exact_policy(model: Any, asked: Sequence[str], *, dtype: torch.dtype | None = None) -> ExactPolicy:
    """Probabilities of all correct completions of some prompts, by one forward pass.

    Args:
        model: A causal model of the tiny world; it is left as it was.
        asked: Prompts of the tiny world.
        dtype: Precision of the forward pass; default: the model's own. float64 works on a copy.

    Returns:
        Probabilities in float64: exact for the model in that precision (about 1e-6 relative in float32).

    Raises:
        ValueError: If a prompt is none of the tiny world.

    Source: this project.
    """
    third_PA = third_digits()[[SUMS.index(asked_sum(prompt)) for prompt in asked]]
    with torch.inference_mode():
        found = digit_log_probabilities(
            model if dtype is None else _copy(model, dtype), asked, np.arange(PAIRS), np.maximum(third_PA, 0)
        )
        first, second, third, end = (part.double().cpu().numpy() for part in found)
    rows = len(asked)
    opening = (first[:, :, np.newaxis, np.newaxis] + second[..., np.newaxis] + third).reshape(rows, PAIRS, DIGITS)
    correct = np.take_along_axis(opening, np.maximum(third_PA, 0)[..., np.newaxis], axis=2)[..., 0] + end
    openings = np.exp(opening.reshape(rows, -1))
    rest = np.maximum(1.0 - openings.sum(axis=1, keepdims=True), 0.0)
    openings = np.concatenate([openings, rest], axis=1)
    return ExactPolicy(
        log_correct_PA=np.where(third_PA >= 0, np.minimum(correct, 0.0), -np.inf),
        openings_PO=openings / openings.sum(axis=1, keepdims=True),
    )


def world_policies(model: Any, *, dtype: torch.dtype | None = None) -> dict[str, ExactPolicy]:
    """The exact policy on all prompts of each family."""
    return {family: exact_policy(model, prompts(family), dtype=dtype) for family in FAMILIES}


def measures(
    start: Mapping[str, ExactPolicy], present: Mapping[str, ExactPolicy], modes: AnswerModes
) -> dict[str, FloatArray]:
    """All numbers of a policy beside the one at the start, one per sum asked for, [16].

    Args:
        start: The policies of the base model, by family.
        present: The policies to be judged.
        modes: The modes of the world.

    Returns:
        On the trained prompts `correct_mass` (exact pass@1), `rare_mass`, `retained_mass`, `correct_entropy` (nats),
        `effective_number`, `correct_overlap`, `delta_nll_rare` and `delta_nll_common` (nats per completion, means over
        the answers), `kl` (nats, of the openings, from the present policy to the start); on the held-out ones
        `held_out_pass_at_k` with the stricter verifier.

    Source: Eq 26 for M_ret, Section 5.4 for Delta NLL; the rest: this project.
    """
    before, after = start[FAMILIES[0]], present[FAMILIES[0]]
    correct_PC = np.concatenate([modes.correct_PA, np.zeros((len(SUMS), 1), dtype=np.bool_)], axis=1)
    entropy = correct_entropy(after.completions_PC, correct=correct_PC)
    hidden_mass_P = np.sum(present[FAMILIES[1]].correct_PA * modes.hidden_PA, axis=1)
    values = {
        "correct_mass": after.correct_PA.sum(axis=1),
        "rare_mass": np.sum(after.correct_PA * modes.rare_PA, axis=1),
        "retained_mass": retained_mass(before.completions_PC, after.completions_PC, correct=correct_PC),
        "correct_entropy": entropy,
        "effective_number": np.exp(entropy),
        "correct_overlap": correct_overlap(before.completions_PC, after.completions_PC, correct=correct_PC),
        "delta_nll_rare": _nll_rise(before, after, modes.rare_PA),
        "delta_nll_common": _nll_rise(before, after, modes.common_PA),
        "kl": np.maximum(rel_entr(after.openings_PO, before.openings_PO).sum(axis=1), 0.0),
    }
    return values | {f"held_out_pass_at_{k}": pass_at(hidden_mass_P, k) for k in PASS_AT}


def pass_at(success_rate: FloatArray, k: int) -> FloatArray:
    """Exact pass@k = 1 - (1 - q)^k of known success rates q."""
    with np.errstate(divide="ignore"):
        found: FloatArray = -np.expm1(k * np.log1p(-np.minimum(success_rate, 1.0)))
    return found


def _nll_rise(before: ExactPolicy, after: ExactPolicy, members_PA: NDArray[np.bool_]) -> FloatArray:
    return np.array(
        [
            delta_nll_rare(-row_before[members], -row_after[members])
            for row_before, row_after, members in zip(
                before.log_correct_PA, after.log_correct_PA, members_PA, strict=True
            )
        ]
    )


def _copy(model: Any, dtype: torch.dtype) -> Any:
    return deepcopy(model).to(dtype)
