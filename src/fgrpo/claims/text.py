"""How numbers are written in findings."""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fgrpo.simulate.summary import block_words


def numbers(values: ArrayLike, form: str = ".3f") -> str:
    """One or more numbers, separated by slashes."""
    return " / ".join(format(value, form) for value in np.atleast_1d(values))


def sizes(group_sizes: list[int]) -> str:
    """Group sizes by name, 'no N' if there are none."""
    return f"N = {' / '.join(str(n) for n in group_sizes)}" if group_sizes else "no N"


def ranges(group_sizes: Iterable[int], grid: Iterable[int]) -> str:
    """Group sizes by name, neighbours on the grid as ranges, 'no N' if there are none."""
    words = block_words([*group_sizes], [*grid])
    return f"N = {words}" if words else "no N"


def fraction(value: ArrayLike, largest: int = 50_000) -> str:
    """The fraction that a float64 stands for, as far as it is one of a denominator up to `largest`; else 4 digits."""
    number = float(np.asarray(value))
    near = Fraction(number).limit_denominator(largest)
    return str(near) if abs(float(near) - number) <= 1e-13 * max(1.0, abs(number)) else f"{number:.4g}"


def share(part: NDArray[np.bool_]) -> str:
    """Share of true entries, in whole percent."""
    return f"{100 * np.mean(part):.0f} %"


def yes(true: object) -> str:
    """A truth value in a word."""
    return "yes" if true else "no"
