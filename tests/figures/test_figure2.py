"""Figure 2: curves and peaks against exact enumeration in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from matplotlib.figure import Figure

from fgrpo.figures import figure_2, figure_2_alt_text, figure_2_data, plot_tail_miss_curves

SUCCESS_RATES = ("0.8", "0.5", "0.2")
RARE_FRACTIONS = ("0.01", "0.05", "0.1", "0.2")


def exact_curve(success_rate: str, rare_fraction: str) -> list[Fraction]:
    """Tail miss for N = 1 .. 512: rollouts without a rare one, less the all-correct and the all-wrong groups."""
    mu = Fraction(success_rate)
    tau = Fraction(rare_fraction) * mu
    return [(1 - tau) ** n - (mu - tau) ** n - (1 - mu) ** n for n in range(1, 513)]


@pytest.fixture(scope="module")
def exact() -> dict[tuple[float, float], list[Fraction]]:
    return {(float(mu), float(rho)): exact_curve(mu, rho) for mu in SUCCESS_RATES for rho in RARE_FRACTIONS}


@pytest.fixture(scope="module")
def data():
    return figure_2_data()


def panel(data, success_rate=0.5):
    return data[data["success_rate"] == success_rate]


def test_data_are_the_exact_curves(data, exact):
    assert len(data) == 12 * 512
    for (success_rate, rare_fraction), curve in data.groupby(["success_rate", "rare_fraction"]):
        assert curve["group_size"].tolist() == list(range(1, 513))
        np.testing.assert_allclose(curve["rare_mass"], success_rate * rare_fraction, rtol=1e-15)
        reference = [float(value) for value in exact[success_rate, rare_fraction]]
        np.testing.assert_allclose(curve["tail_miss_probability"], reference, rtol=1e-13, atol=0)


def test_lines_draw_the_data_and_stars_stand_at_the_exact_peaks(data, exact):
    figure = figure_2(data)
    assert [ax.get_title() for ax in figure.axes] == [f"success rate {mu}" for mu in SUCCESS_RATES]
    for ax, success_rate in zip(figure.axes, SUCCESS_RATES, strict=True):
        lines = [line for line in ax.lines if len(line.get_xdata()) > 1]
        stars = [line for line in ax.lines if line.get_marker() == "*"]
        assert len(lines) == len(stars) == len(RARE_FRACTIONS)
        for line, star, rare_fraction in zip(lines, stars, RARE_FRACTIONS, strict=True):
            curve = exact[float(success_rate), float(rare_fraction)]
            assert line.get_label() == rare_fraction
            assert line.get_color() == star.get_markerfacecolor()
            np.testing.assert_array_equal(line.get_xdata(), range(1, 513))
            np.testing.assert_allclose(line.get_ydata(), [float(value) for value in curve], rtol=1e-13)
            highest = max(range(512), key=curve.__getitem__)
            assert list(star.get_xdata()) == [highest + 1]
            np.testing.assert_allclose(star.get_ydata(), float(curve[highest]), rtol=1e-13)


def test_peaks_as_read_off_the_printed_figure(data):
    peaks = data[data["is_peak"]].set_index(["success_rate", "rare_fraction"])["group_size"]
    printed = {0.8: [15, 8, 6, 4], 0.5: [8, 6, 5, 4], 0.2: [21, 15, 12, 9]}
    assert {mu: peaks[mu].sort_index().tolist() for mu in printed} == printed


def test_axis_and_legends(data):
    figure = figure_2(data)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"rare fraction {rho}" for rho in RARE_FRACTIONS]
    for ax in figure.axes:
        assert ax.get_xscale() == "log"
        assert list(ax.get_xticks()) == [1, 4, 16, 64, 256]
        assert ax.get_legend() is None
    alone = plot_tail_miss_curves(panel(data))
    assert [text.get_text() for text in alone.get_legend().get_texts()] == list(RARE_FRACTIONS)
    assert alone.get_ylabel() == "Pr(tail miss)"
    assert alone.get_xlabel() == "group size N"


def test_draws_on_given_axes_and_leaves_the_row_order_to_itself(data):
    ax = Figure().add_subplot()
    assert plot_tail_miss_curves(panel(data).sample(frac=1, random_state=0), ax) is ax
    assert all(np.all(np.diff(line.get_xdata()) > 0) for line in ax.lines)


def test_figure_makes_its_own_data_if_none_are_given():
    assert len(figure_2().axes) == 3


def test_panel_must_have_one_success_rate(data):
    with pytest.raises(ValueError, match=r"one success_rate, got \[0.2, 0.5, 0.8\]: select"):
        plot_tail_miss_curves(data)
    with pytest.raises(ValueError, match=r"one success_rate, got \[\]"):
        plot_tail_miss_curves(data[:0])


def test_panel_must_not_have_more_curves_than_colours(data):
    many = panel(data).assign(rare_fraction=np.arange(2048) % 5 / 10)
    with pytest.raises(ValueError, match="at most 4 rare fractions, got 5"):
        plot_tail_miss_curves(many)


def test_alt_text_names_the_peaks(data):
    text = figure_2_alt_text(data)
    assert "success rate 0.8: 15, 8, 6, 4; success rate 0.5: 8, 6, 5, 4; success rate 0.2: 21, 15, 12, 9." in text
    assert "\n" not in text
