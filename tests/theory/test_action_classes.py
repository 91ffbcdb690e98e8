import math
from fractions import Fraction

import numpy as np
import pytest

from fgrpo.theory.action_classes import ActionClasses


def test_appendix_j_numbers():
    start = ActionClasses.appendix_j()
    np.testing.assert_array_equal(start.count, [1, 9_999, 118_000])
    np.testing.assert_array_equal(start.correct, [True, True, False])
    norm = math.exp(5) + 9_999 * math.exp(3) + 118_000
    np.testing.assert_allclose(start.probability, np.exp([5, 3, 0]) / norm, rtol=1e-14)
    assert start.correct_mass == pytest.approx(0.63008, abs=5e-6)
    assert start.probability[0] == pytest.approx(4.6527e-4, abs=5e-9)
    assert start.probability[1] == pytest.approx(6.2967e-5, abs=5e-10)
    assert start.correct_mass + start.wrong_mass == pytest.approx(1, abs=1e-15)


def test_appendix_j_edges():
    alone = ActionClasses.appendix_j(actions=5, correct=1)
    np.testing.assert_array_equal(alone.count, [1, 4])
    far = ActionClasses.appendix_j(actions=3, correct=2, anchor_logit=800.0)
    np.testing.assert_array_equal(far.probability, [1, 0, 0])


def test_a_dense_policy_is_grouped_and_keeps_its_sums():
    policy = np.array([0.1, 0.2, 0.1, 0.1, 0.2, 0.3])
    correct = np.array([True, False, True, False, False, True])
    classes = ActionClasses.from_policy(policy, correct)
    assert sorted(zip(classes.correct, classes.probability, classes.count, strict=True)) == [
        (False, pytest.approx(0.1), 1),
        (False, pytest.approx(0.2), 2),
        (True, pytest.approx(0.1), 2),
        (True, pytest.approx(0.3), 1),
    ]
    assert classes.correct_mass == pytest.approx(0.5)
    assert classes.correct_collision == pytest.approx(0.11)
    assert classes.wrong_collision == pytest.approx(0.09)


def test_one_label_only():
    classes = ActionClasses.from_policy([0.5, 0.5], np.array([True, True]))
    assert classes.wrong_mass == classes.wrong_collision == 0


def test_differences_and_complements_keep_their_digits():
    count = [1, 7, 3, 10_000]
    share = np.array([1.0, 1e-9, 1e-9 * (1 + 1e-12), 1e-17])
    correct = np.array([True, True, False, False])
    classes = ActionClasses(count, share / np.sum(count * share), correct)
    p = [Fraction(q) for q in classes.probability]
    p = [q / sum(m * r for m, r in zip(count, p, strict=True)) for q in p]

    def above(k, same_label):
        chosen = [j for j in range(4) if not same_label or correct[j] == correct[k]]
        return float(p[k] - sum(count[j] * p[j] ** 2 for j in chosen))

    np.testing.assert_allclose(classes.complement, [float(1 - q) for q in p], rtol=1e-15)
    np.testing.assert_allclose(classes.deviation, [above(k, False) for k in range(4)], rtol=1e-14)
    np.testing.assert_allclose(classes.label_deviation, [above(k, True) for k in range(4)], rtol=1e-14)
    equal = ActionClasses([3, 5], [0.125, 0.125], np.array([True, False]))
    assert np.all(equal.deviation == 0)


def test_fields_are_read_only_copies():
    probability = np.array([0.5, 0.5])
    classes = ActionClasses(np.ones(2), probability, np.array([True, False]))
    probability[0] = 1.0
    assert classes.probability[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        classes.count[0] = 2
    with pytest.raises(AttributeError):
        classes.count = np.ones(2)  # type: ignore[misc]


YES_NO = np.array([True, False])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ActionClasses([], [], np.array([], bool)), "not empty"),
        (lambda: ActionClasses([1, 1], [1.0], YES_NO), "equally long"),
        (lambda: ActionClasses([1, 1], [0.5, 0.5], np.array([True])), "equally long"),
        (lambda: ActionClasses([[1, 1]], [[0.5, 0.5]], np.array([[True, False]])), "one-dimensional"),
        (lambda: ActionClasses([[1], [1, 2]], [0.5, 0.5], YES_NO), "count must be a real number"),
        (lambda: ActionClasses([1, 1], [[0.5], [0.5, 0.1]], YES_NO), "probability must be a real number"),
        (lambda: ActionClasses([1, 1], [0.5, 0.5], [[True], [True, False]]), "ragged"),
        (lambda: ActionClasses([1, 1], [0.5, 0.5], [1, 0]), "correct must be a boolean"),
        (lambda: ActionClasses([2, 1], [0.5, 0.5], YES_NO), "sum of count"),
        (lambda: ActionClasses([1, 1], [0.5, 0.5 + 2e-9], YES_NO), "sum of count"),
        (lambda: ActionClasses([0, 1], [0.5, 1.0], YES_NO), "count must be a whole number of at least 1, got 0"),
        (lambda: ActionClasses([1.5, 1], [0.5, 0.25], YES_NO), "count must be a whole number of at least 1, got 1.5"),
        (lambda: ActionClasses([1, 1], [-0.5, 1.5], YES_NO), "probability must be between 0 and 1"),
        (lambda: ActionClasses([1, 1], [np.nan, 1], YES_NO), "probability must be between 0 and 1"),
        (lambda: ActionClasses.from_logits([1, 1], [0.0], YES_NO), "equally long"),
        (lambda: ActionClasses.from_logits([], [], YES_NO), "not empty"),
        (lambda: ActionClasses.from_logits([1, 1], [0.0, np.inf], YES_NO), "logit must be finite"),
        (lambda: ActionClasses.from_policy([0.5, 0.5], np.array([True])), "equally long"),
        (lambda: ActionClasses.from_policy([0.5, 0.4], YES_NO), "sum of policy"),
        (lambda: ActionClasses.appendix_j(correct=0), "correct must be at least 1 and below actions, got 0 of 128000"),
        (lambda: ActionClasses.appendix_j(actions=3, correct=3), "got 3 of 3"),
        (lambda: ActionClasses.appendix_j(correct="a"), "correct must be a real number"),
        (lambda: ActionClasses.appendix_j(actions=[3, 4]), "actions must be one number"),
        (lambda: ActionClasses.appendix_j(correct=2.5), "correct must be a whole number of at least 0, got 2.5"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
