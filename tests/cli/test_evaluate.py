"""`fgrpo evaluate table` and `compare`: hand-checked numbers, the choice of checkpoints, one line for bad input."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from fgrpo.cli import main
from fgrpo.evaluation import EVALUATION_KEY, Counts, compare, load_counts, select_best
from fgrpo.theory.significance import exact_paired_subsampling_test
from reference.significance import holm

ROWS = [("a", 4, 0), ("b", 4, 1), ("c", 4, 2), ("d", 4, 4)]


def write(path: Path, rows: list[tuple[Any, int, int]] = ROWS) -> str:
    pd.DataFrame(rows, columns=["prompt", "n", "c"]).to_csv(path, index=False)
    return str(path)


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fgrpo: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_table_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """pass@2 of 4 samples: 1 - C(4 - c, 2) / 6, that is 0, 1/2, 5/6, 1 for c = 0, 1, 2, 4."""
    path = write(tmp_path / "counts.csv")
    assert main(["evaluate", "table", path, "--k", "1,2", "--level", "0.5", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["models"]
    one, two = row["pass_at_k"]
    assert one["estimate"] == pytest.approx(7 / 16)
    assert two["estimate"] == pytest.approx(7 / 12)
    half = stats.t.ppf(0.75, 3) * np.std([0, 1 / 4, 1 / 2, 1], ddof=1) / 2
    assert (one["lower"], one["upper"]) == (pytest.approx(7 / 16 - half), pytest.approx(7 / 16 + half))
    assert (row["problems"], row["fewest_samples"], row["interval"]) == (4, 4, "over_problems")

    assert main(["evaluate", "table", path, "--interval", "within_problems", "--k", "1", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["models"]
    variance = (1 * 3 + 2 * 2) / (4**2 * 3) / 4**2  # sum of c (n - c) / (n^2 (n - 1)) over problems^2
    assert row["pass_at_k"][0]["upper"] == pytest.approx(7 / 16 + stats.norm.ppf(0.975) * np.sqrt(variance))

    assert main(["evaluate", "table", path, write(tmp_path / "one.csv", ROWS[1:2]), "--k", "2"]) == 0
    text = capsys.readouterr().out
    assert "0.5833 [0.0" in text
    assert "Student's t over problems" in text
    assert "Clopper-Pearson" in text


def test_formats_agree_and_mixed_n_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [*ROWS, ("e", 8, 8)]
    frame = pd.DataFrame(rows, columns=["id", "samples", "correct"])
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_json(tmp_path / "a.json", orient="records")
    paths = [
        write(tmp_path / "a.csv", rows),
        *(str(tmp_path / f"a.{suffix}") for suffix in ("parquet", "jsonl", "json")),
    ]
    assert main(["evaluate", "table", *paths, "--json"]) == 0
    captured = capsys.readouterr()
    estimates = [row["pass_at_k"][0]["estimate"] for row in json.loads(captured.out)["models"]]
    assert estimates == [pytest.approx((7 / 4 + 1) / 5)] * 4
    assert captured.err.count("warning: ") == 4
    assert "problems have 4 to 8 samples" in captured.err


def test_files_that_do_not_compare_are_remarked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = write(tmp_path / "a.csv"), write(tmp_path / "b.csv", [*ROWS[1:], ("z", 4, 1), ("y", 4, 1)])
    again = str(tmp_path / "." / "x" / ".." / "a.csv")
    (tmp_path / "x").mkdir()
    assert main(["evaluate", "table", path, again, other]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"warning: {again} is given twice: its lines are of one file",
        f"warning: {path} and {other} have different problems (1 only in the first, 2 only in the second, 3 in both): "
        "their lines are not comparable",
    ]
    assert main(["evaluate", "table", path, write(tmp_path / "c.csv", ROWS[::-1])]) == 0
    assert capsys.readouterr().err == ""
    assert main(["evaluate", "compare", path, again, "--iterations", "100"]) == 0
    assert capsys.readouterr().err == f"warning: A and B are one file, {path}: nothing is compared\n"


def test_all_solved_is_not_certain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.csv", [("a", 4, 4), ("b", 4, 4), ("c", 4, 4)])
    assert main(["evaluate", "table", path]) == 0
    out = capsys.readouterr().out
    assert "1.0000 [0.2924, 1.0000]" in out  # .025^(1/3)
    assert "where all have one estimate, Clopper-Pearson with problems as trials" in out
    assert main(["evaluate", "table", path, "--interval", "within_problems"]) == 0
    assert "no width, and no certainty, where every estimate is 0 or 1" in capsys.readouterr().out


def checkpoint(run: str, step: float | None, successes: int) -> Counts:
    table = pd.DataFrame({"prompt": ["a"], "samples": [10], "correct": [successes]})
    return Counts(f"{run}/checkpoint-{step}", table, run, step)


def test_the_papers_choice_of_checkpoints() -> None:
    counts = [
        checkpoint("runs/grpo", 100, 5),
        checkpoint("runs/grpo", 200, 7),
        checkpoint("runs/grpo", 300, 7),  # as good at more compute
        checkpoint("runs/focal", 100, 6),
        checkpoint("runs/focal", 200, 4),
        checkpoint("runs/focal", 300, 9),  # better, at more compute than the baseline's best
        checkpoint("runs/late", 300, 9),
    ]
    base, focal, late = select_best(counts, "grpo")
    assert (base.model, base.pass_at_1) == ("runs/grpo/checkpoint-200", 0.7)
    assert (focal.model, focal.pass_at_1) == ("runs/focal/checkpoint-100", 0.6)
    assert (late.run, late.model) == ("runs/late", None)
    with pytest.raises(ValueError, match="did you mean 'runs/focal'"):
        select_best(counts, "focale")
    with pytest.raises(ValueError, match="each checkpoint must have its compute"):
        select_best([*counts, checkpoint("x", None, 1)], "grpo")


def test_selecting_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stored.parquet"
    about = {"model": "runs/grpo/checkpoint-40", "step": 40}
    table = pa.table({"prompt": ["a", "b"], "samples": [4, 4], "correct": [1, 2]})
    pq.write_table(table.replace_schema_metadata({EVALUATION_KEY: json.dumps(about).encode()}), path)
    stored = load_counts(path)
    assert (stored.name, stored.run, stored.compute) == ("runs/grpo/checkpoint-40", "runs/grpo", 40)
    other = write(tmp_path / "other.csv")
    arguments = ["evaluate", "table", str(path), other, "--select-best", "base", "--runs", "base,focal"]
    assert main([*arguments, "--compute", "40,30"]) == 0
    out = capsys.readouterr().out
    assert "selected of base (baseline, best mean pass@1): runs/grpo/checkpoint-40 (pass@1 0.3750, compute 40)" in out
    assert f"selected of focal (best mean pass@1 at no more compute): {other} (pass@1 0.4375, compute 30)" in out
    assert main([*arguments, "--compute", "40,50"]) == 0
    assert "at no more compute): none" in capsys.readouterr().out
    assert "must have its compute" in fails(capsys, *arguments)
    assert "--compute must have one entry per model, got 1 for 2" in fails(capsys, *arguments, "--compute", "4")


LARGE_A = [(f"p{i}", 64, min(64, 3 * i + 6)) for i in range(20)]
LARGE_B = [(f"p{i}", 64, min(64, 3 * i)) for i in reversed(range(20))]


def test_comparison_against_the_exact_law(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """50,000 draws: the simulated quantiles and p-values are within 6 standard errors of the exact ones."""
    a, b = write(tmp_path / "a.csv", LARGE_A), write(tmp_path / "b.csv", LARGE_B)
    for variant in ("raw", "finite_population"):
        assert main(["evaluate", "compare", a, b, "--k", "1,16", "--variant", variant, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert (answer["subsample"], answer["problems"], answer["correction"]) == (16, 20, "holm")
        p_values = [row["p_value"] for row in answer["rows"]]
        low, high = sorted(p_values)
        assert sorted(row["adjusted_p_value"] for row in answer["rows"]) == [
            pytest.approx(min(1, 2 * low)),
            pytest.approx(max(min(1, 2 * low), high)),
        ]
        correct_b = [c for _, _, c in reversed(LARGE_B)]
        for row in answer["rows"]:
            exact = exact_paired_subsampling_test(
                64,
                [c for _, _, c in LARGE_A],
                correct_b,
                row["k"],
                subsample=16,
                variant=variant,  # type: ignore[arg-type]
            )
            assert row["difference"] == pytest.approx(exact.estimate)
            assert row["p_value"] == pytest.approx(exact.p_value, abs=6 * np.sqrt(2 * exact.p_value / 50_000) + 1e-4)
            assert row["lower"] == pytest.approx(exact.lower, abs=0.01)
            assert row["upper"] == pytest.approx(exact.upper, abs=0.01)
            assert row["reject"] == (row["adjusted_p_value"] <= 0.05)
    assert main(["evaluate", "compare", a, b, "--k", "1,8", "--subsample", "32"]) == 0
    text = capsys.readouterr().out
    assert "A better" in text
    assert "m = 32, 50,000 iterations" in text
    assert "raw quantiles, as the paper" in text


def test_the_correction_can_change_the_verdict() -> None:
    """At a level between the smallest p-value and its adjusted one."""
    a, b = (
        Counts(name, pd.DataFrame(rows, columns=["prompt", "samples", "correct"]), name)
        for name, rows in (("a", LARGE_A), ("b", LARGE_B))
    )
    k = [1, 2, 8, 16]
    rows = compare(a, b, k, iterations=2000).rows
    adjusted = holm([Fraction(row.p_value) for row in rows])
    assert [row.adjusted_p_value for row in rows] == pytest.approx([float(p) for p in adjusted])
    first = int(np.argmin([row.p_value for row in rows]))
    low, high = rows[first].p_value, rows[first].adjusted_p_value
    assert low < high
    level = 1 - (low + high) / 2
    assert not compare(a, b, k, iterations=2000, level=level).rows[first].reject
    without = compare(a, b, k, iterations=2000, level=level, correction="none").rows[first]
    assert without.reject
    assert without.adjusted_p_value == without.p_value == low
    assert compare(a, b, k[first : first + 1], iterations=2000, level=level).rows[0].reject  # a family of one


def test_missing_prompts_are_refused_or_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = write(tmp_path / "a.csv", LARGE_A), write(tmp_path / "b.csv", [*LARGE_B[:15], ("new", 64, 1)])
    error = fails(capsys, "evaluate", "compare", a, b)
    assert f"got 5 of 20 only in {a!r} and 1 of 16 only in {b!r}: pass --common" in error
    assert main(["evaluate", "compare", a, b, "--common", "--json", "--iterations", "100"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "warning: 5 problems only in A and 1 only in B are left out of the comparison\n"
    answer = json.loads(captured.out)
    assert (answer["problems"], answer["only_a"], answer["only_b"]) == (15, 5, 1)
    kept = {name for name, _, _ in LARGE_B[:15]}
    difference = np.mean([c for p, _, c in LARGE_A if p in kept]) - np.mean([c for _, _, c in LARGE_B[:15]])
    assert answer["rows"][0]["difference"] == pytest.approx(difference / 64)


@pytest.mark.parametrize(
    ("rows_b", "options", "words"),
    [
        ([("z", 64, 1)], ["--common"], "both models must have the same problems, got 20 of 20 only in"),
        (
            [(p, 32, c // 2) for p, _, c in LARGE_B],
            [],
            "as many samples of a problem, got 64 and 32 of 'p0' (20 problems",
        ),
        (LARGE_B, ["--k", "64"], "subsample must be below samples, got 64 >= 64"),
        (LARGE_B, ["--k", "8", "--subsample", "4"], "k must be at most subsample, got 8 > 4"),
        (LARGE_B, ["--k", "0"], "k must be a whole number of at least 1"),
        (LARGE_B, ["--k", "1,1"], "k must be different numbers of tries, got [1, 1]"),
        (LARGE_B, ["--variant", "row"], "did you mean 'raw'"),
        (LARGE_B, ["--correction", "bonferroni"], "correction must be one of holm, none"),
        (LARGE_B, ["--level", "1"], "level must be strictly between 0 and 1"),
        (LARGE_B, ["--iterations", "3"], "iterations must be a whole number of at least 39"),
        (LARGE_B, ["--seed", "-1"], "seed must be a whole number of at least 0"),
        ([("p0", 8, 9)], [], "correct in row 1 must be at most samples, got 9 > 8"),
        ([("p0", 0, 0)], [], "samples in row 1 must be a whole number of at least 1"),
        ([("p0", 8, 1), ("p0", 8, 2)], [], "prompt in row 2 must be new, got 'p0' of row 1"),
    ],
)
def test_comparisons_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows_b: list[Any], options: list[str], words: str
) -> None:
    a, b = write(tmp_path / "a.csv", LARGE_A), write(tmp_path / "b.csv", rows_b)
    assert words in fails(capsys, "evaluate", "compare", a, b, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--k", "5"], "counts.csv: --k must be at most samples, got 5 > 4"),
        (["--k", "x"], "--k must be whole numbers separated by commas"),
        (["--k", "3", "--interval", "within_problems"], "2 k must be at most samples"),
        (["--interval", "over"], "interval must be one of within_problems, over_problems"),
        (["--level", "2"], "level must be strictly between 0 and 1, got 2"),
    ],
)
def test_tables_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    assert words in fails(capsys, "evaluate", "table", write(tmp_path / "counts.csv"), *options)
    assert f"counts file must be one file, got the folder {str(tmp_path)!r}: name a file" in fails(
        capsys, "evaluate", "table", str(tmp_path)
    )


def test_runs_refused_before_a_model_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["evaluate", "run", str(tmp_path), "--data", str(tmp_path / "no.jsonl"), "--samples"]
    assert "--k must be at most --samples, got 8 > 4" in fails(capsys, *run, "4", "--k", "8")
    assert "samples must be a whole number of at least 1" in fails(capsys, *run, "0", "--k", "0")


def test_counts_alone_need_the_core_install(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.csv", LARGE_A), write(tmp_path / "b.csv", LARGE_B)]
    code = (
        "import sys\nfrom fgrpo.cli import main\n"
        f"assert main(['evaluate', 'table', *{paths}]) == 0\n"
        f"assert main(['evaluate', 'compare', *{paths}, '--iterations', '100']) == 0\n"
        "sys.modules['datasets'] = None\n"  # as where the extra is not installed
        f"assert main(['evaluate', 'run', 'm', '--data', 'd.csv', '--samples', '1']) == 2\n"
        "assert not {'torch', 'trl', 'transformers'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "fgrpo: sampling and scoring models needs the extra llm, got no module datasets: "
        "pip install -c constraints.txt -e '.[llm]' in the checkout\n"
    )
