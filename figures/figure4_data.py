"""The data of figure 4: the sweep's trajectories and final values, the longer runs, and the start's tail misses."""

from pandas import DataFrame, concat

from fgrpo.figures.style import group_size_grid
from fgrpo.simulate.policy import initial_masses
from fgrpo.simulate.summary import final_rows, seed_summary, split_by_length, start_policy
from fgrpo.theory import tail_miss_probability

TRAJECTORY_GROUP_SIZES = (2, 256, 8192, 131072)
"""Group sizes whose trajectories the paper's figure 4 shows."""

_GAMMAS = (0.0, 1.0)


def figure_4_data(results: DataFrame, *, group_sizes: tuple[int, ...] | None = None) -> DataFrame:
    """What figure 4 draws.

    Args:
        results: Tidy results, one row per run and recorded step, of one reading and policy, with gamma 0 and 1.
        group_sizes: Group sizes whose trajectories are drawn; the paper's 2, 256, 8192 and 131072 if omitted.

    Returns:
        One row per drawn point: reading and actions (the same in all rows), panel ('sweep' for trajectories of the
        sweep, 'final' for the last step of all group sizes, 'long' for the trajectories of longer runs if there are
        any), metric (correct_mass, retained_mass, and in the final panel tail_miss_probability of a leaf of the start
        policy), group_size, gamma, step; mean, smallest and largest over the seeds, and their number seeds (the last
        three are missing for the tail-miss probability).

    Raises:
        ValueError: If columns, gamma 0 or 1, or one of the group sizes are missing, in the sweep or in the longer runs;
            or if the results mix settings, hold a run twice, or a run was not recorded to its end.
    """
    sweep, long = split_by_length(results)
    chosen = TRAJECTORY_GROUP_SIZES if group_sizes is None else tuple(group_sizes)
    panels = [
        seed_summary(_trajectories(sweep, chosen)).assign(panel="sweep"),
        seed_summary(final_rows(sweep[sweep["gamma"].isin(_GAMMAS)])).assign(panel="final"),
        _start_tail_miss(sweep).assign(panel="final"),
    ]
    if not long.empty:
        panels.append(seed_summary(_trajectories(long, chosen)).assign(panel="long"))
    data = concat(panels, ignore_index=True)
    data = data.assign(reading=results["reading"].iloc[0], actions=results["actions"].iloc[0])
    first = ["reading", "actions", "panel"]
    return data[[*first, *data.columns.difference(first, sort=False)]]


def _trajectories(runs: DataFrame, group_sizes: tuple[int, ...]) -> DataFrame:
    """Rows of the chosen group sizes with gamma 0 and 1, refused if a curve is missing or its seeds do not match."""
    chosen = runs[runs["group_size"].isin(group_sizes) & runs["gamma"].isin(_GAMMAS)]
    present = {(int(size), float(gamma)) for size, gamma in zip(chosen["group_size"], chosen["gamma"], strict=True)}
    for size in group_sizes:
        for gamma in _GAMMAS:
            if (size, gamma) not in present:
                available = ", ".join(str(value) for value in sorted(runs["group_size"].unique()))
                raise ValueError(
                    f"results must hold runs of {runs['steps'].iloc[0]} steps with N = {size} and gamma {gamma:g}, got "
                    f"none, but N = {available}: run them, or choose among these from Python (figure_4_data)"
                )
    recorded = chosen.groupby(["group_size", "gamma", "step"])["seed"].count()
    uneven = recorded.groupby(["group_size", "gamma"]).nunique() > 1
    if uneven.any():
        size, gamma = uneven[uneven].index[0]
        raise ValueError(
            f"seeds of one curve must be recorded at the same steps, got different ones at group_size {size} and gamma "
            f"{gamma:g}: run them with one record_every"
        )
    return chosen


def _start_tail_miss(sweep: DataFrame) -> DataFrame:
    """Tail-miss probability of one correct action other than the anchor, at the start, over the range of N."""
    start = initial_masses(start_policy(sweep))
    group_size = group_size_grid(sweep["group_size"].min(), sweep["group_size"].max())
    return DataFrame(
        {
            "metric": "tail_miss_probability",
            "group_size": group_size,
            "gamma": 0.0,
            "step": 0,
            "mean": tail_miss_probability(start["correct_mass"], start["leaf_mass"], group_size),
        }
    )
