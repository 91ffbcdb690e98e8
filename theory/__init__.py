"""Closed forms: what can be known about group-relative RL with verifiable rewards without sampling."""

from fgrpo.theory.tail_miss import active_probability, coverage_group_size, peak_group_size, tail_miss_probability
from fgrpo.theory.weights import focal_weight

__all__ = [
    "active_probability",
    "coverage_group_size",
    "focal_weight",
    "peak_group_size",
    "tail_miss_probability",
]
