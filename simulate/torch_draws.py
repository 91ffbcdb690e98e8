"""Exact multinomial sampling of many runs at once, from random numbers that are a function of run, step and draw."""

from collections.abc import Generator, Iterable
from functools import lru_cache
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from fgrpo.simulate.config import RunConfig
from fgrpo.simulate.sampling import DRAWS_AT_ONCE

# draws whose positions are computed at once where groups are small: what costs then is not the arithmetic but the calls
DRAWS_AHEAD = 2**12


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


def ordered_uniforms(keys: Tensor, first: int, draws: int) -> Tensor:
    """Order statistics of `draws` uniforms for each key, float64 in [0, 1), shape [*keys.shape, draws].

    Normalised exponential spacings: linear time, without a sort.

    Args:
        keys: The streams.
        first: How many words of each stream have been used; draws + 1 more are.
        draws: How many uniforms.
    """
    # in (0, 1], with 53 random bits; without the conversion torch would compute in float32
    uniforms = (_shifted(random_words(keys, first, draws + 1), 11) + 1).double().mul_(2.0**-53)
    arrivals = uniforms.log_().neg_().cumsum_(-1)
    # below 1, so that a product with the total stays below it
    return (arrivals[..., :-1] * (1.0 / arrivals[..., -1:])).clamp_(max=1.0 - 2.0**-53)


def add_draws(counts: Tensor, cumulative: Tensor, uniforms: Tensor) -> None:
    """Adds to `counts` how often each action is drawn: inverts the cumulative sum at `uniforms`.

    Actions of probability 0 are never drawn.

    Args:
        counts: float64, shape [runs, actions].
        cumulative: Cumulative sums of non-negative weights, float64, shape [runs, actions].
        uniforms: In [0, 1), ascending (any order is right, this one is fast), shape [runs, draws].
    """
    drawn = torch.searchsorted(cumulative, uniforms * cumulative[:, -1:], right=True)
    counts.scatter_add_(1, drawn, torch.ones_like(uniforms))


class Sampler:
    """Draws the groups of a batch of runs, one group of each run at a call."""

    def __init__(self, group_sizes: list[int], keys: Tensor) -> None:
        """Starts at the first step.

        Args:
            group_sizes: Of each run, ascending.
            keys: See `step_keys`, shape [steps, runs].
        """
        self._uniforms = []
        first = 0
        for size, same in groupby(group_sizes):
            rows = slice(first, first + len(list(same)))
            self._uniforms.append((rows, _uniforms_of_steps(keys[:, rows], size)))
            first = rows.stop

    def add_group(self, counts: Tensor, cumulative: Tensor) -> None:
        """Adds the next group of each run to `counts`, see `add_draws`."""
        for rows, uniforms_of_steps in self._uniforms:
            for uniforms in next(uniforms_of_steps):
                add_draws(counts[rows], cumulative[rows], uniforms)


def _uniforms_of_steps(keys: Tensor, group_size: int) -> Generator[Iterable[Tensor], None, None]:
    """For each step the uniforms of its group, in parts of [runs, draws]; of several steps at once if they are few."""
    steps, runs = keys.shape
    at_once = max(1, DRAWS_AHEAD // (runs * group_size))
    for first in range(0, steps, at_once):
        block = keys[first : first + at_once]
        if group_size <= DRAWS_AT_ONCE:
            yield from ((uniforms,) for uniforms in ordered_uniforms(block, 0, group_size))
        else:
            # each part has used one more word than it has draws
            yield (
                ordered_uniforms(block[0], done + part, min(group_size - done, DRAWS_AT_ONCE))
                for part, done in enumerate(range(0, group_size, DRAWS_AT_ONCE))
            )
