from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.theory.weights import focal_weight


@given(st.fractions(0, 1, max_denominator=64), st.integers(0, 5))
def test_equals_the_definition_in_fractions(rate, gamma):
    assert focal_weight(rate, gamma) == pytest.approx(float((1 - rate) ** gamma), rel=1e-14, abs=0)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 50), st.floats(0, 50))
def test_falls_in_both_arguments_within_its_range(rate, other, gamma, more):
    low, high = sorted((rate, other))
    assert 0 <= focal_weight(high, gamma) <= focal_weight(low, gamma) <= 1
    assert focal_weight(rate, gamma + more) <= focal_weight(rate, gamma)


@given(st.integers(2, 512), st.data(), st.floats(0, 4))
def test_never_vanishes_on_an_active_group(n, data, gamma):
    correct = data.draw(st.integers(1, n - 1))
    assert focal_weight(correct / n, gamma) >= float(n) ** -gamma * (1 - 1e-12) > 0


def test_conventions_at_the_ends():
    assert focal_weight(1, 0) == 1  # 0^0
    assert focal_weight(1.0, 1e-3) == 0
    assert focal_weight(0.0, 2.5) == 1
    assert focal_weight(0.5, 0) == 1
    assert focal_weight(Fraction(7, 8), 0.5) == pytest.approx(0.3535533905932738, rel=1e-15)


def test_arrays_broadcast_and_scalars_stay_scalars():
    weights = focal_weight(np.array([[0.0], [0.5]]), [0, 1, 2])
    assert weights.dtype == np.float64
    assert weights == pytest.approx(np.array([[1, 1, 1], [1, 0.5, 0.25]]))
    assert isinstance(focal_weight(0.5, 1), np.float64)
    assert focal_weight(np.array([], dtype=np.int64), 1).shape == (0,)
    assert focal_weight(np.array([True, False]), 1).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_tensors_keep_dtype_device_and_gradient(dtype):
    rate = torch.tensor([0.0, 0.25, 1.0], dtype=dtype, requires_grad=True)
    weight = focal_weight(rate, 2.0)
    assert (weight.dtype, weight.device, weight.shape) == (dtype, rate.device, rate.shape)
    assert weight.tolist() == [1.0, 0.5625, 0.0]
    (gradient,) = torch.autograd.grad(weight.sum(), rate)
    assert gradient.tolist() == [-2.0, -1.5, 0.0]
    assert torch.equal(focal_weight(rate, 0.0), torch.ones(3, dtype=dtype))
    assert focal_weight(torch.zeros(2, device="meta"), 1.0).device.type == "meta"


def test_tensor_subclasses_and_tensor_exponents_count_as_tensors():
    class Tagged(torch.Tensor):
        pass

    assert isinstance(focal_weight(torch.ones(2).as_subclass(Tagged), 1.0), Tagged)
    assert torch.equal(focal_weight(0.5, torch.tensor([0.0, 1.0])), torch.tensor([1.0, 0.5]))


def test_expressions_stay_expressions():
    m, g = sympy.symbols("m g", positive=True)
    assert sympy.simplify(focal_weight(m, g) - (1 - m) ** g) == 0
    assert sympy.diff(focal_weight(m, 2), m).equals(2 * m - 2)
    assert focal_weight(sympy.Integer(1), 0) == 1


@pytest.mark.parametrize(
    ("rate", "gamma", "words"),
    [
        (1.5, 1, "success_rate must be between 0 and 1, got 1.5"),
        ([0.5, -1e-9], 1, "success_rate"),
        (np.nan, 1, "success_rate"),
        ("0.5", 1, "success_rate must be a real number"),
        (None, 1, "success_rate must be a real number"),
        (0.5, -1, "gamma must be finite and at least 0, got -1"),
        (0.5, np.inf, "gamma"),
        (0.5, np.nan, "gamma"),
    ],
)
def test_invalid_input_is_refused_in_one_line(rate, gamma, words):
    with pytest.raises(ValueError, match=words) as error:
        focal_weight(rate, gamma)
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("error")
def test_a_long_double_beyond_float64_is_refused_without_a_warning():
    with pytest.raises(ValueError, match="gamma must be finite and at least 0, got inf"):
        focal_weight(0.3, np.longdouble("1e4000"))
