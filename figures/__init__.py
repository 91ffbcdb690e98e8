"""Figures 2, 4 and 5 of the paper and those of the studies: their data, their panels, and their files.

Each figure N has three functions: `figure_N_data` returns what is drawn, `figure_N(data)` draws it, and
`figure_N_alt_text(data)` says it in a sentence; functions named `plot_...` draw one panel on given axes. Nothing here
touches pyplot or matplotlib's global settings. The studies have their data from fgrpo.simulate instead.
"""

from fgrpo.figures.comparison import comparison_alt_text, figure_comparison, plot_matched
from fgrpo.figures.figure2 import figure_2, figure_2_alt_text, figure_2_data, plot_tail_miss_curves
from fgrpo.figures.figure4 import (
    figure_4,
    figure_4_alt_text,
    plot_correct_mass,
    plot_final_masses,
    plot_long_retained_mass,
    plot_retained_mass,
)
from fgrpo.figures.figure4_data import TRAJECTORY_GROUP_SIZES, figure_4_data
from fgrpo.figures.figure5 import (
    figure_5,
    figure_5_alt_text,
    figure_5_data,
    plot_leaf_tail_miss,
    plot_leaf_tail_miss_difference,
)
from fgrpo.figures.picture import Picture
from fgrpo.figures.readings import figure_readings, plot_reading, readings_alt_text
from fgrpo.figures.save import save_figure
from fgrpo.figures.style import figure_style, gamma_line_style, group_size_style
from fgrpo.figures.zones import figure_zone, plot_zone, zone_alt_text

__all__ = [
    "TRAJECTORY_GROUP_SIZES",
    "Picture",
    "comparison_alt_text",
    "figure_2",
    "figure_2_alt_text",
    "figure_2_data",
    "figure_4",
    "figure_4_alt_text",
    "figure_4_data",
    "figure_5",
    "figure_5_alt_text",
    "figure_5_data",
    "figure_comparison",
    "figure_readings",
    "figure_style",
    "figure_zone",
    "gamma_line_style",
    "group_size_style",
    "plot_correct_mass",
    "plot_final_masses",
    "plot_leaf_tail_miss",
    "plot_leaf_tail_miss_difference",
    "plot_long_retained_mass",
    "plot_matched",
    "plot_reading",
    "plot_retained_mass",
    "plot_tail_miss_curves",
    "plot_zone",
    "readings_alt_text",
    "save_figure",
    "zone_alt_text",
]
