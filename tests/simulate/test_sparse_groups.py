"""The groups of the sparse engine, by law. Fixed seeds; over seeds each test would reject right code with probability
1e-4."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from fgrpo.simulate import PolicyConfig
from fgrpo.simulate.policy import initial_logits, softmax
from fgrpo.simulate.sampling import sample_counts
from fgrpo.simulate.sparse import groups, philox, rows
from reference.simulation import goodness_of_fit, pooled, sample_counts_float32
from reference.sparse_runs import in_use, plain_start

FALSE_ALARM = 1e-4
DRAWS = 2_000_000
POLICY = PolicyConfig()


def concentrated_logits():
    """A late policy: wrong logits between -5 and -8, that is probabilities of 3e-8 and less."""
    logits = initial_logits(POLICY)
    logits[POLICY.correct :] = np.linspace(-5, -8, POLICY.actions - POLICY.correct)
    return logits


def ready(start):
    """Rows with masses, their extent and their total."""
    state, extent = rows.new_rows(start)
    rows.compute_masses(state, extent.end, start.logit.max())
    return state, extent, rows.accumulate(state, extent.end)


def single_actions(logits):
    return ready(plain_start(logits, np.ones(logits.size), np.arange(logits.size) < POLICY.correct))


def draw_counts(state, extent, total, group_size, steps, seed=1):
    """Times each row was drawn in all groups together."""
    key, buffer = philox.stream_words(seed), groups.buffer_for(group_size)
    counts = np.zeros(extent.end, dtype=np.int64)
    for step in range(1, steps + 1):
        found = groups.draw_rows(state, extent.end, total, group_size, step, key, buffer)
        drawn = state.drawn[:found]
        assert np.unique(drawn).size == found
        assert (state.times[drawn] > 0).all()
        assert state.times[drawn].sum() == group_size
        counts[drawn] += state.times[drawn]
        state.times[drawn] = 0
        assert not state.times.any()
    assert counts.sum() == counts[in_use(extent)].sum()
    return counts[in_use(extent)]


@pytest.mark.parametrize("logits", [initial_logits(POLICY), concentrated_logits()], ids=["start", "concentrated"])
@pytest.mark.parametrize(("group_size", "steps"), [(1, 300), (8, 300), (512, 300), (8192, 240), (131_072, 15)])
def test_counts_follow_the_exact_law(logits, group_size, steps):
    counts = draw_counts(*single_actions(logits), group_size, steps)
    assert goodness_of_fit(counts, softmax(logits)) > FALSE_ALARM


def test_a_group_of_several_parts_follows_the_exact_law():
    # three parts; shared random numbers would double the variance
    logits = concentrated_logits()
    counts = draw_counts(*single_actions(logits), 300_000, 1)
    assert goodness_of_fit(counts, softmax(logits)) > FALSE_ALARM
    assert goodness_of_fit(2 * (counts // 2) + 2 * (counts % 2), softmax(logits)) < FALSE_ALARM


@pytest.mark.parametrize("group_size", [200, 8192])
def test_the_rare_tail_by_itself_follows_the_exact_law_and_a_float32_sum_does_not(group_size):
    logits, tail = concentrated_logits(), slice(POLICY.correct, None)
    probabilities = softmax(logits)
    steps = DRAWS // group_size
    counts = draw_counts(*single_actions(logits), group_size, steps)
    wrong = sample_counts_float32(probabilities, steps * group_size, np.random.default_rng(2))
    assert goodness_of_fit(counts[tail], probabilities[tail]) > FALSE_ALARM / 2
    mass = float(probabilities[tail].sum())
    assert scipy.stats.binomtest(int(counts[tail].sum()), steps * group_size, mass).pvalue > FALSE_ALARM / 2
    assert goodness_of_fit(wrong[tail], probabilities[tail]) < FALSE_ALARM


def test_agrees_with_the_sampler_of_the_reference_engine():
    logits = concentrated_logits()
    expected = DRAWS * softmax(logits)
    ours = draw_counts(*single_actions(logits), 100_000, 20)
    theirs = sample_counts(softmax(logits), DRAWS, np.random.default_rng(3))
    table = [pooled(counts, expected, 10.0)[0] for counts in (ours, theirs)]
    assert scipy.stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_rows_of_many_actions_are_drawn_by_their_mass():
    start = rows.start_of(POLICY)
    counts = draw_counts(*ready(start), 8192, 100)
    masses = start.multiplicity * np.exp(start.logit)
    assert scipy.stats.chisquare(counts, counts.sum() * masses / masses.sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("group_size", [1, 100, 8192, 500_000])
def test_rows_without_mass_are_never_drawn(group_size):
    # logits far below the others, rows that hold no action, whole blocks of either; enough blocks for both methods
    row = np.arange(64 * 500)
    logits = np.where((row % 3 == 1) | (row // 64 % 7 == 2), -5000.0, 0.0)
    multiplicity = np.where((row % 5 == 2) | (row // 64 % 7 == 4), 0.0, 1.0)
    counts = draw_counts(*ready(plain_start(logits, multiplicity, row < 100)), group_size, 20)
    assert counts[(logits < 0) | (multiplicity == 0)].sum() == 0
    assert counts.sum() == 20 * group_size


def test_points_at_the_very_end_fall_on_the_last_row_that_has_mass():
    logits = np.array([0.0, 0.0, -5000.0])
    state, _, total = ready(plain_start(logits, np.ones(3), np.array([True, False, False])))
    # the last spacing is 0, so the last point is the total itself; the wrong rows begin at 64
    spacings = np.zeros(groups.buffer_for(2).size)
    spacings[:2] = 1.0
    assert groups._merge(state, 2, total, 2, spacings, 0) == 1
    assert state.times[[0, 64, 65]].tolist() == [0, 2, 0]
    state.times[:] = 0
    assert groups._search(state, 2, total, 2, np.array([1.0, 0.0])) == 2
    assert state.times[[0, 64, 65]].tolist() == [1, 1, 0]


@pytest.mark.parametrize("draws", [1, 2, 7, 8, 100, 1001])
def test_points_are_the_partial_sums_of_the_spacings(draws):
    spacings = np.random.default_rng(4).exponential(size=groups.buffer_for(draws).size)
    expected = 3.0 * np.cumsum(spacings[:draws]) / spacings[: draws + 1].sum()
    groups._make_points(spacings, draws, 3.0)
    np.testing.assert_allclose(spacings[:draws], expected, rtol=1e-13)
    assert (np.diff(spacings[:draws]) >= 0).all()
    assert (spacings[draws : draws + groups.BOUNDS] == np.inf).all()


def exact_law(sizes, weights, group_size):
    """Probability of (times the anchor, times of the members of each class in descending order), by enumeration."""
    actions = [(class_, member) for class_, size in enumerate(sizes) for member in range(size)]
    total = sum(size * weight for size, weight in zip(sizes, weights, strict=True))
    law = Counter()
    for group in itertools.product(actions, repeat=group_size):
        probability = Fraction(1)
        for class_, _ in group:
            probability *= Fraction(weights[class_], total)
        law[pattern(Counter(group), len(sizes))] += probability
    return law


def pattern(times, classes):
    """What remains of the counts {(class, member): times} when members cannot be told apart."""
    return tuple(
        tuple(sorted((n for (class_, _), n in times.items() if class_ == one), reverse=True)) for one in range(classes)
    )


def member_patterns(sizes, weights, group_size, steps, tell_apart=True):
    start = plain_start(np.log(weights), np.array(sizes, dtype=float), np.array([True, True, False]))
    state, extent, total = ready(start)
    state, extent = rows.with_room(state, extent, group_size, group_size)
    key, buffer = philox.stream_words(9), groups.buffer_for(group_size)
    seen = Counter()
    for step in range(1, steps + 1):
        found = groups.draw_rows(state, extent.end, total, group_size, step, key, buffer)
        if tell_apart:
            found, _ = groups.tell_members_apart(state, extent, found, step, key)
        drawn = state.drawn[:found].tolist()
        assert len(set(drawn)) == found
        assert state.times[state.drawn[:found]].sum() == group_size
        seen[pattern({(int(state.origin[row]), row): int(state.times[row]) for row in drawn}, 3)] += 1
        state.times[:] = 0
    return seen


def p_value(seen, law):
    keys = sorted(law, key=law.get)
    steps = sum(seen.values())
    if not set(seen) <= set(keys):
        return 0.0  # something impossible happened
    observed, expected = pooled(
        np.array([seen[key] for key in keys]), np.array([float(law[k]) * steps for k in keys]), 8
    )
    return scipy.stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(observed) - 1)


@pytest.mark.parametrize(("sizes", "weights"), [((1, 3, 2), (2, 1, 3)), ((1, 2, 4), (1, 4, 1))])
def test_joint_law_of_a_group_over_exchangeable_actions(sizes, weights):
    law = exact_law(sizes, weights, 4)
    assert p_value(member_patterns(sizes, weights, 4, 30_000), law) > FALSE_ALARM
    # one action more in a class is noticed, and so is one that no two draws share
    assert p_value(member_patterns((1, sizes[1] + 1, sizes[2]), weights, 4, 30_000), law) < FALSE_ALARM
    shared = member_patterns(sizes, weights, 4, 30_000, tell_apart=False)
    assert p_value(shared, law) < FALSE_ALARM
