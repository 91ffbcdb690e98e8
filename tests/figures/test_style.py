"""The style: no global state touched, one look per meaning, readable in print."""

import subprocess
import sys
from itertools import pairwise

import matplotlib
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from pandas import DataFrame

from fgrpo.figures import (
    figure_1,
    figure_1_data,
    figure_2,
    figure_3,
    figure_4,
    figure_4_data,
    figure_5,
    figure_5_data,
    figure_style,
    gamma_line_style,
    group_size_style,
    regime_diagram,
    regime_diagram_data,
)
from fgrpo.figures.style import group_size_axis, group_size_grid
from fgrpo.reported import reported_table

SMALLEST_FONT = 7.0


def test_importing_and_drawing_change_no_setting_and_load_no_pyplot():
    code = (
        "import sys, matplotlib\n"
        "def settings(): return {key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != 'backend'}\n"
        "before = settings()\n"
        "import fgrpo.figures\n"
        "assert settings() == before\n"
        "fgrpo.figures.figure_2()\n"
        "assert settings() == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_style_sets_the_users_settings_aside_and_restores_them():
    with matplotlib.rc_context({"font.size": 33.0, "axes.facecolor": "red"}):
        with figure_style():
            assert matplotlib.rcParams["font.size"] == 7.5
            assert matplotlib.rcParams["axes.facecolor"] == "white"
            assert matplotlib.rcParams["pdf.fonttype"] == 42
        assert matplotlib.rcParams["font.size"] == 33.0
        with pytest.raises(RuntimeError), figure_style():
            raise RuntimeError
        assert matplotlib.rcParams["axes.facecolor"] == "red"


def test_every_power_of_two_has_its_own_colour_and_marker():
    styles = [group_size_style(2**k) for k in range(18)]
    assert len(set(styles)) == 18


@pytest.mark.parametrize("sizes", [(2, 256, 8192, 131072), (2, 32, 512, 8192, 131072)])
def test_group_sizes_shown_together_have_different_colours(sizes):
    assert len({group_size_style(size).color for size in sizes}) == len(sizes)


def test_other_group_sizes_take_the_nearest_power_of_two():
    assert group_size_style(100) == group_size_style(128) != group_size_style(64)


def test_group_size_below_one_is_refused():
    with pytest.raises(ValueError, match="group_size must be at least 1, got 0"):
        group_size_style(0)


def test_gamma_line_styles():
    assert gamma_line_style(0) == "-"
    assert gamma_line_style(1) == "--"
    assert len({gamma_line_style(gamma) for gamma in (0, 0.5, 1, 2)}) == 4
    with pytest.raises(ValueError, match=r"gamma must be one of 0, 0.5, 1, 2 .* got 3"):
        gamma_line_style(3)


def test_group_size_axis_has_a_tick_at_each_power_of_two_and_labels_every_fourth():
    ax = Figure().add_subplot()
    group_size_axis(ax, 2, 131072, label_every=4)
    assert list(ax.get_xticks()) == [2, 32, 512, 8192, 131072]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "32", "512", "8192", "131072"]
    assert set(ax.get_xticks()) | set(ax.get_xticks(minor=True)) == {2**k for k in range(1, 18)}
    assert not any(label.get_text() for label in ax.get_xticklabels(minor=True))


@pytest.mark.parametrize(("smallest", "largest"), [(1, 131072), (2, 8192), (3, 100), (7, 7)])
def test_group_size_grid_is_whole_rising_and_reaches_both_ends(smallest, largest):
    grid = group_size_grid(smallest, largest)
    assert (grid[0], grid[-1]) == (smallest, largest)
    assert all(a < b <= max(a + 1, 1.2 * a) for a, b in pairwise(grid))


def test_group_size_grid_keeps_the_powers_of_two():
    assert {2**k for k in range(18)} <= set(group_size_grid(1, 131072).tolist())


@pytest.fixture(params=["1", "2", "3", "4", "4 without longer runs", "5", "regime", "regime with everything"])
def figure(request, results, with_long_results) -> Figure:
    counts = DataFrame({"samples": 16, "correct": range(17)})
    return {
        "1": lambda: figure_1(figure_1_data(reported_table("group_size"))),
        "3": figure_3,
        "regime": lambda: regime_diagram(regime_diagram_data()),
        "regime with everything": lambda: regime_diagram(
            regime_diagram_data(64, rare_fraction=0.02, counts=counts, results=results)
        ),
        "2": figure_2,
        "4": lambda: figure_4(figure_4_data(with_long_results)),
        "4 without longer runs": lambda: figure_4(figure_4_data(results)),
        "5": lambda: figure_5(figure_5_data(0.63008, 6.2967e-5)),
    }[request.param]()


def _texts(figure: Figure) -> list[Text]:
    with figure_style():
        figure.draw_without_rendering()
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def test_no_text_is_printed_below_seven_points(figure):
    texts = _texts(figure)
    assert len(texts) > 10
    for text in texts:
        assert text.get_fontsize() >= SMALLEST_FONT, text
        # sub- and superscripts shrink to 70 %
        assert not any(mark in part for part in text.get_text().split("$")[1::2] for mark in "^_"), text


def test_no_text_is_cut_off_and_no_texts_overlap(figure):
    texts = _texts(figure)
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    outside = {
        tick.label1  # ticks beyond the limits exist but are not drawn
        for axis in axes
        for tick in axis.get_major_ticks()
        if not axis.get_view_interval()[0] <= tick.get_loc() <= axis.get_view_interval()[1]
    }
    texts = [text for text in texts if text not in outside]
    boxes = [text.get_window_extent() for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text
    for i, box in enumerate(boxes):
        for other, text in zip(boxes[i + 1 :], texts[i + 1 :], strict=True):
            assert not box.overlaps(other), (texts[i], text)
