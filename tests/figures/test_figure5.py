"""Figure 5: curves and marks against the literal formula in 60 digits."""

import mpmath
import numpy as np
import pytest
from matplotlib.figure import Figure

from fgrpo.figures import (
    figure_5,
    figure_5_alt_text,
    figure_5_data,
    plot_leaf_tail_miss,
    plot_leaf_tail_miss_difference,
)

START = (0.63008, 6.2967e-5)
CURVES = {"as printed": (0.64, 6.3e-5), "start policy": START}


def reference(success_rate: float, rare_mass: float, group_size: int) -> mpmath.mpf:
    with mpmath.workdps(60):
        mu, tau = mpmath.mpf(success_rate), mpmath.mpf(rare_mass)
        return (1 - tau) ** int(group_size) - (mu - tau) ** int(group_size) - (1 - mu) ** int(group_size)


@pytest.fixture(scope="module")
def data():
    return figure_5_data(*START)


def test_data_follow_the_formula_at_all_powers_of_two_and_between(data):
    assert list(data["curve"].unique()) == list(CURVES)
    for name, curve in data.groupby("curve"):
        success_rate, rare_mass = CURVES[name]
        assert {2**k for k in range(18)} <= set(curve["group_size"])
        assert (curve["group_size"].min(), curve["group_size"].max()) == (1, 2**17)
        assert set(curve["success_rate"]) == {success_rate}
        assert set(curve["rare_mass"]) == {rare_mass}
        literal = [float(reference(success_rate, rare_mass, size)) for size in curve["group_size"]]
        np.testing.assert_allclose(curve["tail_miss_probability"], literal, rtol=1e-13, atol=1e-50)


def test_both_curves_are_drawn_and_labelled(data):
    ax = plot_leaf_tail_miss(data)
    drawn = {line.get_label().partition("\n")[0]: line for line in ax.lines if len(line.get_xdata()) > 1}
    for name, curve in data.groupby("curve"):
        np.testing.assert_array_equal(drawn[name].get_xdata(), curve["group_size"])
        np.testing.assert_array_equal(drawn[name].get_ydata(), curve["tail_miss_probability"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "as printed\nsuccess rate 0.64, rare mass 6.3e-5",
        "start policy\nsuccess rate 0.63008, rare mass 6.297e-5",
    ]
    # told apart although they coincide: the later one is thinner and of another colour
    assert drawn["as printed"].get_linewidth() > 2 * drawn["start policy"].get_linewidth()
    assert drawn["as printed"].get_color() != drawn["start policy"].get_color()


def test_star_stands_at_the_whole_number_peak(data):
    ax = plot_leaf_tail_miss(data)
    (star,) = [line for line in ax.lines if line.get_marker() == "*"]
    peak = max(range(1, 200), key=lambda size: reference(*START, size))
    assert list(star.get_xdata()) == [peak]
    assert f"peak {float(reference(*START, peak)):.4f}\nat N = {peak}" in [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(("level", "name"), [(0.5, "1/2"), (1e-3, "1/1000")])
def test_marks_stand_where_the_level_is_kept_from_then_on(data, level, name):
    ax = plot_leaf_tail_miss(data)
    (mark,) = [line for line in ax.lines if line.get_marker() == "o" and list(line.get_ydata()) == [level]]
    (size,) = mark.get_xdata()
    assert size == int(size)
    assert reference(*START, size) <= level < reference(*START, size - 1)
    assert f"{name} at N = {size:.0f}" in [text.get_text() for text in ax.texts]


def test_difference_is_the_start_less_the_printed_curve(data):
    ax = plot_leaf_tail_miss_difference(data)
    (line,) = [line for line in ax.lines if len(line.get_xdata()) > 2]
    literal = [float(reference(*START, size) - reference(*CURVES["as printed"], size)) for size in line.get_xdata()]
    np.testing.assert_allclose(line.get_ydata(), literal, rtol=0, atol=1e-14)
    assert ax.get_ylabel() == "start policy minus as printed"


@pytest.mark.parametrize("plot", [plot_leaf_tail_miss, plot_leaf_tail_miss_difference])
def test_draws_on_given_axes_whatever_the_row_order(data, plot):
    ax = Figure().add_subplot()
    assert plot(data.sample(frac=1, random_state=0), ax) is ax
    assert ax.get_xscale() == "log"
    assert list(ax.get_xticks()) == [1, 16, 256, 4096, 65536]
    expected = plot(data)
    for line, other in zip(ax.lines, expected.lines, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), other.get_xydata())


def test_figure_has_both_panels(data):
    assert [ax.get_title()[0] for ax in figure_5(data).axes] == ["a", "b"]


def test_rare_mass_above_success_rate_is_refused():
    with pytest.raises(ValueError, match="rare_mass must be at most success_rate"):
        figure_5_data(0.1, 0.2)


def test_alt_text_gives_the_marks(data):
    text = figure_5_alt_text(data)
    assert "highest at N = 19" in text
    assert "1/2 at N = 11008, 1/1000 at N = 109701" in text
    assert "differs from the printed one, 0.64, by at most 0.0082" in text
