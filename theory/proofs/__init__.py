"""Proofs that a command runs: each statement of the theory as steps that sympy checks or that rest on a named lemma.

A checked step holds for symbolic N, k, and for any number of actions with any probabilities, not at sample numbers.
What sympy cannot check (independence, uniqueness theorems, inequalities such as Jensen's and Chebyshev's
[hardy1952inequalities]) stands as a step of its own with the lemma's name. Each proof carries a falsified variant that
must fail, and a counterexample that shows it false.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fgrpo.theory.proofs._expectations import (
    BATCH_BASELINE_DOMINANCE,
    BATCH_BASELINE_MONOTONE,
    EXPECTED_CHANGE_POSITIVE,
)
from fgrpo.theory.proofs._finite_step import FINITE_STEP_BOUND
from fgrpo.theory.proofs._focal import (
    ADVANTAGE_WEIGHTED_TAIL_MISS,
    FOCAL_TAIL_MISS,
    FOCAL_WEIGHT_MOMENTS,
    MATCHED_LEARNING_RATE,
)
from fgrpo.theory.proofs._logit_update import LOGIT_UPDATE
from fgrpo.theory.proofs._masses import CORRECT_MASS_CHANGE, SAMPLED_MASS_NEVER_FALLS, UNSAMPLED_MASS_CHANGE
from fgrpo.theory.proofs._proof import Proof, Report, Step, StepResult, Wrong
from fgrpo.theory.proofs._tail_miss import (
    INTEGER_PEAK,
    LEMMA_3_1,
    LOG_CONCAVITY,
    MISSES_BEFORE_FIRST_HIT,
    PER_ROLLOUT_MONOTONE,
)
from fgrpo.theory.proofs._utility import NLL_IDENTITY, TIME_CHANGE, UTILITY_GRADIENT
from fgrpo.theory.proofs.render import to_markdown

__all__ = ["PROOFS", "Proof", "Report", "Step", "StepResult", "Wrong", "to_markdown", "verify", "verify_all"]

PROOFS: Mapping[str, Proof] = MappingProxyType(
    {
        proof.name: proof
        for proof in (
            LEMMA_3_1,
            LOG_CONCAVITY,
            INTEGER_PEAK,
            PER_ROLLOUT_MONOTONE,
            MISSES_BEFORE_FIRST_HIT,
            LOGIT_UPDATE,
            CORRECT_MASS_CHANGE,
            UNSAMPLED_MASS_CHANGE,
            SAMPLED_MASS_NEVER_FALLS,
            FINITE_STEP_BOUND,
            EXPECTED_CHANGE_POSITIVE,
            BATCH_BASELINE_MONOTONE,
            BATCH_BASELINE_DOMINANCE,
            UTILITY_GRADIENT,
            TIME_CHANGE,
            FOCAL_TAIL_MISS,
            ADVANTAGE_WEIGHTED_TAIL_MISS,
            FOCAL_WEIGHT_MOMENTS,
            NLL_IDENTITY,
            MATCHED_LEARNING_RATE,
        )
    }
)


def verify(name: str) -> Report:
    """Run the checks of one proof.

    Args:
        name: A key of `PROOFS`, such as 'lemma_3_1'.

    Returns:
        Its report: `ok`, the numbers of steps `checked` by sympy and `on_lemmas`, `seconds`, one result for each step.

    Raises:
        ValueError: If there is no such proof.
    """
    if name not in PROOFS:
        raise ValueError(f"name must be a known proof, got {name!r}: choose one of {', '.join(PROOFS)}")
    return PROOFS[name].verify()


def verify_all() -> tuple[Report, ...]:
    """Run the checks of every proof.

    Returns:
        One report for each proof, in the order of `PROOFS`.
    """
    return tuple(proof.verify() for proof in PROOFS.values())
