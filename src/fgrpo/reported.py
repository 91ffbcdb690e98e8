"""The paper's tables as data: as reported in arXiv 2602.06717v2, not rerun.

Every value is the authors'. `fgrpo/data/reported/README.md` names the table of each file.
"""

from importlib.resources import files

import pandas as pd
from pandas import DataFrame

REPORTED = ("main_results", "group_size", "controls", "maze", "gamma_sensitivity", "pass_at_k", "training")
"""Names of the tables."""
MATH = ("aime24", "aime25", "amc23", "math500", "minerva", "olympiad")
"""Benchmarks behind 'average_math'."""
OOD = ("ifeval", "synlogic", "gpqa")
"""Benchmarks behind 'average_ood'."""


def reported_table(name: str) -> DataFrame:
    """One of the paper's tables, as reported in arXiv 2602.06717v2, not rerun.

    Args:
        name: A name of `REPORTED`: 'main_results' (Table 1), 'group_size' (2, 10), 'controls' (3, 11), 'maze' (4),
            'gamma_sensitivity' (6), 'pass_at_k' (12 to 14), 'training' (5, 7, 8 and settings of the appendices).

    Returns:
        Long format, one value per row; scores in percent.

    Raises:
        ValueError: If there is no such table.
    """
    if name not in REPORTED:
        raise ValueError(
            f"the table must be one of {', '.join(REPORTED)}, got {name!r}: see fgrpo/data/reported/README.md"
        )
    with files("fgrpo").joinpath(f"data/reported/{name}.csv").open(encoding="utf-8") as text:
        return pd.read_csv(text)


def reported_setting(key: str) -> str:
    """One setting of the paper, as reported in arXiv 2602.06717v2, not rerun: a row of the table 'training'.

    Args:
        key: Such as 'control.low_lr' or 'gamma.Qwen2.5-7B.F-GRPO'.

    Returns:
        The value as text.

    Raises:
        ValueError: If there is no such setting.
    """
    table = reported_table("training").set_index("key")["value"]
    if key not in table.index:
        raise ValueError(f"the setting must be a key of the table training, got {key!r}: read it with reported_table")
    return str(table[key])
