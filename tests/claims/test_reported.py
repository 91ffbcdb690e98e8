"""The reported tables: all of them, of the size and the values that were transcribed."""

from pathlib import Path

import pytest

from fgrpo import reported
from fgrpo.reported import MATH, OOD, REPORTED, reported_setting, reported_table

FOLDER = Path(reported.__file__).parent / "data" / "reported"

# rows by design: models x methods x benchmarks x k, and so on
ROWS = {
    "main_results": 3 * 6 * 11 * 2,
    "group_size": 6 * (11 * 2 + 1),
    "controls": 5 * 11 * 2,
    "maze": 6 * 3 * 3,
    "gamma_sensitivity": 9 * 4 * 2 * 2,
    "pass_at_k": 18 * 9 * 9,
}


def test_every_file_is_a_named_table_with_its_place() -> None:
    assert {path.stem for path in FOLDER.glob("*.csv")} == set(REPORTED)
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}.csv`" in readme for name in REPORTED)
    assert "2602.06717v2" in readme
    assert "not" in str(reported_table.__doc__)


@pytest.mark.parametrize(("name", "rows"), ROWS.items())
def test_rows_are_complete_unique_and_percentages(name: str, rows: int) -> None:
    table = reported_table(name)
    assert len(table) == rows
    assert not table.drop(columns="value").duplicated().any()
    assert table["value"].between(0, 100).all()
    if "benchmark" in table and name != "group_size":
        assert {*MATH, *OOD} <= set(table["benchmark"]) <= {*MATH, *OOD, "average_math", "average_ood"}


def test_single_values() -> None:
    table = reported_table("controls").set_index(["method", "benchmark", "k"])["value"]
    assert table["GRPO-KL", "math500", 1] == 76.7
    assert reported_setting("control.low_lr") == "6.8e-7"
    assert reported_setting("gamma.Llama-3.2-3B-Instruct.F-DAPO") == "1.0"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one of main_results, .*, got 'table_1': "):
        reported_table("table_1")
    with pytest.raises(ValueError, match="key of the table training, got 'nothing': "):
        reported_setting("nothing")
