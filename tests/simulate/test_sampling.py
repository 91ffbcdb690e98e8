"""Goodness of fit. Each test has one fixed seed; over seeds it would reject a right sampler with probability 1e-4."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from fgrpo.simulate import PolicyConfig, sampling
from fgrpo.simulate.policy import initial_logits, softmax
from fgrpo.simulate.sampling import sample_counts
from reference.simulation import goodness_of_fit, pooled, sample_counts_float32

FALSE_ALARM = 1e-4
DRAWS = 2_000_000
POLICY = PolicyConfig()


def start():
    return softmax(initial_logits(POLICY))


def concentrated():
    """A late policy: wrong logits between -5 and -8, that is probabilities of 3e-8 and less."""
    logits = initial_logits(POLICY)
    logits[POLICY.correct :] = np.linspace(-5, -8, POLICY.actions - POLICY.correct)
    return softmax(logits)


def tail_goodness_of_fit(counts, probabilities):
    """p-value for the wrong actions by themselves: given their number, and their number."""
    tail = slice(POLICY.correct, None)
    number, mass = int(counts[tail].sum()), float(probabilities[tail].sum())
    shape = goodness_of_fit(counts[tail], probabilities[tail])
    # Bonferroni over the two parts keeps the false-alarm rate
    return 2 * min(shape, scipy.stats.binomtest(number, int(counts.sum()), mass).pvalue)


@pytest.mark.parametrize("policy", [start, concentrated])
@pytest.mark.parametrize("group_size", [1, 8, 8192, DRAWS])
def test_counts_follow_the_exact_law(policy, group_size):
    probabilities, rng = policy(), np.random.default_rng(1)
    groups = max(1, min(200, DRAWS // group_size))
    counts = sum(sample_counts(probabilities, group_size, rng) for _ in range(groups))
    assert counts.sum() == groups * group_size
    assert goodness_of_fit(counts, probabilities) > FALSE_ALARM


@pytest.mark.parametrize("policy", [start, concentrated])
def test_the_rare_tail_by_itself_follows_the_exact_law(policy):
    probabilities = policy()
    counts = sample_counts(probabilities, DRAWS, np.random.default_rng(2))
    assert tail_goodness_of_fit(counts, probabilities) > FALSE_ALARM


def test_a_float32_cumulative_sum_is_rejected_at_the_concentrated_policy():
    probabilities = concentrated()
    counts = sample_counts_float32(probabilities, DRAWS, np.random.default_rng(2))
    assert goodness_of_fit(counts, probabilities) < FALSE_ALARM
    assert tail_goodness_of_fit(counts, probabilities) < FALSE_ALARM


def test_a_wrong_target_is_rejected():
    probabilities = start()
    counts = sample_counts(probabilities, DRAWS, np.random.default_rng(2))
    off = probabilities.copy()
    off[POLICY.correct :] *= 1.02
    assert goodness_of_fit(counts, off) < FALSE_ALARM


def test_agrees_with_numpys_multinomial():
    probabilities, rng = concentrated(), np.random.default_rng(3)
    ours = sample_counts(probabilities, DRAWS, rng)
    theirs = rng.multinomial(DRAWS, probabilities)
    expected = DRAWS * probabilities
    table = [pooled(counts, expected, 10.0)[0] for counts in (ours, theirs)]
    assert scipy.stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_joint_law_of_a_small_group_is_multinomial():
    probabilities, group_size, groups = np.array([0.5, 0.3, 0.2]), 3, 20_000
    rng = np.random.default_rng(4)
    outcomes = [one for one in itertools.product(range(4), repeat=3) if sum(one) == group_size]
    seen = dict.fromkeys(outcomes, 0)
    for _ in range(groups):
        seen[tuple(sample_counts(probabilities, group_size, rng).tolist())] += 1
    exact = [
        math.factorial(3)
        / math.prod(map(math.factorial, one))
        * math.prod(p**n for p, n in zip(probabilities, one, strict=True))
        for one in outcomes
    ]
    assert scipy.stats.chisquare(list(seen.values()), np.array(exact) * groups).pvalue > FALSE_ALARM


def test_large_groups_are_drawn_in_independent_parts(monkeypatch):
    monkeypatch.setattr(sampling, "DRAWS_AT_ONCE", 1000)
    probabilities = np.array([0.4, 0.3, 0.2, 0.1])
    rng = np.random.default_rng(6)
    for group_size in (999, 1000, 1001, 2000, 54_321):
        counts = sample_counts(probabilities, group_size, rng)
        assert counts.sum() == group_size
    assert goodness_of_fit(counts, probabilities) > FALSE_ALARM


def test_impossible_actions_are_never_drawn_and_weights_need_not_be_normalised():
    weights = np.array([0.0, 3.0, 0.0, 1.0, 0.0])
    scratch = np.empty(5)
    counts = sample_counts(weights, 100_000, np.random.default_rng(7), scratch)
    assert counts[[0, 2, 4]].tolist() == [0, 0, 0]
    assert scipy.stats.binomtest(int(counts[1]), 100_000, 0.75).pvalue > FALSE_ALARM
    assert scratch[-1] == 4.0


def test_a_draw_at_the_upper_end_falls_on_the_last_possible_action():
    class LastSpacingZero:
        def standard_exponential(self, number):
            return np.array([1.0] * (number - 1) + [0.0])

    assert sample_counts(np.array([0.5, 0.5, 0.0]), 2, LastSpacingZero()).tolist() == [0, 2, 0]
