"""Figure 1: curves against exact enumeration in fractions, scores against the paper's table copied by hand."""

from fractions import Fraction

import numpy as np
import pytest
from matplotlib.figure import Figure

from fgrpo.figures import figure_1, figure_1_alt_text, figure_1_data, plot_reported_pass_rates
from fgrpo.reported import reported_table

# pass@1 and pass@256 in percent, Table 10 of v2
RUNS = (("GRPO", 2), ("GRPO", 8), ("GRPO", 32), ("F-GRPO", 8))
SCORES = {
    "aime25": dict(zip(RUNS, [(8.3, 56.0), (6.7, 40.8), (10.4, 49.5), (10.1, 52.6)], strict=True)),
    "ifeval": dict(zip(RUNS, [(29.4, 77.2), (32.1, 70.3), (31.0, 71.4), (34.0, 75.7)], strict=True)),
}
PEAKS = {0.05: 9, 0.1: 8, 0.2: 6}


@pytest.fixture(scope="module")
def reported():
    return reported_table("group_size")


@pytest.fixture(scope="module")
def data(reported):
    return figure_1_data(reported)


def exact_curve(rare_fraction: float) -> list[Fraction]:
    mu = Fraction(3, 10)
    tau = Fraction(str(rare_fraction)) * mu
    return [(1 - tau) ** n - (mu - tau) ** n - (1 - mu) ** n for n in range(1, 129)]


def test_curves_and_stars_are_exact(data):
    ax = figure_1(data).axes[0]
    lines = [line for line in ax.lines if len(line.get_xdata()) > 1]
    stars = [line for line in ax.lines if line.get_marker() == "*"]
    for line, star, (rare_fraction, peak) in zip(lines, stars, PEAKS.items(), strict=True):
        curve = exact_curve(rare_fraction)
        np.testing.assert_array_equal(line.get_xdata(), range(1, 129))
        np.testing.assert_allclose(line.get_ydata(), [float(value) for value in curve], rtol=1e-13)
        assert list(star.get_xdata()) == [1 + max(range(128), key=curve.__getitem__)] == [peak]


def test_every_curve_bears_its_rare_fraction_at_its_peak(data):
    texts = {text.get_text(): text.xy for text in figure_1(data).axes[0].texts}
    assert {label: place[0] for label, place in texts.items()} == {"rare fraction 0.05": 9, "0.1": 8, "0.2": 6}


@pytest.mark.parametrize("benchmark", SCORES)
def test_marks_stand_at_the_reported_scores(data, benchmark):
    ax = plot_reported_pass_rates(data[data["panel"] == benchmark])
    drawn = [(*line.get_xdata(), *line.get_ydata()) for line in ax.lines]
    assert drawn == list(SCORES[benchmark].values())
    labels = {text.get_text(): text.xy for text in ax.texts if text.get_text()}
    assert labels == {f"{method}, N = {size}": place for (method, size), place in SCORES[benchmark].items()}
    (arrow,) = [text for text in ax.texts if not text.get_text()]
    assert (arrow.xyann, arrow.xy) == (SCORES[benchmark]["GRPO", 8], SCORES[benchmark]["F-GRPO", 8])
    open_marks = [line.get_markerfacecolor() == "white" for line in ax.lines]
    assert open_marks == [method == "F-GRPO" for method, _ in SCORES[benchmark]]


def test_reported_numbers_are_marked_so_with_their_place(data):
    figure = figure_1(data)
    for ax in figure.axes[1:]:
        assert ax.get_xlabel() == "pass@1 in %, as reported"
        assert ax.get_ylabel() == "pass@256 in %, as reported"
    (caption,) = [text.get_text().replace("\n", " ") for text in figure.texts]
    assert "as reported in arXiv 2602.06717v2, Table 10, not rerun" in caption
    scores = data[data["panel"] != "tail_miss"]
    assert set(scores["source"]) == {"as reported, arXiv 2602.06717v2, Table 10"}
    assert data.loc[data["panel"] == "tail_miss", "source"].isna().all()


def test_draws_on_given_axes(data):
    ax = Figure().add_subplot()
    assert plot_reported_pass_rates(data[data["panel"] == "ifeval"], ax) is ax


@pytest.mark.parametrize("panels", [[], ["tail_miss"], ["aime25", "ifeval"]])
def test_panel_of_no_or_several_benchmarks_is_refused(data, panels):
    with pytest.raises(ValueError, match="must show one of the benchmarks aime25, ifeval, got"):
        plot_reported_pass_rates(data[data["panel"].isin(panels)])


def test_incomplete_scores_are_refused(reported):
    with pytest.raises(ValueError, match="must have the column k, got method, group_size, benchmark, value: pass"):
        figure_1_data(reported.drop(columns="k"))
    with pytest.raises(ValueError, match=r"pass@1 on aime25 of GRPO, N = 32, once, got it 0 times"):
        figure_1_data(reported[reported["group_size"] != 32])
    twice = reported.loc[[*reported.index, *reported.index[reported["benchmark"] == "ifeval"]]]
    with pytest.raises(ValueError, match=r"pass@1 on ifeval of GRPO, N = 2, once, got it 2 times"):
        figure_1_data(twice)


def test_alt_text_gives_peaks_and_scores(data):
    text = figure_1_alt_text(data)
    assert "9 (0.05), 8 (0.1), 6 (0.2)" in text
    assert "IFEval GRPO N = 2 29.4 and 77.2, GRPO N = 8 32.1 and 70.3" in text
    assert "as reported" in text
    assert "\n" not in text
