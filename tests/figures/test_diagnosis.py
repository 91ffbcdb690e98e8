"""Plots of a diagnosis: they draw the numbers that they are given."""

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure
from pandas import DataFrame

from fgrpo.figures.diagnosis import (
    plot_prompts_over_time,
    plot_shares_over_time,
    plot_strength,
    plot_tail_misses_over_time,
)
from fgrpo.figures.svg import inline_svg

STEPS = ["1 to 2", "3", "4 to 9"]


def windows(*names: str) -> DataFrame:
    table = DataFrame({"steps": STEPS})
    for i, name in enumerate(names):
        for suffix, shift in (("", 0.0), ("_lower", -0.05), ("_upper", 0.05)):
            table[f"{name}{suffix}"] = 0.1 * (i + 1) + np.array([0.1, 0.2, 0.3]) + shift
    return table


def test_shares() -> None:
    names = ["success_rate", "active_share", "all_wrong_share", "all_right_share"]
    table = windows(*names)
    left, right = plot_shares_over_time(table).axes
    drawn = [line.get_ydata() for ax in (left, right) for line in ax.lines]
    for curve, name in zip(drawn, names, strict=True):
        np.testing.assert_array_equal(curve, table[name])
    edges = [ax.collections[0].get_paths()[0].vertices[:, 1] for ax in (left, right)]
    for edge, name in zip(edges, names[::2], strict=True):
        assert (edge.min(), edge.max()) == (table[f"{name}_lower"].min(), table[f"{name}_upper"].max())
    assert [text.get_text() for text in left.get_xticklabels()] == STEPS
    assert len({line.get_color() for line in left.lines}) == 2


def test_tail_misses_and_regimes() -> None:
    regimes = DataFrame({"steps": STEPS, "inactive": [0.5, 0.2, 0.1], "miss-prone": [0.5, 0.5, 0.1]})
    regimes["covered"] = 1.0 - regimes["inactive"] - regimes["miss-prone"]
    table = windows("tail_miss_0", "tail_miss_1")
    left, right = plot_tail_misses_over_time(table, regimes, [0.05, 0.1]).axes
    assert [line.get_label() for line in left.lines] == ["rare fraction 0.05", "rare fraction 0.1"]
    np.testing.assert_array_equal(left.lines[1].get_ydata(), table["tail_miss_1"])
    bars = {box.get_label(): [bar.get_height() for bar in box] for box in right.containers}
    assert bars == {name: pytest.approx(regimes[name].tolist()) for name in ("inactive", "miss-prone", "covered")}
    tops = [bar.get_y() + bar.get_height() for bar in right.containers[-1]]
    assert tops == pytest.approx([1.0, 1.0, 1.0])


def test_prompts_and_strength() -> None:
    rates = np.array([[0.0, np.nan, 0.5], [1.0, 0.75, 1.0]])
    ax = plot_prompts_over_time(rates, STEPS).axes[0]
    drawn = ax.collections[0].get_array().filled(np.nan)
    np.testing.assert_array_equal(drawn, rates)
    assert ax.yaxis_inverted()
    shares = DataFrame({"band": ["low", "high"], "0": [0.4, 0.6], "1": [0.7, 0.3]})
    containers = plot_strength(shares).axes[0].containers
    assert [[bar.get_height() for bar in box] for box in containers] == [[0.4, 0.6], [0.7, 0.3]]


def test_svg_is_an_element_with_ids_of_its_own() -> None:
    before = dict(rcParams)
    table = windows("success_rate", "active_share", "all_wrong_share", "all_right_share")

    def drawing(figure: Figure, name: str) -> str:
        return inline_svg(figure, name, title="a < b", description='says "c"')

    one = drawing(plot_shares_over_time(table), "one")
    assert one.startswith('<svg role="img" aria-labelledby="one-title one-text" viewBox="0 0 504')
    assert '<title id="one-title">a &lt; b</title>' in one
    assert one.count(' id="') == one.count(' id="one-')
    assert "url(#one-" in one
    assert one.count("url(#") == one.count("url(#one-")
    assert "<metadata" not in one
    assert "<image" not in drawing(plot_prompts_over_time(np.eye(40), ["s"] * 40), "two")
    assert drawing(plot_shares_over_time(table), "one") == one
    assert dict(rcParams) == before
