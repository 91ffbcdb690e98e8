"""The measures of the sparse engine, from rows, against the dense formulas of fgrpo.simulate.metrics."""

import numpy as np
import pytest

from fgrpo.simulate import PolicyClass, PolicyConfig, engine_reference
from fgrpo.simulate.metrics import GROUP_MEASURES, group_metrics, policy_metrics
from fgrpo.simulate.policy import initial_logits, softmax
from fgrpo.simulate.sparse import engine, group_measures, groups, philox, rows, simulate_sparse, steps
from fgrpo.simulate.sparse.measures import MEASURES
from fgrpo.simulate.updates import WeightedGroup
from fgrpo.theory import tail_miss_probability
from reference.sparse_runs import dense_logits, fields, in_use, small

POLICY_MEASURES = MEASURES[:8]
CLASSES = (
    PolicyClass(4, 1.5, True),
    PolicyClass(500, 0.0, False),
    PolicyClass(60, 1.0, True),
    PolicyClass(1, 2.0, False),
    PolicyClass(30, 1.0, True),
)


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
@pytest.mark.parametrize(("group_size", "learning_rate"), [(2, 0.01), (64, 0.05), (1000, 0.05), (64, 1000.0)])
def test_measures_equal_the_dense_formulas(preset, group_size, learning_rate):
    # the largest learning rate drives logits to thousands, where masses underflow and the shift must move
    config = small(preset, group_size=group_size, learning_rate=learning_rate, steps=95, weight_decay=1e-4)
    start = rows.start_of(config.policy)
    _, measured, progress = engine.run(config, start)
    logits = dense_logits(progress, start)
    assert logits.size == config.policy.actions
    assert np.isfinite(measured[1:, 11:]).all()
    if learning_rate > 1:
        assert np.ptp(logits) > 1000
    expected = policy_metrics(logits, initial_logits(config.policy), config.policy.correct)
    for name in POLICY_MEASURES:
        assert measured[-1, MEASURES.index(name)] == pytest.approx(expected[name], rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
@pytest.mark.parametrize("policy", [PolicyConfig(600, 90, 2.0, 1.0), PolicyConfig(classes=CLASSES, leaf_class=0)])
@pytest.mark.parametrize(("group_size", "learning_rate"), [(2, 0.01), (6, 0.05), (300, 0.05), (6, 4.0)])
def test_group_measures_equal_the_dense_formulas(preset, policy, group_size, learning_rate):
    """Step by step, on groups with members of rows of several actions, active or not."""
    config = small(preset, group_size=group_size, learning_rate=learning_rate, policy=policy)
    # rows keep their places, so that they can be followed
    start, rule = rows.start_of(policy), steps.rule_of(config.update, 100, 5.0)._replace(future=np.inf)
    key, buffer, out = philox.stream_words(7), groups.buffer_for(group_size), np.empty(len(MEASURES))
    progress, origin = engine.begin(start, out)
    unsettled = 0
    for step in range(1, 101):
        progress, draws = engine.draw(progress, group_size, step, key, buffer, True)
        # draw has made room, so rows are numbered for good until the next one
        old, class_row = in_use(progress.extent), progress.rows.class_row.copy()
        logit, multiplicity = np.zeros((2, progress.rows.origin.size))
        logit[old], multiplicity[old] = fields(progress, rows.LOGIT, rows.MULTIPLICITY)
        times, origin_of = progress.rows.times.copy(), progress.rows.origin.copy()
        fresh = np.setdiff1d(np.flatnonzero(times), old)
        np.subtract.at(multiplicity, class_row[origin_of[fresh]], 1)
        row = np.concatenate([np.repeat(old, multiplicity[old].astype(int)), fresh])
        row = row[np.argsort(~start.correct[origin_of[row]], kind="stable")]
        parent = np.where(np.isin(row, fresh), class_row[origin_of[row]], row)
        before, leaf = logit[parent], start.leaf[origin_of[row]]
        probabilities = softmax(before)
        assert draws.correct_mass == pytest.approx(probabilities[: policy.correct].sum(), rel=1e-12)
        rate = draws.successes / group_size
        pair = (1 - rate) * 2 / group_size, -rate * 2 / group_size
        progress = engine.update(progress, draws, (1.0, *pair), start, origin, rule, group_size, step, True, out)

        settled = np.isin(row, in_use(progress.extent))
        unsettled += int((~settled).sum())
        logit[in_use(progress.extent)] = fields(progress, rows.LOGIT)[0]
        after = logit[np.where(settled, row, parent)]
        # leaves to the front, where a slice can name them
        order = np.argsort(~leaf, kind="stable")
        assert start.correct[origin_of[row[order]]][: policy.correct].all()
        group = WeightedGroup(times[row[order]], policy.correct, group_size, (0, 0), (0, 0))
        moved, leaves = (after - before)[order], slice(0, int(leaf.sum()))
        assert leaves.stop == policy.leaves.stop - policy.leaves.start
        expected = group_metrics(group, 0 < rate < 1, leaves, probabilities[order], moved)
        for name, value in zip(GROUP_MEASURES, out[-4:], strict=True):
            assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-12), (step, name)
    if learning_rate == 0.01 and preset == "figure_matching":
        assert unsettled > 0


@pytest.mark.parametrize("preset", ["figure_matching", "appendix_j_literal"])
@pytest.mark.parametrize("wrong_logit", [-60.0, 60.0])
def test_homogeneous_groups_change_exactly_nothing(preset, wrong_logit):
    config = small(preset, wrong_logit=wrong_logit, weight_decay=0.0)
    start = rows.start_of(config.policy)
    _, measured, progress = engine.run(config, start)
    assert in_use(progress.extent).size == 3
    np.testing.assert_array_equal(dense_logits(progress, start), initial_logits(config.policy))
    np.testing.assert_array_equal(measured[:, :8], np.broadcast_to(measured[0, :8], (7, 8)))
    trajectory = simulate_sparse(config)
    assert (trajectory.retained_mass == 1.0).all()
    assert (trajectory.share_improved == 0.0).all()
    assert trajectory.active_share[1:].tolist() == [0.0] * 6
    assert trajectory.leaf_tail_miss[1:].tolist() == [0.0] * 6
    assert trajectory.unsampled_correct_mass_change[1:].tolist() == [0.0] * 6
    assert np.isnan(trajectory.mean_weight).all()


@pytest.mark.parametrize(
    "changes", [{"correct": 1}, {"actions": 2, "correct": 1}, {"correct": 1279}, {"group_size": 1}]
)
def test_extreme_policies_run(changes):
    config = small(**changes)
    start = rows.start_of(config.policy)
    _, measured, progress = engine.run(config, start)
    expected = policy_metrics(dense_logits(progress, start), initial_logits(config.policy), config.policy.correct)
    for name in POLICY_MEASURES:
        assert measured[-1, MEASURES.index(name)] == pytest.approx(expected[name], rel=1e-12, abs=1e-12), name
    theirs = engine_reference.simulate(config)
    for name in GROUP_MEASURES:
        assert np.isfinite(measured[1:, MEASURES.index(name)]).all()
        assert np.isfinite(getattr(theirs, name)[1:]).all()


def test_the_start_has_a_row_for_the_anchor_and_one_for_each_class():
    start = rows.start_of(PolicyConfig(classes=CLASSES, leaf_class=0))
    assert start.multiplicity.tolist() == [1, 3, 60, 30, 500, 1]
    assert start.logit.tolist() == [1.5, 1.5, 1.0, 1.0, 0.0, 2.0]
    assert start.correct.tolist() == [True] * 4 + [False] * 2
    assert start.leaf.tolist() == [True, True, False, False, False, False]
    paper = rows.start_of(PolicyConfig())
    assert paper.multiplicity.tolist() == [1, 9_999, 118_000]
    assert paper.leaf.tolist() == [False, True, False]
    assert rows.start_of(PolicyConfig(correct=1)).leaf.tolist() == [True, False]


@pytest.mark.parametrize("group_size", [1, 2, 3, 30, 1000, 100_000, 2**31 - 1])
@pytest.mark.parametrize("wrong_mass", [0.0, 1e-12, 0.03, 0.6, 1 - 1e-3])
def test_the_sum_of_tail_misses_is_that_of_the_theory(group_size, wrong_mass):
    """Leaves of any size next to each other, so that the powers and the formula both have their part."""
    leaf_number = np.arange(1.0, 41.0)
    leaf_mass = 10.0 ** np.linspace(-14, -0.01, 40) * (1 - wrong_mass)
    masses = 7.0 * leaf_mass, leaf_number, 7.0 * (1 - wrong_mass), 7.0 * wrong_mass
    exact = tail_miss_probability(1 - wrong_mass, leaf_mass, group_size, failure_rate=wrong_mass)
    ours = group_measures.sum_of_tail_misses(*masses, group_size)
    assert ours == pytest.approx((exact * leaf_number).sum(), rel=1e-11, abs=1e-200)
    for index in range(40):
        one = leaf_mass[index : index + 1] * 7.0, np.ones(1), *masses[2:]
        assert group_measures.sum_of_tail_misses(*one, group_size) == pytest.approx(exact[index], rel=1e-9, abs=1e-200)
