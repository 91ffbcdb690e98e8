"""Figures of the studies: what is drawn is the table, with its intervals; the text says what the table says."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from fgrpo.figures import (
    comparison_alt_text,
    figure_comparison,
    figure_readings,
    figure_zone,
    plot_matched,
    plot_reading,
    plot_zone,
    readings_alt_text,
    zone_alt_text,
)

ARMS = (
    ("baseline", 0.0, "empirical", "baseline"),
    ("focal", 0.5, "empirical", "focal 0.5"),
    ("focal", 0.5, "shrunk", "focal 0.5, shrunk rate"),
    ("low learning rate", 0.5, "empirical", "low learning rate 0.5"),
    ("constant scale", 0.5, "empirical", "constant scale 0.5"),
)
LEVELS = {"rollouts": (100.0, 200.0), "correct_mass": (0.7, 0.9, 0.99), "start_kl": (0.1, 1.0)}


def comparison(sizes: tuple[int, ...] = (8, 512)) -> pd.DataFrame:
    rows = [
        {
            "group_size": size,
            "progress": progress,
            "level": level,
            "outcome": outcome,
            "kind": kind,
            "gamma": gamma,
            "success_estimate": estimate,
            "arm": label,
            "mean": 0.9 - 0.1 * place - 0.02 * number,
            "low": 0.88 - 0.1 * place - 0.02 * number,
            "high": 0.93 - 0.1 * place - 0.02 * number,
            "gain": 0.0 if kind == "baseline" else 0.02 * number,
        }
        for size in sizes
        for progress, levels in LEVELS.items()
        for place, level in enumerate(levels)
        for outcome in ("retained_mass", "correct_entropy")
        for number, (kind, gamma, estimate, label) in enumerate(ARMS)
    ]
    table = pd.DataFrame(rows)
    never = (table["level"] == 0.99) & (table["kind"] == "focal")
    table.loc[never, ["mean", "low", "high", "gain"]] = np.nan
    return table


def drawn(ax: Axes) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """x, y and the ends of the bars of each curve."""
    curves = []
    for container in ax.containers:
        line, _, [bars] = container.lines
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        curves.append((np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), ends))
    return curves


@pytest.mark.parametrize("progress", LEVELS)
def test_curves_are_the_retained_mass_at_the_levels_reached(progress: str) -> None:
    table = comparison()
    curves = drawn(plot_matched(table, 512, progress))
    rows = table[
        (table["group_size"] == 512) & (table["progress"] == progress) & (table["outcome"] == "retained_mass")
    ].dropna()
    assert len(curves) == len(ARMS)
    for (x, y, ends), (*_, label) in zip(curves, ARMS, strict=True):
        arm = rows[rows["arm"] == label]
        np.testing.assert_array_equal(x, arm["level"])
        np.testing.assert_array_equal(y, arm["mean"])
        np.testing.assert_allclose(ends, arm[["low", "high"]])


def test_arms_are_told_apart_and_named_once() -> None:
    figure = figure_comparison(comparison())
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [label for *_, label in ARMS]
    styles = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in legend.get_lines()}
    assert len(styles) == len(ARMS)
    assert [ax.get_title() for ax in figure.axes[:2]] == ["N = 8", "N = 512"]
    assert len(figure.axes) == 6


def test_of_many_group_sizes_four_are_drawn_the_ends_among_them() -> None:
    figure = figure_comparison(comparison((2, 4, 8, 16, 32, 64)))
    assert [ax.get_title() for ax in figure.axes[:4]] == ["N = 2", "N = 8", "N = 16", "N = 64"]


def test_comparison_in_a_sentence() -> None:
    text = comparison_alt_text(comparison())
    assert "for group sizes 8, 512" in text
    assert "retain between +0.02 and +0.04 of the initial correct mass more than the arm baseline" in text
    nothing = comparison()
    nothing.loc[nothing["kind"] == "focal", "gain"] = np.nan
    assert "no level of correct mass is reached by all seeds of both" in comparison_alt_text(nothing)


def test_unknown_panel_is_refused() -> None:
    with pytest.raises(ValueError, match="the table must hold group_size 9 at matched rollouts"):
        plot_matched(comparison(), 9, "rollouts")


def readings() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "reading": name,
                "group_size": size,
                "retained_mass": kept,
                "retained_low": kept - 0.1,
                "retained_high": kept + 0.05,
                "correct_mass": 0.7,
                "correct_low": 0.65,
                "correct_high": 0.8,
                "S1": True,
                "S2": name == "one",
                "S3": name == "one",
                "S4": name == "one",
            }
            for name in ("one", "two")
            for size, kept in ((2, 0.9), (512, 0.1), (8192, 0.8))
        ]
    )


def test_reading_is_drawn_with_its_sentences() -> None:
    table = readings()
    ax = plot_reading(table, "two")
    assert ax.get_title() == "two: S1"
    rows = table[table["reading"] == "two"]
    for (x, y, ends), mass in zip(drawn(ax), ("correct", "retained"), strict=True):
        np.testing.assert_array_equal(x, rows["group_size"])
        np.testing.assert_array_equal(y, rows[f"{mass}_mass"])
        np.testing.assert_allclose(ends, rows[[f"{mass}_low", f"{mass}_high"]])
    figure = figure_readings(table)
    assert [ax.get_title() for ax in figure.axes] == ["one: S1 S2 S3 S4", "two: S1", ""]
    assert readings_alt_text(table).endswith("one: S1 S2 S3 S4; two: S1. All of them: one.")
    with pytest.raises(ValueError, match="the reading must be one of one, two, got three"):
        plot_reading(table, "three")


def zone(rates: tuple[float, ...] = (0.01, 0.1)) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "learning_rate": rate,
                "step": step,
                "group_size": size,
                "retained_mass": kept,
                "retained_low": kept - 0.1,
                "retained_high": kept + 0.05,
                "in_zone": kept < 0.5,
            }
            for rate in rates
            for step in (1000, 2000)
            for size, kept in ((2, 0.9), (512, 500 / step - 0.1))
        ]
    )


def test_zone_is_drawn_per_setting_and_step() -> None:
    table = zone()
    rows = table[table["learning_rate"] == 0.1]
    for (x, y, ends), (_, at_step) in zip(drawn(plot_zone(rows)), rows.groupby("step"), strict=True):
        np.testing.assert_array_equal(x, at_step["group_size"])
        np.testing.assert_array_equal(y, at_step["retained_mass"])
        np.testing.assert_allclose(ends, at_step[["retained_low", "retained_high"]])
    assert [ax.get_title() for ax in figure_zone(table).axes] == ["learning rate 0.01", "learning rate 0.1"]
    assert zone_alt_text(table).endswith("learning rate 0.1, T = 1000: 512; learning rate 0.1, T = 2000: 512.")
    assert [ax.get_title() for ax in figure_zone(zone((0.1, 0.2, 0.3))).axes][2:] == ["learning rate 0.3", ""]
    alone = zone((0.1,)).drop(columns="learning_rate")
    assert [ax.get_title() for ax in figure_zone(alone).axes] == ["all runs"]
    assert [ax.get_title() for ax in figure_zone(zone((0.1 + 0.2,))).axes] == ["learning rate 0.3"]


def test_too_many_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="the figure of the zone must have at most 12 settings, got 13"):
        figure_zone(zone(tuple(0.01 * k for k in range(1, 14))))
