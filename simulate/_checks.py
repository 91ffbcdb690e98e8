"""Checks of single configuration values: each failure is one line with the rule, the value received and the way out."""

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from fgrpo.theory._validation import FloatArray, shown

LARGEST_COUNT = 2**31 - 1


def assign(config: Any, **values: Any) -> None:
    """Sets fields of a frozen dataclass: for its own __post_init__, which normalises what it was given."""
    for name, value in values.items():
        object.__setattr__(config, name, value)


def whole_number(name: str, value: Any, way_out: str, *, minimum: int, maximum: int | None = LARGEST_COUNT) -> int:
    """`value` as int in [minimum, maximum]; Python and numpy integers only."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < minimum or (maximum is not None and value > maximum):
        rule = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        raise ValueError(f"{name} must be a whole number {rule}, got {shown(value)}: {way_out}")
    return int(value)


def number(
    name: str,
    value: Any,
    check: Callable[[str, Any, str], FloatArray],
    way_out: str,
    *,
    largest: float = float("inf"),
) -> float:
    """`value` as one float64 of at most `largest` in size that passes `check`, one of fgrpo.theory; no booleans."""
    if isinstance(value, bool | np.bool_ | str) or np.ndim(value) != 0:
        raise ValueError(f"{name} must be one real number, got {shown(value)}: {way_out}")
    # + 0.0 turns -0.0 into 0.0: equal configurations must have one canonical JSON
    result = float(check(name, value, way_out)) + 0.0
    if abs(result) > largest:
        raise ValueError(f"{name} must be at most {largest:g} in size, got {result!r}: {way_out}")
    return result
