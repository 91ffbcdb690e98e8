"""Figures 1 to 5 of the paper, the regime diagram, and the figures of the studies: their data, panels, and files.

Each figure N has three functions: `figure_N_data` returns what is drawn, `figure_N(data)` draws it, and
`figure_N_alt_text(data)` says it in a sentence; so has the `regime_diagram`. Functions named `plot_...` draw one panel
on given axes; those of a run's diagnosis (`..._over_time`, `plot_strength`) return a figure of their own. Nothing here
touches pyplot or matplotlib's global settings. The studies have their data from fgrpo.simulate instead; `Picture` shows
a figure in a notebook.
"""

from fgrpo.figures.comparison import comparison_alt_text, figure_comparison, plot_matched
from fgrpo.figures.diagnosis import (
    plot_prompts_over_time,
    plot_shares_over_time,
    plot_strength,
    plot_tail_misses_over_time,
)
from fgrpo.figures.figure1 import figure_1, figure_1_alt_text, figure_1_data, plot_reported_pass_rates
from fgrpo.figures.figure2 import figure_2, figure_2_alt_text, figure_2_data, plot_tail_miss_curves
from fgrpo.figures.figure3 import figure_3, figure_3_alt_text, figure_3_data, plot_advantage_magnitudes
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
from fgrpo.figures.regime import (
    plot_regimes,
    plot_risk,
    plot_sweep_retention,
    regime_diagram,
    regime_diagram_alt_text,
)
from fgrpo.figures.regime_data import regime_diagram_data
from fgrpo.figures.save import save_figure
from fgrpo.figures.style import GroupSizeStyle, figure_style, gamma_line_style, group_size_style
from fgrpo.figures.tiny_world import figure_tiny_world, tiny_world_alt_text, tiny_world_data
from fgrpo.figures.zones import figure_zone, plot_zone, zone_alt_text

__all__ = [
    "TRAJECTORY_GROUP_SIZES",
    "GroupSizeStyle",
    "Picture",
    "comparison_alt_text",
    "figure_1",
    "figure_1_alt_text",
    "figure_1_data",
    "figure_2",
    "figure_2_alt_text",
    "figure_2_data",
    "figure_3",
    "figure_3_alt_text",
    "figure_3_data",
    "figure_4",
    "figure_4_alt_text",
    "figure_4_data",
    "figure_5",
    "figure_5_alt_text",
    "figure_5_data",
    "figure_comparison",
    "figure_readings",
    "figure_style",
    "figure_tiny_world",
    "figure_zone",
    "gamma_line_style",
    "group_size_style",
    "plot_advantage_magnitudes",
    "plot_correct_mass",
    "plot_final_masses",
    "plot_leaf_tail_miss",
    "plot_leaf_tail_miss_difference",
    "plot_long_retained_mass",
    "plot_matched",
    "plot_prompts_over_time",
    "plot_reading",
    "plot_regimes",
    "plot_reported_pass_rates",
    "plot_retained_mass",
    "plot_risk",
    "plot_shares_over_time",
    "plot_strength",
    "plot_sweep_retention",
    "plot_tail_miss_curves",
    "plot_tail_misses_over_time",
    "plot_zone",
    "readings_alt_text",
    "regime_diagram",
    "regime_diagram_alt_text",
    "regime_diagram_data",
    "save_figure",
    "tiny_world_alt_text",
    "tiny_world_data",
    "zone_alt_text",
]
