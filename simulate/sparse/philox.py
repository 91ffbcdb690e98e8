"""Random numbers by counter: Philox4x32-10, so that draw j of step t is the same however a run is cut up.

Source: Salmon et al. 2011 [salmon2011parallel].
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.sparse._compile import compiled, inlined
from fgrpo.simulate.sparse.elementary import log

# Words of 32 bits are held in uint64, where their products have room.
MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
WORD = np.uint64(0xFFFFFFFF)
WORD_BITS = np.uint64(32)
ROUNDS = 10
ONE = np.uint64(1)
TO_53_BITS = np.uint64(11)
UNIT = 2.0**-53
# of 128 bits, the upper 42; the 22 bits after them and 20 more; the lower 42
TO_42_BITS, TO_20_BITS, TO_22_BITS_OF_42 = np.uint64(22), np.uint64(44), np.uint64(20)
LOW_22_BITS, LOW_42_BITS = np.uint64(2**22 - 1), np.uint64(2**42 - 1)
UNIT_OF_42 = 2.0**-42

# Streams of one step: independent of each other
ACTIONS, MEMBERS = np.uint64(0), np.uint64(1)

Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
KeyArray = NDArray[np.uint64]
FloatArray = NDArray[np.float64]


@inlined
def philox(c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64, k0: np.uint64, k1: np.uint64) -> Words:
    """128 random bits as four words, from a counter of four words and a key of two."""
    for _ in range(ROUNDS):
        product_0, product_1 = c0 * MULTIPLIER_0, c2 * MULTIPLIER_1
        c0, c1 = (product_1 >> WORD_BITS) ^ c1 ^ k0, product_1 & WORD
        c2, c3 = (product_0 >> WORD_BITS) ^ c3 ^ k1, product_0 & WORD
        k0, k1 = (k0 + WEYL_0) & WORD, (k1 + WEYL_1) & WORD
    return c0, c1, c2, c3


@inlined
def two_words(j: np.uint64, step: np.uint64, stream: np.uint64, key: KeyArray) -> tuple[np.uint64, np.uint64]:
    """Two independent uniform words of 64 bits, number j of a step's stream."""
    c0, c1, c2, c3 = philox(j, step, stream, key[2], key[0], key[1])
    return (c0 << WORD_BITS) | c1, (c2 << WORD_BITS) | c3


def stream_words(stream_key: int) -> KeyArray:
    """Key of a run: three words, 96 of the 256 bits of RunConfig.stream_key (the third one enters by the counter)."""
    return np.array([(stream_key >> shift) & 0xFFFFFFFF for shift in (0, 32, 64)], dtype=np.uint64)


@compiled
def fill_uniforms(out: FloatArray, count: int, step: int, key: KeyArray) -> None:
    """Writes `count` uniforms on multiples of 2^-53 in [0, 1) into out[:count]; out has room for whole pairs."""
    pairs, t = np.uint64((count + 1) // 2), np.uint64(step)
    for j in range(pairs):  # unsigned, like its bound
        first, second = two_words(np.uint64(j), t, ACTIONS, key)
        out[j] = (first >> TO_53_BITS) * UNIT
        out[pairs + j] = (second >> TO_53_BITS) * UNIT


@compiled
def fill_exponentials(out: FloatArray, count: int, begin: int, step: int, key: KeyArray) -> None:
    """Writes `count` standard exponentials into out[:count]; `begin` triples of the step's stream are used up already.

    `out` has room for whole triples. Uniforms have 42 bits, three to a block: of the law is lost what lies below 2^-42,
    or has that probability.
    """
    triples, t, base = np.uint64((count + 2) // 3), np.uint64(step), np.uint64(begin)
    for j in range(triples):
        first, second = two_words(base + j, t, ACTIONS, key)
        middle = ((first & LOW_22_BITS) << TO_22_BITS_OF_42) | (second >> TO_20_BITS)
        # uniforms in (0, 1], whose logarithm is finite
        out[j] = -log(((first >> TO_42_BITS) + ONE) * UNIT_OF_42)
        out[triples + j] = -log((middle + ONE) * UNIT_OF_42)
        out[2 * triples + j] = -log(((second & LOW_42_BITS) + ONE) * UNIT_OF_42)


@inlined
def scaled(word: np.uint64, bound: np.uint64) -> Any:
    """floor(word * bound / 2^64), signed, for bound < 2^32: uniform on 0 .. bound - 1, each to within 2^-64."""
    return np.int64(((word >> WORD_BITS) * bound + (((word & WORD) * bound) >> WORD_BITS)) >> WORD_BITS)
