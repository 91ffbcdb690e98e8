"""Results of the simulator, summarised for figure 4: checks, means over seeds, and the collapse zone."""

from dataclasses import fields

from pandas import DataFrame, concat

from fgrpo.figures.style import group_size_grid
from fgrpo.simulate.config import PolicyConfig
from fgrpo.simulate.policy import initial_masses
from fgrpo.theory import tail_miss_probability

PAPER_GROUP_SIZES = (2, 256, 8192, 131072)
"""Group sizes whose trajectories the paper's figure 4 shows."""

COLLAPSE_LEVEL = 0.5
"""Mean final retained mass below which a group size belongs to the collapse zone."""

# what one figure holds fixed: everything that decides a run, but for the group size, gamma, the seed and the length
_SETTINGS = (
    *("reading", "weight", "success_estimate", "actions", "correct", "anchor_logit", "correct_logit", "wrong_logit"),
    *("surrogate", "optimizer", "learning_rate", "beta1", "beta2", "eps", "weight_decay", "advantage_scale"),
    *("reward_correct", "reward_wrong"),
)
_RUN = ["group_size", "gamma", "seed", "steps"]
_METRICS = ["correct_mass", "retained_mass"]
_GAMMAS = (0.0, 1.0)


def collapse_zone(results: DataFrame) -> tuple[int, int] | None:
    """Smallest and largest group size whose mean final retained mass at gamma 0 is below 1/2.

    The mean is over the seeds, and 'final' is the last step of the sweep: of the run length that covers most group
    sizes (the shorter one, if two cover equally many). The zone is the span of the collapsed sizes on the grid that was
    run: if a size between the two does not collapse itself, the extremes are returned all the same.

    Args:
        results: Tidy results, one row per run and recorded step.

    Returns:
        The two group sizes, or None if none collapses.

    Raises:
        ValueError: If columns or the runs with gamma 0 are missing, or the results mix settings.

    Source: this project (the paper shades a zone in Figure 4c in v1, 2c in v2, without giving its bounds).
    """
    sweep, _ = split_by_length(results)
    return zone_of(seed_summary(final_rows(sweep), "final"))


def zone_of(summary: DataFrame) -> tuple[int, int] | None:
    """`collapse_zone` from the summary's rows of final values."""
    final = summary[(summary["metric"] == "retained_mass") & (summary["gamma"] == 0.0)]
    collapsed = final.loc[final["mean"] < COLLAPSE_LEVEL, "group_size"]
    return None if collapsed.empty else (int(collapsed.min()), int(collapsed.max()))


def split_by_length(results: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Check the results and split them into the sweep and the longest of the runs that are longer (possibly none).

    Raises:
        ValueError: If columns or the runs with gamma 0 are missing, or the results mix settings or hold a run twice.
    """
    missing = [name for name in (*_RUN, "step", *_METRICS, *_SETTINGS) if name not in results.columns]
    if missing:
        raise ValueError(
            f"results must have the columns of a sweep, got none named {', '.join(missing)}: "
            "pass what fgrpo.simulate.load_results returns"
        )
    for name in _SETTINGS:
        values = results[name].unique()
        if len(values) > 1:
            raise ValueError(
                f"results must share one {name}, got {', '.join(map(str, values))}: select the rows of one of them"
            )
    if results.duplicated([*_RUN, "step"]).any():
        raise ValueError(
            "results must hold each group_size, gamma, seed, steps and step once, got some of them twice: "
            "drop the repeated runs"
        )
    if not (results["gamma"] == 0.0).any():
        raise ValueError(
            "results must include runs with gamma 0, got none: run the sweep with gammas 0 and 1 and pass both"
        )
    covered = results.groupby("steps")["group_size"].nunique()
    length = covered[covered == covered.max()].index.min()
    longest = results["steps"].max()
    return (
        results[results["steps"] == length],
        results[(results["steps"] == longest) & (longest > length)],
    )


def final_rows(runs: DataFrame) -> DataFrame:
    """The last step of each run.

    Raises:
        ValueError: If a run was not recorded to its end.
    """
    final = runs[runs["step"] == runs["steps"]]
    unfinished = runs[_RUN].drop_duplicates().merge(final[_RUN], how="left", indicator=True)
    unfinished = unfinished[unfinished["_merge"] == "left_only"]
    if not unfinished.empty:
        run = unfinished.iloc[0]
        raise ValueError(
            f"results must record each run to its last step, got a run (group_size {run['group_size']}, gamma "
            f"{run['gamma']:g}, seed {run['seed']}) without step {run['steps']}: finish the sweep"
        )
    return final


def seed_summary(rows: DataFrame, panel: str) -> DataFrame:
    """Mean, smallest and largest value over the seeds, a row per metric, group size, gamma and step."""
    long = rows.melt(["group_size", "gamma", "step", "seed"], _METRICS, var_name="metric")
    statistics = long.groupby(["metric", "group_size", "gamma", "step"], as_index=False).agg(
        mean=("value", "mean"), smallest=("value", "min"), largest=("value", "max"), seeds=("value", "count")
    )
    statistics.insert(0, "panel", panel)
    return statistics


def figure_4_data(results: DataFrame, *, group_sizes: tuple[int, ...] | None = None) -> DataFrame:
    """What figure 4 draws.

    Args:
        results: Tidy results, one row per run and recorded step, of one reading and policy, with gamma 0 and 1.
        group_sizes: Group sizes whose trajectories are drawn; the paper's 2, 256, 8192 and 131072 if omitted.

    Returns:
        One row per drawn point: panel ('sweep' for trajectories of the sweep, 'final' for the last step of all group
        sizes, 'long' for the trajectories of longer runs if there are any), metric (correct_mass, retained_mass, and in
        the final panel tail_miss_probability of a leaf of the start policy), group_size, gamma, step; mean, smallest
        and largest over the seeds, and their number seeds (the last three are missing for the tail-miss probability).

    Raises:
        ValueError: If columns, gamma 0 or 1, or one of the group sizes are missing, in the sweep or in the longer runs;
            or if the results mix settings, hold a run twice, or a run was not recorded to its end.
    """
    sweep, long = split_by_length(results)
    chosen = PAPER_GROUP_SIZES if group_sizes is None else tuple(group_sizes)
    panels = [
        seed_summary(_trajectories(sweep, chosen), "sweep"),
        seed_summary(final_rows(sweep[sweep["gamma"].isin(_GAMMAS)]), "final"),
        _start_tail_miss(sweep),
    ]
    if not long.empty:
        panels.append(seed_summary(_trajectories(long, chosen), "long"))
    return concat(panels, ignore_index=True)


def _trajectories(runs: DataFrame, group_sizes: tuple[int, ...]) -> DataFrame:
    """Rows of the chosen group sizes with gamma 0 and 1, refused if a curve is missing or its seeds do not match."""
    chosen = runs[runs["group_size"].isin(group_sizes) & runs["gamma"].isin(_GAMMAS)]
    present = {(int(size), float(gamma)) for size, gamma in zip(chosen["group_size"], chosen["gamma"], strict=True)}
    for size in group_sizes:
        for gamma in _GAMMAS:
            if (size, gamma) not in present:
                available = ", ".join(str(value) for value in sorted(runs["group_size"].unique()))
                raise ValueError(
                    f"results must hold runs of {runs['steps'].iloc[0]} steps with group_size {size} and gamma "
                    f"{gamma:g}, got none: run them, or pass group_sizes out of {available}"
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
    policy = PolicyConfig(**{field.name: sweep[field.name].iloc[0] for field in fields(PolicyConfig)})
    start = initial_masses(policy)
    group_size = group_size_grid(sweep["group_size"].min(), sweep["group_size"].max())
    return DataFrame(
        {
            "panel": "final",
            "metric": "tail_miss_probability",
            "group_size": group_size,
            "gamma": 0.0,
            "step": 0,
            "mean": tail_miss_probability(start["correct_mass"], start["leaf_mass"], group_size),
        }
    )
