"""The expected NLL rise over a set by its definition, in high precision."""

from collections.abc import Sequence
from fractions import Fraction

import mpmath


def _mp(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def rise(initial: Sequence[Fraction], final: Sequence[Fraction], members: Sequence[bool]) -> tuple[float, float, float]:
    """E_{pi_0(.|S)}[ln pi_0 / pi_t], KL(pi_0(.|S) || pi_t(.|S)) and ln(pi_0(S) / pi_t(S)), each by itself."""
    with mpmath.workdps(50):
        pairs = [(p, q) for p, q, inside in zip(initial, final, members, strict=True) if inside]
        mass_0, mass_t = sum(p for p, _ in pairs), sum(q for _, q in pairs)
        total = sum(_mp(p / mass_0) * mpmath.log(_mp(p / q)) for p, q in pairs if p)
        divergence = sum(_mp(p / mass_0) * mpmath.log(_mp((p / mass_0) / (q / mass_t))) for p, q in pairs if p)
        return float(total), float(divergence), float(mpmath.log(_mp(mass_0 / mass_t)))
