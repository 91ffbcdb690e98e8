"""Figure 3: curves against the advantages of literal groups of rewards."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from fgrpo.figures import figure_3, figure_3_alt_text, figure_3_data, plot_advantage_magnitudes

GAMMAS = (0.0, 0.5, 1.0)


def literal_magnitudes(gamma: float) -> dict[str, list[float]]:
    """Of the correct (solid) and the wrong (dashed) rollouts in groups of 500 with 1 to 499 correct ones."""
    sizes: dict[str, list[float]] = {"-": [], "--": []}
    for correct in range(1, 500):
        rewards = np.repeat([1.0, 0.0], [correct, 500 - correct])
        advantages = (rewards - rewards.mean()) / rewards.std() * (1 - rewards.mean()) ** gamma
        sizes["-"].append(abs(advantages[0]))
        sizes["--"].append(abs(advantages[-1]))
    return sizes


def test_lines_are_the_advantages_of_literal_groups():
    ax = plot_advantage_magnitudes(figure_3_data().sample(frac=1, random_state=0))
    colours = {}
    for gamma, pair in zip(GAMMAS, zip(ax.lines[::2], ax.lines[1::2], strict=True), strict=True):
        literal = literal_magnitudes(gamma)
        assert {line.get_linestyle() for line in pair} == set(literal)
        for line in pair:
            np.testing.assert_allclose(line.get_xdata(), np.arange(1, 500) / 500, rtol=1e-15)
            np.testing.assert_allclose(line.get_ydata(), literal[line.get_linestyle()], rtol=1e-11)
        (colours[gamma],) = {line.get_color() for line in pair}
    assert len(set(colours.values())) == 3
    legend = {line.get_label(): line for line in ax.get_legend().legend_handles}
    assert {gamma: legend[f"$\\gamma$ = {gamma:g}"].get_color() for gamma in GAMMAS} == colours
    assert (legend["correct"].get_linestyle(), legend["wrong"].get_linestyle()) == ("-", "--")


def test_draws_on_given_axes_and_makes_its_own_data():
    ax = Figure().add_subplot()
    assert plot_advantage_magnitudes(figure_3_data(), ax) is ax
    assert ax.get_xlim() == (0.0, 1.0)
    assert len(figure_3().axes[0].lines) == 6


def test_gamma_without_a_colour_is_refused():
    with pytest.raises(ValueError, match=r"gamma must be one of 0, 0.5, 1 to have a colour, got 2: select"):
        plot_advantage_magnitudes(figure_3_data().replace({"gamma": {0.5: 2.0}}))


def test_alt_text_gives_the_right_ends():
    text = figure_3_alt_text(figure_3_data())
    assert "reaches at success rate 0.998 22.3 at gamma 0, 0.999 at gamma 0.5, 0.0447 at gamma 1." in text
