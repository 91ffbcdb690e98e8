from fractions import Fraction
from math import comb

import numpy as np
import pytest
import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.weights import (
    WEIGHTS,
    constant_weight,
    focal_weight,
    hard_upweight,
    inverse_weight,
    pass_at_k_weight,
    step_weight,
)

CALLS = {
    "focal": lambda m: WEIGHTS["focal"](m, 0.5),
    "constant": lambda m: WEIGHTS["constant"](m, 0.75),
    "hard_upweight": lambda m: WEIGHTS["hard_upweight"](m, 2.0),
    "step": lambda m: WEIGHTS["step"](m, 0.5, below=1.5, above=0.25),
    "inverse": lambda m: WEIGHTS["inverse"](m),
    "pass_at_k": lambda m: WEIGHTS["pass_at_k"](m, 3, group_size=8),
}


def test_registry_is_complete_and_read_only():
    assert set(CALLS) == set(WEIGHTS)
    assert WEIGHTS["focal"] is focal_weight
    with pytest.raises(TypeError):
        WEIGHTS["focal"] = constant_weight  # type: ignore[index]


def test_values():
    m = np.array([0.0, 0.25, 0.5, 1.0])
    assert constant_weight(m).tolist() == [1, 1, 1, 1]
    assert constant_weight(m, 0.5).tolist() == [0.5, 0.5, 0.5, 0.5]
    assert hard_upweight(m, 2).tolist() == [3, 2.5, 2, 1]
    assert step_weight(m, 0.5).tolist() == [1, 1, 1, 0]
    assert step_weight(m, 0.25, below=2, above=0.5).tolist() == [2, 2, 0.5, 0.5]
    assert inverse_weight(m).tolist() == [np.inf, 4, 2, 1]
    assert pass_at_k_weight(m, 2).tolist() == [2, 1.5, 1, 0]


@given(n=st.integers(2, 60), k=st.integers(1, 40), x=st.integers(0, 60))
def test_unbiased_pass_at_k_weight_is_the_binomial_quotient(n, k, x):
    k, x = min(k, n - 1), min(x, n)
    exact = Fraction(k * n, n - 1) * Fraction(comb(max(n - x - 1, 0), k - 1), comb(n - 2, k - 1))
    assert pass_at_k_weight(x / n, k, group_size=n) == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_tensors_keep_dtype_and_agree_with_arrays(name):
    m = np.arange(1, 8) / 8
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-15)):
        weight = CALLS[name](torch.tensor(m, dtype=dtype))
        assert weight.dtype == dtype
        np.testing.assert_allclose(weight.numpy(), CALLS[name](m), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_step_of_tensors_is_exact_and_keeps_the_dtype(dtype):
    m, low, high = [0.25, 0.5, 0.75], 1.1, 0.3
    expected = torch.tensor([low, low, high], dtype=dtype)
    rates, threshold = torch.tensor(m, dtype=dtype), torch.tensor([0.5] * 3, dtype=dtype)
    for weight in (
        step_weight(rates, 0.5, below=low, above=high),
        step_weight(rates, threshold, below=low, above=high),
        step_weight(0.5, 1 - rates, below=low, above=high),
    ):
        assert weight.dtype == dtype
        assert torch.equal(weight, expected)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "step"])
def test_expressions(name):
    m = sympy.Symbol("m", positive=True)
    expression = CALLS[name](m)
    for x in range(1, 8):
        assert float(sympy.sympify(expression).subs(m, sympy.Rational(x, 8))) == pytest.approx(
            CALLS[name](x / 8), rel=1e-13
        )


@pytest.mark.parametrize("name", CALLS)
def test_shapes(name):
    assert CALLS[name](np.full((2, 3), 0.5)).shape == (2, 3)
    assert isinstance(CALLS[name](0.5), float)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, "x", None])
def test_invalid_success_rate(name, bad):
    with pytest.raises(ValueError, match="success_rate must be") as error:
        CALLS[name](bad)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: constant_weight(0.5, -1), "value must be finite and at least 0, got -1"),
        (lambda: hard_upweight(0.5, -1), "alpha must be finite and at least 0, got -1"),
        (lambda: step_weight(0.5, 1.5), "threshold must be between 0 and 1, got 1.5"),
        (lambda: step_weight(0.5, 0.5, below=-1), "below must be finite and at least 0, got -1"),
        (lambda: step_weight(0.5, 0.5, above=np.inf), "above must be finite and at least 0, got inf"),
        (lambda: pass_at_k_weight(0.5, 0), "k must be a whole number of at least 1, got 0"),
        (lambda: pass_at_k_weight(0.5, 2.5), "k must be a whole number of at least 1, got 2.5"),
        (lambda: pass_at_k_weight(0.5, 8, group_size=8), "group_size must be a whole number of at least 9, got 8"),
    ],
)
def test_invalid_parameters(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("error")
def test_the_inverse_of_the_smallest_success_rate_is_infinite():
    assert inverse_weight(5e-324) == np.inf
