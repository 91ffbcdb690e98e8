"""Exact multinomial sampling of many runs at once, from random numbers that are a function of run, step and draw."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.sampling import DRAWS_AT_ONCE


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


GOLDEN, FIRST_FACTOR, SECOND_FACTOR = map(_signed, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def step_keys(configs: list[RunConfig], steps: int) -> Tensor:
    """A random 64-bit word for each step of each run, int64 of shape [steps, runs]; more steps change none of them."""
    words = [
        # apart from the stream of the reference engine
        np.random.Generator(np.random.PCG64(np.random.SeedSequence(config.stream_key, spawn_key=(1,)))).integers(
            -(2**63), 2**63, size=steps, dtype=np.int64
        )
        for config in configs
    ]
    return torch.from_numpy(np.stack(words, axis=1))


def random_words(keys: Tensor, first: int, number: int) -> Tensor:
    """Words `first` to `first + number - 1` of the streams that the keys start, int64 of shape [*keys.shape, number].

    Source: SplitMix64 [steele2014splittable]; a key is its state, and word k is the state k + 1 steps later.
    """
    words = keys[..., None] + _increments(first, number, keys.device)
    words ^= _shifted(words, 30)
    words *= FIRST_FACTOR
    words ^= _shifted(words, 27)
    words *= SECOND_FACTOR
    words ^= _shifted(words, 31)
    return words


@lru_cache(maxsize=32)
def _increments(first: int, number: int, device: torch.device) -> Tensor:
    return torch.arange(first + 1, first + number + 1, device=device) * GOLDEN


def _shifted(words: Tensor, by: int) -> Tensor:
    # int64 knows the arithmetic shift only
    return (words >> by).bitwise_and_(2 ** (64 - by) - 1)


def add_draws(counts: Tensor, cumulative: Tensor, group_size: int, keys: Tensor) -> None:
    """Draws one group for each run and adds how often each action was drawn to `counts`.

    Inverts the float64 cumulative sum at ordered uniforms, normalised exponential spacings: linear time, without a
    sort. Actions of probability 0 are never drawn.

    Args:
        counts: float64, shape [runs, actions].
        cumulative: Cumulative sums of non-negative weights, float64, shape [runs, actions].
        group_size: Number of draws for each of these runs.
        keys: The runs' words for this step, shape [runs].
    """
    total = cumulative[:, -1:]
    one = torch.ones((), dtype=counts.dtype, device=counts.device)
    for part, first in enumerate(range(0, group_size, DRAWS_AT_ONCE)):
        draws = min(group_size - first, DRAWS_AT_ONCE)
        # in (0, 1], with 53 random bits; each part has used one more number than draws
        uniforms = (_shifted(random_words(keys, first + part, draws + 1), 11) + 1) * 2.0**-53
        arrivals = torch.log(uniforms).neg_().cumsum_(-1)
        points = arrivals[:, :-1] * (total / arrivals[:, -1:])
        # strictly below the total, so that the search cannot run past the last action that has probability
        points = torch.minimum(points, torch.nextafter(total, torch.zeros_like(total)))
        drawn = torch.searchsorted(cumulative, points, right=True)
        counts.scatter_add_(1, drawn, one.expand_as(points))
