"""The random numbers and elementary functions of the sparse engine. Statistical tests have fixed seeds; over seeds each
would reject right code with probability 1e-4."""

import errno
import math

import numba
import numpy as np
import pytest
import scipy.stats

from fgrpo.simulate.sparse import _compile, elementary, groups, philox
from fgrpo.simulate.sparse._compile import compiled, number_below, sum_octets

FALSE_ALARM = 1e-4
ULP = 2.0**-52


@compiled
def all_exp(x, out):
    for i in range(x.size):
        out[i] = elementary.exp(x[i])


@compiled
def all_exp_small(x, out):
    for i in range(x.size):
        out[i] = elementary.exp_small(x[i])


@compiled
def all_log(x, out):
    for i in range(x.size):
        out[i] = elementary.log(x[i])


@compiled
def one_philox(counter, key):
    return philox.philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])


@compiled
def one_scaled(word, bound):
    return philox.scaled(word, bound)


@compiled
def count_below(values, begin, bound):
    return number_below(values, begin, bound)


@compiled
def add_octets(values, begin, sums, to):
    return sum_octets(values, begin, sums, to)


def applied(function, x):
    out = np.empty_like(x)
    function(x, out)
    return out


def worst_error(actual, expected):
    """In units of 2^-52, relative."""
    return np.abs((actual - expected) / expected).max() / ULP


def test_exp_is_accurate_over_its_whole_range():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-708, 709, 400_000), rng.uniform(-1, 1, 200_000), rng.normal(0, 1e-9, 1000)])
    x = np.concatenate([x, np.log(2) * (np.arange(-1000, 1000) + 0.5), [0.0, 709.0]])
    assert worst_error(applied(all_exp, x), np.exp(x)) < 2
    assert applied(all_exp, np.array([0.0, -0.0])).tolist() == [1.0, 1.0]


def test_exp_ends_at_zero_and_at_a_finite_bound():
    out = applied(all_exp, np.array([-708.0, -708.5, -1e4, -1e300, -np.inf, 710.0, 1e300]))
    assert out[:5].tolist() == [0.0] * 5
    assert out[5] == out[6] == pytest.approx(np.exp(709.0), rel=1e-12)


def test_exp_small_is_accurate_up_to_its_bound():
    x = np.append(np.linspace(-elementary.SMALL, elementary.SMALL, 400_001), [1e-9, -1e-17])
    assert worst_error(applied(all_exp_small, x), np.exp(x)) < 2
    assert applied(all_exp_small, np.array([0.0]))[0] == 1.0
    # the bound matters: the series is cut where it still holds
    assert worst_error(applied(all_exp_small, np.array([0.4])), np.exp([0.4])) > 100


def test_log_is_accurate_over_its_whole_range():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.random(400_000), np.exp(-700 * rng.random(100_000)), 1 - 1e-3 * rng.random(100_000)])
    x = np.concatenate([x[x > 0], [2.0**-53, 1 - 2.0**-53, np.sqrt(0.5), 0.5]])
    x = x[x < 1]
    assert worst_error(applied(all_log, x), np.log(x)) < 3
    assert applied(all_log, np.array([1.0]))[0] == 0.0


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_answers(counter, key, answer):
    words = one_philox(np.array(counter, dtype=np.uint64), np.array(key, dtype=np.uint64))
    assert tuple(map(int, words)) == answer


def test_uniforms_are_the_bits_of_philox_by_step_and_draw():
    key = philox.stream_words(2**255 + 12345678901234567890123)
    out = np.empty(10)
    philox.fill_uniforms(out, 9, 77, key)
    for draw in range(9):
        pair, second = draw % 5, draw // 5
        c = tuple(map(int, one_philox(np.array([pair, 77, 0, key[2]], dtype=np.uint64), key)))
        assert out[draw] == (((c[2 * second] << 32) | c[2 * second + 1]) >> 11) * 2.0**-53


def test_the_key_takes_96_bits_of_the_stream_key():
    assert philox.stream_words((3 << 64) | (2 << 32) | 1).tolist() == [1, 2, 3]


@pytest.mark.parametrize("count", [200_000, 200_001])
def test_uniforms_and_exponentials_have_their_laws(count):
    out, key = np.empty(count + 2), philox.stream_words(987654321987654321987654321)
    philox.fill_uniforms(out, count, 3, key)
    assert 0.0 <= out[:count].min() < out[:count].max() < 1.0
    assert scipy.stats.kstest(out[:count], "uniform").pvalue > FALSE_ALARM
    assert scipy.stats.kstest(out[:count] ** 1.02, "uniform").pvalue < FALSE_ALARM
    assert np.unique(out[:count]).size == count
    philox.fill_exponentials(out, count, 0, 4, key)
    assert scipy.stats.kstest(out[:count], "expon").pvalue > FALSE_ALARM


def test_steps_runs_and_parts_have_numbers_of_their_own():
    key, other = philox.stream_words(1), philox.stream_words(2**64)
    draws = np.zeros((4, 999))
    philox.fill_exponentials(draws[0], 999, 0, 1, key)
    philox.fill_exponentials(draws[1], 999, 333, 1, key)
    philox.fill_exponentials(draws[2], 999, 0, 2, key)
    philox.fill_exponentials(draws[3], 999, 0, 1, other)
    assert np.unique(draws).size == 3996


def test_exponentials_are_the_bits_of_philox_three_to_a_block():
    key, out = philox.stream_words(2**200 + 99), np.empty(9)
    philox.fill_exponentials(out, 9, 5, 77, key)
    for draw in range(9):
        c = one_philox(np.array([5 + draw % 3, 77, 0, key[2]], dtype=np.uint64), key)
        bits = sum(int(word) << (96 - 32 * index) for index, word in enumerate(c))
        uniform = (((bits >> (86, 44, 0)[draw // 3]) % 2**42) + 1) * 2.0**-42
        assert out[draw] == pytest.approx(-math.log(uniform), rel=1e-14)


def test_scaled_is_the_exact_floor():
    rng = np.random.default_rng(5)
    for word in [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *map(int, rng.integers(0, 2**64, 200, dtype=np.uint64))]:
        for bound in (1, 2, 3, 10_000, 2**31 - 1, 2**32 - 1):
            assert one_scaled(np.uint64(word), np.uint64(bound)) == word * bound >> 64


def test_vectors_are_compared_as_single_values():
    values = np.sort(np.random.default_rng(6).random(40))
    for bound in (0.0, values[3], 0.5, values[30], 1.0):
        assert count_below(values, 4, bound) == (values[4:20] < bound).sum()


def test_vectors_are_added_as_single_values():
    values, sums = 2.0 ** np.random.default_rng(7).integers(0, 20, 70), np.full(12, -1.0)  # whose sums are exact
    assert add_octets(values, 3, sums, 2) == values[3:67].sum()
    assert sums.tolist() == [-1.0, -1.0, *values[3:67].reshape(8, 8).sum(axis=1), -1.0, -1.0]


def test_a_point_is_located_among_the_sums():
    values = np.array([9.0, 1.0, 0.0, 2.0, 3.0, 1.0, 1.0, 4.0, 5.0])
    sums = np.cumsum(values[1:])
    for point in np.arange(0.0, 20.0, 0.5):
        lane, before = groups.locate(values, 1, point)
        assert lane == min(np.searchsorted(sums, point, side="right"), 7)
        assert before == (sums[lane - 1] if lane else 0.0)


def test_without_a_folder_for_machine_code_functions_are_compiled_in_each_process(monkeypatch):
    njit = numba.njit

    def without_folder(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(numba, "njit", without_folder)
    assert _compile.compiled_once(lambda x: x + 1.0)(2.0) == 3.0


def test_machine_code_that_cannot_be_kept_is_compiled_all_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))
    tried = []

    def open_full_disk(self, *arguments):
        tried.append(self)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", open_full_disk)
    assert _compile.compiled_once(lambda x: x + 1.0)(2.0) == 3.0
    assert len(tried) == 1
