"""Exact enumeration of every group of N rollouts, for the counterexamples that refute the wrong variants."""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import sympy as sp

Rollouts = tuple[int, ...]


def expectation(p: Sequence[Any], group_size: int, value: Callable[[Rollouts], Any]) -> Any:
    """Mean of `value` over all ordered groups of N independent rollouts from p, by enumeration."""
    groups = product(range(len(p)), repeat=group_size)
    return sum((prod((p[i] for i in group), start=sp.Integer(1)) * value(group) for group in groups), sp.Integer(0))


def rare_right_wrong(tau: Any, mu: Any) -> tuple[Any, Any, Any]:
    """Three actions: 0 rare-correct, 1 correct but not rare, 2 wrong."""
    return tau, mu - tau, 1 - mu


def share_correct(group: Rollouts) -> Any:
    """X / N where action 2 is the wrong one."""
    return sp.Rational(sum(i != 2 for i in group), len(group))


def tail_miss(group: Rollouts) -> int:
    """1 if the group is active and has no rare rollout (action 0), else 0."""
    return int(0 not in group and len(set(group)) == 2)
