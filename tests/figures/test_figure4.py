"""Figure 4: its data against literal loops, and what is drawn against its data."""

import math

import mpmath
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fgrpo.figures import (
    figure_4,
    figure_4_alt_text,
    figure_4_data,
    gamma_line_style,
    group_size_style,
    plot_correct_mass,
    plot_final_masses,
    plot_long_retained_mass,
    plot_retained_mass,
)
from fgrpo.simulate import collapse_zone

PAPER_SIZES = (2, 256, 8192, 131072)


def over_seeds(results, metric, group_size, gamma, steps, step):
    """Literal mean, smallest and largest value of one point."""
    values = [
        getattr(row, metric)
        for row in results.itertuples()
        if (row.group_size, row.gamma, row.steps, row.step) == (group_size, gamma, steps, step)
    ]
    return sum(values) / len(values), min(values), max(values), len(values)


def with_final_retained_mass(results, values):
    """The results with the final retained mass of every seed at gamma 0 set, a value per group size."""
    results = results.copy()
    for size, value in values.items():
        final = (results["group_size"] == size) & (results["gamma"] == 0) & (results["step"] == results["steps"])
        results.loc[final, "retained_mass"] = value
    return results


@pytest.fixture(scope="module")
def small(make_results):
    return make_results(group_sizes=(2, 8, 128, 8192), seeds=3, record_every=250)


@pytest.fixture(scope="module")
def small_data(small):
    return figure_4_data(small, group_sizes=(2, 128))


# the data


def test_data_are_the_literal_means_and_extremes(small, small_data):
    simulated = small_data[small_data["metric"] != "tail_miss_probability"]
    assert len(simulated) == 2 * (2 * 2 * 5) + 2 * (4 * 2)
    for row in simulated.itertuples():
        mean, smallest, largest, seeds = over_seeds(small, row.metric, row.group_size, row.gamma, 1000, row.step)
        assert row.mean == pytest.approx(mean, rel=1e-14)
        assert (row.smallest, row.largest, row.seeds) == (smallest, largest, seeds)
    assert set(simulated.loc[simulated["panel"] == "final", "step"]) == {1000}
    assert set(simulated.loc[simulated["panel"] == "sweep", "group_size"]) == {2, 128}
    assert set(simulated.loc[simulated["panel"] == "final", "group_size"]) == {2, 8, 128, 8192}


def test_data_say_what_was_run_in_every_row(small):
    data = figure_4_data(small.assign(reading="hu2025", actions=1280, correct=100), group_sizes=(2,))
    assert list(data.columns[:3]) == ["reading", "actions", "panel"]
    assert set(data["reading"]) == {"hu2025"}
    assert set(data["actions"]) == {1280}


def test_data_do_not_depend_on_the_row_order(small, small_data):
    shuffled = figure_4_data(small.sample(frac=1, random_state=0), group_sizes=(2, 128))
    pd.testing.assert_frame_equal(shuffled, small_data, rtol=1e-14)


@pytest.mark.parametrize("policy", [{}, {"actions": 1280, "correct": 100, "anchor_logit": 4.0, "wrong_logit": 0.5}])
def test_tail_miss_is_that_of_a_leaf_of_the_start_policy(small, policy):
    changed = small.assign(**policy)
    row = changed.iloc[0]
    with mpmath.workdps(60):
        logits = [row["anchor_logit"]] + [row["correct_logit"]] * (row["correct"] - 1)
        correct = [mpmath.exp(z) for z in logits]
        total = mpmath.fsum(correct) + (row["actions"] - row["correct"]) * mpmath.exp(row["wrong_logit"])
        mu, tau = mpmath.fsum(correct) / total, correct[1] / total
        data = figure_4_data(changed, group_sizes=(2,))
        line = data[data["metric"] == "tail_miss_probability"]
        assert (line["group_size"].min(), line["group_size"].max()) == (2, 8192)
        for size, value in zip(line["group_size"].tolist(), line["mean"], strict=True):
            assert value == pytest.approx(float((1 - tau) ** size - (mu - tau) ** size - (1 - mu) ** size), rel=1e-11)


def test_longer_runs_are_a_panel_of_their_own(with_long_results, long_results):
    data = figure_4_data(with_long_results)
    long = data[(data["panel"] == "long") & (data["metric"] == "retained_mass")]
    assert long["step"].max() == 4000
    assert set(long["seeds"]) == {2}
    for row in long[long["step"] % 1000 == 0].itertuples():
        literal = over_seeds(long_results, "retained_mass", row.group_size, row.gamma, 4000, row.step)
        assert (row.mean, row.smallest, row.largest) == pytest.approx(literal[:3], rel=1e-14)


# the panels


@pytest.mark.parametrize(
    ("plot", "panel", "metric"),
    [
        (plot_correct_mass, "sweep", "correct_mass"),
        (plot_retained_mass, "sweep", "retained_mass"),
        (plot_long_retained_mass, "long", "retained_mass"),
    ],
)
def test_trajectories_draw_the_data(with_long_results, plot, panel, metric):
    data = figure_4_data(with_long_results)
    ax = Figure().add_subplot()
    assert plot(data, ax) is ax
    curves = [(size, gamma) for size in PAPER_SIZES for gamma in (0.0, 1.0)]
    bands = [band for band in ax.collections if isinstance(band, PolyCollection)]
    assert len(ax.lines) == len(bands) == len(curves)
    for line, band, (size, gamma) in zip(ax.lines, bands, curves, strict=True):
        selected = (data["panel"] == panel) & (data["metric"] == metric)
        curve = data[selected & (data["group_size"] == size) & (data["gamma"] == gamma)].sort_values("step")
        np.testing.assert_array_equal(line.get_xdata(), curve["step"])
        np.testing.assert_array_equal(line.get_ydata(), curve["mean"])
        assert (line.get_color(), line.get_marker()) == group_size_style(size)
        assert line.get_linestyle() == gamma_line_style(gamma)
        assert to_hex(band.get_facecolor()[0]) == group_size_style(size).color.lower()
        corners = {tuple(corner) for corner in band.get_paths()[0].vertices}
        assert set(zip(curve["step"], curve["smallest"], strict=True)) <= corners
        assert set(zip(curve["step"], curve["largest"], strict=True)) <= corners
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [*(f"N = {size}" for size in PAPER_SIZES), "$\\gamma$ = 0", "$\\gamma$ = 1"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", metric.replace("_", " "))
    assert plot(data, legend=False).get_legend() is None


def test_final_masses_draw_the_data(small_data):
    ax = Figure().add_subplot()
    assert plot_final_masses(small_data, ax) is ax
    drawn = {line.get_label(): line for line in ax.lines}
    final = small_data[small_data["panel"] == "final"]
    for metric in ("correct_mass", "retained_mass"):
        for gamma in (0, 1):
            curve = final[(final["metric"] == metric) & (final["gamma"] == gamma)].sort_values("group_size")
            line = drawn[f"{metric.replace('_', ' ')}, $\\gamma$ = {gamma}"]
            np.testing.assert_array_equal(line.get_xdata(), curve["group_size"])
            np.testing.assert_array_equal(line.get_ydata(), curve["mean"])
            assert line.get_linestyle() == gamma_line_style(gamma)
    curve = final[final["metric"] == "tail_miss_probability"]
    np.testing.assert_array_equal(drawn["Pr(tail miss), start"].get_ydata(), curve["mean"])
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        *("correct mass, $\\gamma$ = 0", "correct mass, $\\gamma$ = 1", "collapse zone"),
        *("retained mass, $\\gamma$ = 0", "retained mass, $\\gamma$ = 1", "Pr(tail miss), start"),
    ]


def shades(ax):
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


@pytest.mark.parametrize(
    ("final", "zone"),
    [
        ({}, [(128, 8192)]),
        ({2: 0.9, 8: 0.9, 128: 0.2, 8192: 0.9}, [(128, 128)]),
        ({2: 0.1, 8: 0.9, 128: 0.9, 8192: 0.1}, [(2, 2), (8192, 8192)]),
        ({2: 0.1, 8: 0.1, 128: 0.9, 8192: 0.1}, [(2, 8), (8192, 8192)]),
    ],
)
def test_shades_cover_the_group_sizes_of_the_zone_and_no_other(small, final, zone):
    changed = with_final_retained_mass(small, final)
    ax = plot_final_masses(figure_4_data(changed, group_sizes=(2,)))
    ends = [(shade.get_x(), shade.get_x() + shade.get_width()) for shade in shades(ax)]
    np.testing.assert_allclose(ends, [(low / math.sqrt(2), high * math.sqrt(2)) for low, high in zone], rtol=1e-15)
    inside = tuple(size for size in (2, 8, 128, 8192) if any(left < size < right for left, right in ends))
    assert inside == collapse_zone(changed)
    assert [text.get_text() for text in ax.get_legend().get_texts()].count("collapse zone") == 1


def test_shade_ends_half_way_to_a_near_neighbour(make_results):
    near = make_results(group_sizes=(64, 128), record_every=500).replace({"group_size": {64: 100}})
    changed = with_final_retained_mass(near, {100: 0.9, 128: 0.1})
    (shade,) = shades(plot_final_masses(figure_4_data(changed, group_sizes=(128,))))
    assert shade.get_x() == pytest.approx(math.sqrt(100 * 128))
    assert shade.get_x() + shade.get_width() == pytest.approx(128 * math.sqrt(2))


def test_zone_with_a_gap_is_said_with_its_gap(small):
    changed = with_final_retained_mass(small, {2: 0.1, 8: 0.9, 128: 0.1, 8192: 0.1})
    data = figure_4_data(changed, group_sizes=(2,))
    assert "below 1/2): N = 2, 128 to 8192." in caption(figure_4(data))
    assert "below 1/2 for group sizes 2, 128 to 8192 without" in figure_4_alt_text(data)


def test_no_zone_no_shade(small):
    changed = with_final_retained_mass(small, dict.fromkeys((2, 8, 128, 8192), 0.9))
    data = figure_4_data(changed, group_sizes=(2,))
    assert not shades(plot_final_masses(data))
    assert "below 1/2): none." in caption(figure_4(data))
    assert "no group size loses half of it" in figure_4_alt_text(data)


# the figure


def caption(figure):
    return figure.get_supxlabel().replace("\n", " ")


def test_figure_has_panel_d_and_a_caption_that_says_what_was_run(with_long_results):
    figure = figure_4(figure_4_data(with_long_results))
    assert [ax.get_title()[0] for ax in figure.axes] == ["a", "b", "c", "d"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][:4] == [f"N = {size}" for size in PAPER_SIZES]
    text = caption(figure)
    assert "Reading figure_matching" in text
    assert "128,000 actions; seeds per curve: 2 to 4;" in text
    assert "lines: mean over the seeds; bands: smallest to largest." in text
    assert "Collapse zone (mean final retained mass at $\\gamma$ = 0 below 1/2): N = 128 to 32768." in text
    assert "no longer runs" not in text


def test_figure_without_longer_runs_leaves_panel_d_out_and_says_so(small):
    changed = small.assign(reading="hu2025", actions=1280, correct=100)
    figure = figure_4(figure_4_data(changed, group_sizes=(2, 128)))
    assert [ax.get_title()[0] for ax in figure.axes] == ["a", "b", "c"]
    assert "Reading hu2025" in caption(figure)
    assert "1,280 actions; seeds per curve: 3;" in caption(figure)
    assert caption(figure).endswith("These results hold no longer runs (panel d).")


def test_alt_text_names_the_zone(results):
    text = figure_4_alt_text(figure_4_data(results))
    assert "group size 2 to 131072" in text
    assert "below 1/2 for group sizes 128 to 32768" in text
    assert "\n" not in text


# what is refused


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda r: r.drop(columns=["retained_mass", "reading"]), "none named retained_mass, reading: pass what"),
        (lambda r: r[r["gamma"] == 1], "must include runs with gamma 0, got none: run the sweep"),
        (lambda r: r[:0], "must include runs with gamma 0, got none"),
        (lambda r: r[r["gamma"] == 0], "runs of 1000 steps with N = 2 and gamma 1, got none, but N = "),
        (lambda r: r[r["group_size"] != 128], "N = 128 and gamma 0, got none, but N = 2, 8, 8192: "),
        (
            lambda r: pd.concat([r, r.assign(reading="hu2025")]),
            "share one reading, got figure_matching, hu2025: select",
        ),
        (lambda r: pd.concat([r, r.assign(actions=1280)]), "share one actions, got 128000, 1280: select"),
        (lambda r: pd.concat([r, r[:3]]), "each group_size, gamma, seed, steps and step once"),
        (
            lambda r: r[(r["seed"] != 1) | (r["group_size"] != 8) | (r["step"] != 1000)],
            r"group_size 8, gamma 0, seed 1\) without step 1000: finish the sweep",
        ),
        (
            lambda r: r[(r["seed"] != 1) | (r["group_size"] != 2) | (r["step"] != 500)],
            "same steps, got different ones at group_size 2 and gamma 0: run them with one record_every",
        ),
    ],
)
def test_unfit_results_are_refused_in_one_line(small, spoil, message):
    with pytest.raises(ValueError, match=message) as caught:
        figure_4_data(spoil(small), group_sizes=(2, 128))
    assert "\n" not in str(caught.value)


def test_longer_runs_must_cover_the_chosen_group_sizes(small, make_results):
    longer = make_results(group_sizes=(2,), seeds=3, steps=4000, record_every=250)
    with pytest.raises(ValueError, match=r"runs of 4000 steps with N = 128 and gamma 0, got none, but N = 2: "):
        figure_4_data(pd.concat([small, longer]), group_sizes=(2, 128))


def test_default_group_sizes_are_the_papers(small):
    with pytest.raises(ValueError, match=r"N = 256 and gamma 0, got none, but N = 2, 8.*: run them, or choose"):
        figure_4_data(small)


def test_panel_without_its_data_is_refused(small_data):
    with pytest.raises(ValueError, match="data must hold retained_mass of panel 'long', got no such rows"):
        plot_long_retained_mass(small_data)
