"""Checks shared by the closed forms: each failure is one line with the rule, the value received and the way out."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

_LARGEST = float(np.finfo(np.float64).max)
_LONGEST_SHOWN = 40


def shown(value: Any) -> str:
    """`value` as an error message quotes it: its literal on one line, cut where it is long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes out no integer of more than some thousand digits
        return f"a {type(value).__name__} too long to write out"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def closest(value: Any, valid: Iterable[str]) -> str:
    """The way out where `value` is none of the `valid` names: the one that it resembles or is a part of, if any."""
    by_lower = {name.lower(): name for name in valid}
    typed = str(value).lower()
    holding = [name for name in by_lower if len(typed) > 1 and typed in name]
    near = [*get_close_matches(typed, by_lower, n=1, cutoff=0.6), *holding]
    return f"did you mean {by_lower[near[0]]!r}?" if near else "pass one of them"


def real(name: str, value: ArrayLike) -> FloatArray:
    """`value` as float64, refused if it is not real-valued."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" and not (array.dtype.kind == "O" and _all_real(array)):
            raise TypeError
        with np.errstate(over="ignore"):  # a longdouble beyond float64 is inf, which the rules below judge
            return array.astype(np.float64, copy=False)
    except OverflowError:
        raise ValueError(f"{name} must be within float64, got {shown(value)}: pass at most {_LARGEST:.3g}") from None
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a real number or an array of them, got {shown(value)}: pass floats") from None


def _all_real(array: NDArray[Any]) -> bool:
    # object arrays come from Fractions, Decimals and huge Python ints; strings would be parsed silently by astype
    return not any(isinstance(item, str | bytes | complex) or item is None for item in array.flat)


def _refuse(name: str, rule: str, array: FloatArray, bad: NDArray[np.bool_], way_out: str) -> None:
    if np.any(bad):
        first = np.broadcast_to(array, bad.shape)[bad].flat[0]
        raise ValueError(f"{name} must be {rule}, got {_plain(float(first))}: {way_out}")


def _plain(value: float) -> str:
    """A number as one would type it: 64 and not 64.0."""
    return repr(value).removesuffix(".0")


def probability(name: str, value: ArrayLike) -> FloatArray:
    """`value` as float64 in [0, 1]."""
    array = real(name, value)
    _refuse(name, "between 0 and 1", array, ~((array >= 0) & (array <= 1)), "pass a probability")
    return array


def open_probability(name: str, value: ArrayLike) -> FloatArray:
    """`value` as float64 in (0, 1)."""
    array = real(name, value)
    _refuse(name, "strictly between 0 and 1", array, ~((array > 0) & (array < 1)), "pass a level such as 0.5")
    return array


def non_negative(name: str, value: ArrayLike, way_out: str) -> FloatArray:
    """`value` as finite float64 >= 0."""
    array = real(name, value)
    _refuse(name, "finite and at least 0", array, ~((array >= 0) & np.isfinite(array)), way_out)
    return array


def positive(name: str, value: ArrayLike, way_out: str) -> FloatArray:
    """`value` as finite float64 > 0."""
    array = real(name, value)
    _refuse(name, "finite and above 0", array, ~((array > 0) & np.isfinite(array)), way_out)
    return array


def finite(name: str, value: ArrayLike, way_out: str) -> FloatArray:
    """`value` as finite float64."""
    array = real(name, value)
    _refuse(name, "finite", array, ~np.isfinite(array), way_out)
    return array


def scalar(name: str, array: FloatArray) -> float:
    """The one number that a checked `array` must be."""
    if array.ndim > 0:
        raise ValueError(f"{name} must be one number, got an array of shape {array.shape}: call once for each value")
    return float(array)


def ddof(value: Any) -> int:
    """Delta degrees of freedom of a standard deviation."""
    if isinstance(value, bool) or not (isinstance(value, int | np.integer) and value in (0, 1)):
        raise ValueError(
            f"ddof must be 0 or 1, got {shown(value)}: 0 is the population standard deviation, 1 the sample one"
        )
    return int(value)


def group_size(value: ArrayLike) -> FloatArray:
    """Group sizes as float64: 0, or any finite real number of at least 1."""
    array = real("group_size", value)
    bad = ~((array == 0) | (array >= 1)) | np.isinf(array)
    _refuse("group_size", "0 or at least 1, and finite", array, bad, "pass the number of rollouts per prompt")
    return array


def integer_group_size(value: ArrayLike, minimum: int = 1) -> FloatArray:
    """Group sizes as float64 that are whole numbers of at least `minimum`."""
    return whole("group_size", value, minimum, "pass the number of rollouts per prompt", largest=_LARGEST)


def limited(name: str, array: FloatArray, largest: float, way_out: str) -> None:
    """Refuse an entry of `array` above `largest`, what memory and patience bear."""
    _refuse(name, f"at most {largest:g} here", array, array > largest, way_out)


def flag(name: str, value: Any) -> bool:
    """`value`, refused unless it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {shown(value)}: pass one of the two")
    return bool(value)


def action_count(value: ArrayLike) -> FloatArray:
    """Numbers of actions in classes of equal ones, as float64 that are whole numbers of at least 1."""
    return whole("count", value, 1, "pass how many actions each class has", largest=_LARGEST)


def rare_mass(success_rate: FloatArray, value: ArrayLike) -> FloatArray:
    """Rare mass as float64 in [0, success_rate]; the two must broadcast."""
    array = probability("rare_mass", value)
    way_out = "the rare-correct region is a part of the correct one (rare_mass = rare_fraction * success_rate)"
    at_most("rare_mass", array, "success_rate", success_rate, way_out)
    return array


def failure_rate(success_rate: FloatArray, value: ArrayLike) -> FloatArray:
    """Failure rate as float64 in [0, 1] that is 1 - success_rate up to rounding; the two must broadcast."""
    array = probability("failure_rate", value)
    broadcastable(success_rate=success_rate, failure_rate=array)
    bad = np.abs(success_rate + array - 1.0) > 1e-12
    _refuse("failure_rate", "1 - success_rate", array, bad, "leave it out, or pass the more exact of the two")
    return array


def learning_rate(value: ArrayLike) -> FloatArray:
    """Learning rate as finite float64 >= 0."""
    return non_negative("learning_rate", value, "pass a step size, times the focal weight if there is one")


def rewards(reward_correct: ArrayLike, reward_wrong: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both rewards as finite float64, reward_correct above reward_wrong; the two must broadcast."""
    correct = finite("reward_correct", reward_correct, "pass the reward of a correct rollout")
    wrong = finite("reward_wrong", reward_wrong, "pass the reward of a wrong rollout")
    broadcastable(reward_correct=correct, reward_wrong=wrong)
    not_above = ~(correct > wrong)
    if np.any(not_above):
        low, high = (np.broadcast_to(part, not_above.shape)[not_above].flat[0] for part in (correct, wrong))
        raise ValueError(
            f"reward_correct must be above reward_wrong, got {low:.17g} <= {high:.17g}: "
            "a verifiable reward tells correct from wrong (typically 1 and 0, or 1 and -1)"
        )
    return correct, wrong


def distribution(name: str, value: ArrayLike, count: FloatArray | None = None) -> FloatArray:
    """Probabilities along the last axis as float64, which sum to 1 within 1e-9; returned divided by their sum.

    With `count`, an entry is the probability of *one* of so many actions.
    """
    array = probability(name, value)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must have at least one action on its last axis, got shape {array.shape}: pass p [..., A]"
        )
    if count is not None:
        broadcastable(**{name: array, "count": count})
    total = np.sum(array if count is None else count * array, axis=-1, keepdims=True)
    _refuse(f"the sum of {name}", "1 within 1e-9", total, ~(np.abs(total - 1.0) <= 1e-9), "normalise the probabilities")
    return np.asarray(array / total)


def mask(name: str, value: ArrayLike) -> NDArray[np.bool_]:
    """`value` as a boolean array with at least one axis."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a boolean array, got a ragged one: pass one flag per action") from None
    if array.dtype != np.bool_ or array.ndim == 0:
        raise ValueError(
            f"{name} must be a boolean array, got dtype {array.dtype} and shape {array.shape}: pass one flag per action"
        )
    return array


def one_of(name: str, value: Any, valid: Iterable[str]) -> str:
    """`value`, refused if it is not among the `valid` names, which the error lists with the nearest one."""
    names = list(valid)
    if isinstance(value, str) and value in names:
        return value
    listed = ", ".join(map(repr, names) if any(" " in one for one in names) else names)
    raise ValueError(f"{name} must be one of {listed}, got {shown(value)}: {closest(value, names)}")


def whole(name: str, value: ArrayLike, minimum: int, way_out: str, *, largest: float = 2.0**53) -> FloatArray:
    """`value` as float64 that are whole numbers from `minimum` to `largest` (from 2^53 on float64 leaves some out)."""
    array = real(name, value)
    bad = ~((array >= minimum) & (array <= _LARGEST) & (array == np.floor(array)))
    _refuse(name, f"a whole number of at least {minimum}", array, bad, way_out)
    _refuse(name, "at most 2^53", array, array > largest, "float64 leaves out whole numbers beyond")
    return array


def at_most(name: str, array: FloatArray, limit_name: str, limit: FloatArray, way_out: str) -> None:
    """Refuse an entry of `array` above its entry of `limit`; the two must broadcast."""
    broadcastable(**{name: array, limit_name: limit})
    above = array > limit
    if np.any(above):
        value, bound = (np.broadcast_to(part, above.shape)[above].flat[0] for part in (array, limit))
        got = f"{_plain(float(value))} > {_plain(float(bound))}"
        raise ValueError(f"{name} must be at most {limit_name}, got {got}: {way_out}")


def broadcastable(**arrays: NDArray[Any]) -> None:
    """Refuse arrays that do not broadcast."""
    if len({array.shape for array in arrays.values() if array.ndim > 0}) <= 1:
        return  # the usual case, at a tenth of the cost
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{array.shape} for {name}" for name, array in arrays.items())
        raise ValueError(f"shapes must broadcast, got {shapes}: pass arrays of one shape, or single numbers") from None


def per_action(**arrays: NDArray[Any]) -> None:
    """Refuse arrays that do not have the same actions on their last axis, or else do not broadcast."""
    if len({array.shape[-1:] for array in arrays.values()}) > 1:
        *names, last = arrays
        shapes = ", ".join(str(array.shape) for array in arrays.values())
        raise ValueError(
            f"{', '.join(names)} and {last} must have the same actions on their last axis, got shapes {shapes}: "
            "pass one entry per action"
        )
    broadcastable(**arrays)


def problem_counts(samples: ArrayLike, **correct: ArrayLike) -> tuple[FloatArray, ...]:
    """Samples and correct counts as one-dimensional arrays of one length, an entry per problem."""
    counts = {"samples": whole("samples", samples, 1, "pass the number of samples drawn for each problem")}
    for name, value in correct.items():
        counts[name] = whole(name, value, 0, "pass the number of correct samples of each problem")
    broadcastable(**counts)
    columns = [np.atleast_1d(array) for array in np.broadcast_arrays(*counts.values())]
    if columns[0].ndim != 1 or columns[0].size == 0:
        raise ValueError(f"counts must be one per problem, got shape {columns[0].shape}: pass shape (problems,)")
    for name, array in zip(correct, columns[1:], strict=True):
        at_most(name, array, "samples", columns[0], "pass the counts of one problem together")
    return tuple(columns)


def gamma(value: ArrayLike) -> FloatArray:
    """Focal exponents as finite float64 >= 0."""
    return non_negative("gamma", value, "pass a focal exponent such as 0 (no weight), 0.5 or 1")


def install(extra: str = "") -> str:
    """How to get this package or an extra of it, for the end of an error: nothing is published, it is a checkout's."""
    part = f"[{extra}]" if extra else ""
    return f"pip install -c constraints.txt -e '.{part}' in the checkout"
