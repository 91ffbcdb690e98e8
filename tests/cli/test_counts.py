"""The reader of per-prompt counts: every format gives the same table, every fault one line that names it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fgrpo.counts import read_counts

ROWS = [{"prompt": "007", "samples": 8, "correct": 3}, {"prompt": "a, b", "samples": 16, "correct": 0}]
EXPECTED = [("007", 8, 3), ("a, b", 16, 0)]


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / name
    match path.suffix.lower():
        case ".csv":
            pd.DataFrame(rows).to_csv(path, index=False)
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        case ".json":
            path.write_text(json.dumps(rows), encoding="utf-8")
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ValueError, match=r"must|needs") as caught:
        read_counts(path)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


@pytest.mark.parametrize("name", ["counts.csv", "counts.jsonl", "counts.json", "counts.parquet", "COUNTS.CSV"])
def test_every_format_gives_the_same_table(tmp_path: Path, name: str) -> None:
    table = read_counts(write(tmp_path, name, ROWS))
    assert list(table.columns) == ["prompt", "samples", "correct"]
    assert list(table.itertuples(index=False, name=None)) == EXPECTED
    assert table["samples"].dtype == table["correct"].dtype == np.int64
    assert all(isinstance(prompt, str) for prompt in table["prompt"])


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet"])
@pytest.mark.parametrize(
    ("prompt", "samples", "correct"),
    [("prompt_id", "n", "c"), ("id", "samples", "successes"), ("problem_id", "n", "correct")],
)
def test_other_names_more_columns_and_another_order(
    tmp_path: Path, suffix: str, prompt: str, samples: str, correct: str
) -> None:
    rows = [{"model": "m", correct: 3, prompt: 7, samples: 8}, {"model": "m", correct: 0, prompt: 5, samples: 16}]
    table = read_counts(write(tmp_path, f"counts.{suffix}", rows))
    assert list(table.itertuples(index=False, name=None)) == [("7", 8, 3), ("5", 16, 0)]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet"])
def test_rows_are_numbered_without_a_prompt_column_and_whole_floats_count(tmp_path: Path, suffix: str) -> None:
    table = read_counts(write(tmp_path, f"counts.{suffix}", [{"n": 8.0, "c": 3.0}, {"n": 4.0, "c": 4.0}]))
    assert list(table.itertuples(index=False, name=None)) == [("1", 8, 3), ("2", 4, 4)]


def test_text_details(tmp_path: Path) -> None:
    csv = tmp_path / "counts.csv"
    csv.write_bytes('\ufeffprompt, n ,c\r\n"two\nlines", 8, 3.0\r\n\r\nx, 4, "1"\r\n'.encode())
    assert list(read_counts(str(csv)).itertuples(index=False, name=None)) == [("two\nlines", 8, 3), ("x", 4, 1)]
    jsonl = tmp_path / "counts.jsonl"
    jsonl.write_text('{"n": 8, "c": 3}\n\n{"n": 4, "c": 1}', encoding="utf-8")
    assert read_counts(jsonl)["samples"].tolist() == [8, 4]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet"])
@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"correct": 17}, "correct in row 2 must be at most samples, got 17 > 16: "),
        ({"samples": 0, "correct": 0}, "samples in row 2 must be a whole number of at least 1, got {0}: "),
        ({"correct": -1}, "correct in row 2 must be a whole number of at least 0, got {-1}: "),
        ({"correct": 2**53 + 1}, "correct in row 2 must be a whole number of at least 0, got {9007199254740993}: "),
        ({"prompt": "007"}, "prompt in row 2 must be new, got '007' of row 1: "),
        ({"prompt": ""}, "prompt in row 2 must be an identifier, got ''"),
    ],
)
def test_faulty_rows(tmp_path: Path, suffix: str, second: dict[str, Any], message: str) -> None:
    rows = [ROWS[0], ROWS[1] | second]
    expected = message.replace("{", "'" if suffix == "csv" else "").replace("}", "'" if suffix == "csv" else "")
    assert f": {expected}" in refusal(write(tmp_path, f"counts.{suffix}", rows))


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2.5, "2.5"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (True, "True"),
        (None, "None"),
        ("three", "'three'"),
        ([3], "[3]"),
    ],
)
def test_cells_that_are_no_counts(tmp_path: Path, suffix: str, value: Any, shown: str) -> None:
    path = write(tmp_path, f"counts.{suffix}", [ROWS[0] | {"correct": value}])
    assert f": correct in row 1 must be a whole number of at least 0, got {shown}: " in refusal(path)


@pytest.mark.parametrize("cell", ["2.5", "nan", "inf", "", "1e1", "1_0", "0x1", "true", "3\u0664"])
def test_csv_cells_that_are_no_counts(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"samples,correct\n99,{cell}\n", encoding="utf-8")
    assert f": correct in row 1 must be a whole number of at least 0, got {cell!r}: " in refusal(path)


def test_parquet_nulls_and_missing_json_keys(tmp_path: Path) -> None:
    rows = [ROWS[0], {"prompt": "b", "samples": 4, "correct": None}]
    assert "correct in row 2 must be a whole number of at least 0, got None: " in refusal(
        write(tmp_path, "a.parquet", rows)
    )
    assert "samples in row 1 must be a whole number" in refusal(
        write(tmp_path, "a.jsonl", [{"prompt": "x", "correct": 1}, ROWS[1]])
    )
    rows = [ROWS[0], ROWS[1] | {"prompt": None}]
    assert "prompt in row 2 must be an identifier, got None: " in refusal(write(tmp_path, "b.parquet", rows))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet"])
def test_columns_missing_or_ambiguous(tmp_path: Path, suffix: str) -> None:
    name = f"counts.{suffix}"
    message = refusal(write(tmp_path, name, [{"prompt": "a", "total": 8, "correct": 1}]))
    assert "samples must be a column, got 'prompt', 'total', 'correct': name it samples or n" in message
    message = refusal(write(tmp_path, name, [{"Prompt": "a", "Samples": 8, "correct": 1}]))
    assert "samples must be a column, got 'Prompt', 'Samples', 'correct': write 'Samples' as samples" in message
    message = refusal(write(tmp_path, name, [{"samples": 8}]))
    assert "correct must be a column, got 'samples': name it correct or successes or c" in message
    message = refusal(write(tmp_path, name, [{"samples": 8, "n": 8, "correct": 1}]))
    assert "samples must be one column, got samples, n: keep one of them" in message


@pytest.mark.parametrize(("separator", "shown"), [(";", "';'"), ("\t", r"'\t'")])
def test_csv_with_another_separator(tmp_path: Path, separator: str, shown: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"prompt{separator}samples{separator}correct\na{separator}8{separator}1\n")
    assert f"separate the columns by commas, not by {shown}" in refusal(path)


def test_csv_with_a_repeated_column(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("n,c,n\n8,1,9\n")
    assert "samples must be one column, got n, n: keep one of them" in refusal(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "content must have at least one row, got none: "),
        ("a.csv", b"samples,correct\n", "content must have at least one row, got none: "),
        ("a.jsonl", b"\n", "content must have at least one row, got none: "),
        ("a.json", b"", "content must have at least one row, got none: "),
        ("a.json", b"[]", "content must have at least one row, got none: "),
        ("a.csv", b"n,c\n8,1\n8,1,2\n", "line 3 must have 2 cells like the header, got 3: "),
        ("a.csv", b"n,c\n8\n", "line 2 must have 2 cells like the header, got 1: "),
        ("a.csv", b'n,c\n8,"1\n', "must be CSV, got damage ("),
        ("a.jsonl", b'{"n": 8, "c": 1}\n{"n": 8, "c"\n', 'line 2 must be a JSON object, got \'{"n": 8, "c"\': '),
        ("a.jsonl", b"[8, 1]\n", "line 1 must be a JSON object, got '[8, 1]': "),
        ("a.json", b'[{"n": 8,\n "c": }]', "line 2 must be JSON, got damage ("),
        ("a.json", b'{"n": 8, "c": 1}', "content must be one array of JSON objects, got "),
        ("a.json", b"[1]", "content must be one array of JSON objects, got '[1]': "),
        ("a.parquet", b"PAR1 not at all\nPAR1", "content must be parquet, got damage ("),
        ("a.parquet", b"", "content must be parquet, got damage ("),
        ("a.csv", b"n,c\n\xff,1\n", "must be UTF-8 text, got "),
        ("a.jsonl", b"\xff\n", "must be UTF-8 text, got "),
        ("a.xlsx", b"", "must end in .csv, .jsonl, .json, .parquet, got "),
        ("counts", b"", "must end in .csv, .jsonl, .json, .parquet, got "),
    ],
)
def test_empty_and_damaged_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert message in refusal(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert "counts file must exist, got " in refusal(tmp_path / "absent.csv")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert "counts file must be one file, got the folder " in refusal(folder)


def test_empty_parquet_table(tmp_path: Path) -> None:
    path = tmp_path / "counts.parquet"
    pq.write_table(pa.table({"n": pa.array([], pa.int64()), "c": pa.array([], pa.int64())}), path)
    assert "content must have at least one row, got none: " in refusal(path)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_deeply_nested_json(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_text("[" * 100_000)
    assert "content must be flat, got JSON nested too deeply: " in refusal(path)
