"""The estimate of the tail-miss probability from counts: unbiased by enumeration and by law, limits, bad input."""

from fractions import Fraction as F
from math import comb

import numpy as np
import pytest
from scipy import stats

from fgrpo.theory import tail_miss_estimate, tail_miss_probability
from reference.diagnosis import miss


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("rho", [F(0), F(1, 20), F(1, 3), F(1)])
@pytest.mark.parametrize("mu", [F(0), F(1, 10), F(1, 2), F(9, 10), F(1)])
def test_the_estimate_has_no_bias_and_the_plug_in_has(n: int, rho: F, mu: F) -> None:
    law = [comb(n, x) * mu**x * (1 - mu) ** (n - x) for x in range(n + 1)]
    counts = np.arange(n + 1)
    estimates = tail_miss_estimate(counts, np.full(n + 1, n), float(rho))
    truth = (1 - rho * mu) ** n - (mu - rho * mu) ** n - (1 - mu) ** n
    assert sum(float(p) * value for p, value in zip(law, estimates, strict=True)) == pytest.approx(
        float(truth), abs=1e-14
    )
    if n >= 3 and 0 < mu < 1 and rho < 1:
        plug_in = sum(float(p) * miss(x / n, float(rho) * x / n, n) for x, p in enumerate(law))
        assert abs(plug_in - float(truth)) > 1e-3


def test_the_plug_in_is_low_by_up_to_016_at_8_rollouts() -> None:
    n, rho, x = 8, 0.05, np.arange(9)
    mu = np.linspace(0.001, 0.999, 999)[:, None]
    law = stats.binom.pmf(x, n, mu)
    bias = law @ tail_miss_probability(x / n, rho * x / n, n) - tail_miss_probability(mu, rho * mu, n)[:, 0]
    assert bias.min() == pytest.approx(-0.157, abs=1e-3)  # at mu .146


def test_the_estimate_by_law_of_drawn_groups() -> None:
    # 40,000 groups: a right program fails with probability 6e-5 (4 standard errors)
    generator = np.random.default_rng(3)
    mu, rho, n, groups = 0.7, 0.1, 8, 40_000
    correct = generator.binomial(n, mu, groups)
    estimates = tail_miss_estimate(correct, np.full(groups, n), rho)
    error = estimates.std() / groups**0.5
    truth = float(tail_miss_probability(mu, rho * mu, n))
    assert abs(estimates.mean() - truth) < 4 * error
    wrong = tail_miss_estimate(n - correct, np.full(groups, n), rho)  # wrong rollouts taken for right ones
    assert abs(wrong.mean() - truth) > 4 * error


def test_limits_and_broadcasting() -> None:
    assert tail_miss_estimate([0, 1, 2, 3], 3, 0.0).tolist() == [0, 1, 1, 0]
    assert tail_miss_estimate([0, 1], [1, 1], 0.5).tolist() == [0, 0]
    assert tail_miss_estimate(2, 3, 1.0) == 0
    assert tail_miss_estimate([1, 2], 3, [[0.5], [0.1]]) == pytest.approx(np.array([[0.5, 0.25], [0.9, 0.81]]))
    assert tail_miss_estimate(np.zeros(0), np.zeros(0), 0.1).shape == (0,)


def test_more_correct_rollouts_than_rollouts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"correct must be at most group_size, got 4 > 3: pass the counts"):
        tail_miss_estimate(4, 3, 0.1)
