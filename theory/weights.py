"""Weights of a prompt as functions of its success rate: the focal weight of F-GRPO, and others to compare it with."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from fgrpo.theory import _validation as check

_SYMBOLIC_OR_TENSOR = {"torch", "sympy"}
_MOST_ATTEMPTS = 1e6  # factors of a product, one after the other


def focal_weight(success_rate: Any, gamma: Any) -> Any:
    """Focal weight g = (1 - success_rate)^gamma, with 0^0 = 1.

    One function for every back end: it scales the advantages of all rollouts of a prompt, in the simulator, in a
    trainer and in a proof.

    Args:
        success_rate: Share of correct rollouts of a group (the paper's sampled estimate X/N) or their probability, in
            [0, 1]. A number, an array of any shape, a torch tensor or a sympy expression.
        gamma: Focal exponent, >= 0. gamma = 0 gives weight 1 (the unweighted method), also at success_rate = 1.

    Returns:
        The weight in [0, 1], broadcast over both arguments: float64 for numbers and arrays, a tensor of the input's
        dtype and device for a tensor, an expression for an expression.

    Raises:
        ValueError: If a number or an array is out of range or not a number. Tensors and expressions are not checked:
            reading a tensor's values would synchronise the device, so who passes tensors answers for their range.

    Limiting cases: on an active group (0 < X < N) the weight is at least N^-gamma, never 0; at N = 2 every active group
    has X/N = 1/2, so the weight is the constant 2^-gamma.

    Source: Section 4.1 (v1 and v2), after the focal loss [lin2017focal].
    """
    if _is_symbolic_or_tensor(success_rate) or _is_symbolic_or_tensor(gamma):
        return (1 - success_rate) ** gamma
    rate = check.probability("success_rate", success_rate)
    exponent = check.gamma(gamma)
    check.broadcastable(success_rate=rate, gamma=exponent)
    return np.power(1.0 - rate, exponent)[()]


def constant_weight(success_rate: Any, value: Any = 1.0) -> Any:
    """Weight that ignores the success rate: `value` everywhere (1: the unweighted method).

    Args:
        success_rate: Success rate in [0, 1]: a number, an array, a torch tensor or a sympy expression.
        value: The weight, >= 0.

    Returns:
        `value`, broadcast over both arguments; back ends and checks as for `focal_weight`.

    Raises:
        ValueError: If a number or an array is out of range or not a number.

    Source: this project.
    """
    if _is_symbolic_or_tensor(success_rate) or _is_symbolic_or_tensor(value):
        return 0 * success_rate + value
    rate = check.probability("success_rate", success_rate)
    constant = check.non_negative("value", value, "value = 1 leaves the update as it is")
    check.broadcastable(success_rate=rate, value=constant)
    return (0.0 * rate + constant)[()]


def hard_upweight(success_rate: Any, alpha: Any) -> Any:
    """Weight 1 + alpha (1 - success_rate): hard prompts count more, easy ones no less than without it.

    Args:
        success_rate: Success rate in [0, 1]: a number, an array, a torch tensor or a sympy expression.
        alpha: Extra weight of a prompt that is never solved, >= 0; 0 gives weight 1.

    Returns:
        The weight in [1, 1 + alpha], broadcast over both arguments; back ends and checks as for `focal_weight`.

    Raises:
        ValueError: If a number or an array is out of range or not a number.

    Source: this project.
    """
    if _is_symbolic_or_tensor(success_rate) or _is_symbolic_or_tensor(alpha):
        return 1 + alpha * (1 - success_rate)
    rate = check.probability("success_rate", success_rate)
    extra = check.non_negative("alpha", alpha, "alpha = 0 turns the extra weight off")
    check.broadcastable(success_rate=rate, alpha=extra)
    return (1.0 + extra * (1.0 - rate))[()]


def step_weight(success_rate: Any, threshold: Any, *, below: Any = 1.0, above: Any = 0.0) -> Any:
    """Weight `below` up to and including the threshold, `above` past it: by default, easy prompts are left out.

    Args:
        success_rate: Success rate in [0, 1]: a number, an array or a torch tensor. No sympy expressions: a step has no
            closed form in the arithmetic that back ends share.
        threshold: Success rate at which the step stands, in [0, 1].
        below: Weight of success rates <= threshold, >= 0.
        above: Weight of success rates > threshold, >= 0.

    Returns:
        The weight, broadcast over all arguments; a tensor of the input's dtype and device for a tensor, also if only
        the threshold is one.

    Raises:
        ValueError: If a number or an array is out of range or not a number.

    Source: this project.
    """
    if _is_symbolic_or_tensor(success_rate) or _is_symbolic_or_tensor(threshold):
        zero = 0 * success_rate + 0 * threshold  # of the tensor's dtype: a number times truth values would be float32
        return (zero + below).where(success_rate <= threshold, zero + above)
    rate, step = check.probability("success_rate", success_rate), check.probability("threshold", threshold)
    low = check.non_negative("below", below, "below = 1 leaves these prompts as they are")
    high = check.non_negative("above", above, "above = 0 leaves these prompts out")
    check.broadcastable(success_rate=rate, threshold=step, below=low, above=high)
    return np.where(rate <= step, low, high)[()]


def inverse_weight(success_rate: Any) -> Any:
    """Weight 1 / success_rate, that of maximum-likelihood training: without a standard deviation its utility is log mu.

    On a group of N rollouts it is at most N; the utility is then sum_k pass@k / k over k = 1..N-1, log mu cut off.

    Args:
        success_rate: Success rate in [0, 1]: a number, an array, a torch tensor or a sympy expression.

    Returns:
        The weight, >= 1; inf at success rate 0, where no group is active, and where 1 / success_rate is no double. Back
        ends and checks as for `focal_weight`.

    Raises:
        ValueError: If a number or an array is out of range or not a number.

    Source: this project; the objective log mu and its series in pass@k: [tajwar2026maxrl].
    """
    if _is_symbolic_or_tensor(success_rate):
        return 1 / success_rate
    with np.errstate(divide="ignore", over="ignore"):
        return (1.0 / check.probability("success_rate", success_rate))[()]


def pass_at_k_weight(success_rate: Any, k: int, *, group_size: int | None = None) -> Any:
    """Weight whose utility, without a standard deviation, is pass@k = 1 - (1 - mu)^k.

    Without `group_size` the plug-in weight k (1 - m)^(k-1), k times the focal weight with gamma = k - 1: its utility is
    pass@k for N -> inf only. With `group_size` the unbiased one of an N-rollout group with X = m N correct rollouts,

        k N/(N-1)  C(N-X-1, k-1) / C(N-2, k-1),

    whose utility is pass@k at every N >= k + 1 (active groups; it is 0 once N - X < k).

    Args:
        success_rate: Success rate in [0, 1]: a number, an array, a torch tensor or a sympy expression.
        k: Attempts, a whole number >= 1, with `group_size` at most 10^6; k = 1 gives a constant: 1, or N/(N-1) with
            `group_size`.
        group_size: N, a whole number > k, or None for the plug-in weight.

    Returns:
        The weight, in the shape of success_rate: in [0, k], or in [0, k N/(N-k)] with `group_size`. Back ends and
        checks as for `focal_weight`.

    Raises:
        ValueError: If k or group_size is out of range, or a number or an array is out of range or not a number.

    Source: this project (proof `utility_gradient`).
    """
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1, got {check.shown(k)}: pass the number of attempts")
    if group_size is not None:
        check.limited("k", check.real("k", k), _MOST_ATTEMPTS, "leave group_size out: the weight for N -> inf")
        check.scalar("group_size", check.integer_group_size(group_size, minimum=k + 1))
    if not _is_symbolic_or_tensor(success_rate):
        success_rate = check.probability("success_rate", success_rate)
    if group_size is None:
        return k * focal_weight(success_rate, k - 1)
    weight = 0 * success_rate + k * group_size / (group_size - 1)
    for i in range(1, k):
        factor = (group_size * (1 - success_rate) - i) / (group_size - 1 - i)
        # past its zero the product stays zero: fewer wrong rollouts than attempts
        weight = weight * (factor + abs(factor)) / 2
    return weight[()] if isinstance(weight, np.ndarray) else weight


WEIGHTS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "focal": focal_weight,
        "constant": constant_weight,
        "hard_upweight": hard_upweight,
        "step": step_weight,
        "inverse": inverse_weight,
        "pass_at_k": pass_at_k_weight,
    }
)
"""The weights by name; the first argument of each is the success rate, the others are its parameters."""


def _is_symbolic_or_tensor(value: Any) -> bool:
    # by name, so that theory imports neither torch nor sympy; the whole MRO, so that subclasses of a tensor count
    return any(base.__module__.partition(".")[0] in _SYMBOLIC_OR_TENSOR for base in type(value).__mro__)
