"""`fgrpo diagnose`: text, JSON and page from the command line, one line for every fault, and what it imports."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fgrpo.cli import main


@pytest.fixture
def rollouts(tmp_path: Path) -> Path:
    generator = random.Random(1)
    rows = [
        {"prompt_id": prompt, "step": step, "reward": float(generator.random() < (prompt + 1) / 6), "completion": "x"}
        for step in range(6)
        for prompt in range(5)
        for _ in range(8)
    ]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def keys(value: Any, place: str = "") -> set[str]:
    """Every key of nested JSON with its place."""
    if isinstance(value, dict):
        return {key for name, item in value.items() for key in {f"{place}.{name}", *keys(item, f"{place}.{name}")}}
    return {key for item in value for key in keys(item, place)} if isinstance(value, list) else set()


def test_text(rollouts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(rollouts), "--rare-fraction", "0.1,0.2", "--gamma", "1", "--windows", "3"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    text = " ".join(captured.out.split())
    assert (
        "240 scored rollouts of 5 different prompts, in 30 groups; logged steps 0 to 5; read from 1 file with" in text
    )
    assert "Rollouts per group: 8 in 30 groups; N = 8." in text
    assert "rollouts of the same prompt and step form a group" in text
    assert "is your assumption" in text
    assert "biased plug-in" in text
    table = captured.out.split("Over time\n")[1].splitlines()[1:4]
    assert [line.split()[:4] for line in table] == [
        ["0", "to", "1", "10"],
        ["2", "to", "3", "10"],
        ["4", "to", "5", "10"],
    ]
    assert "answers are told apart by their whole text" in text
    assert not [line for line in captured.out.splitlines() if len(line) > 110]


def test_json_has_documented_keys(rollouts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(rollouts), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "diagnose.md").read_text()
    undocumented = {key for key in keys(answer) if f"`{key.rsplit('.', 1)[1]}`" not in page}
    assert not undocumented
    assert answer["run"]["groups"] == 30
    assert answer["group_size"] == 8
    assert [row["gamma"] for row in answer["what_if"]] == [0.0, 0.5, 1.0, 2.0]


def test_options_reach_the_reader(rollouts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renamed = tmp_path / "other.csv"
    lines = [json.loads(line) for line in rollouts.read_text().splitlines()]
    renamed.write_text(
        "who,when,how,part\n" + "".join(f"{r['prompt_id']},{r['step']},{r['reward']},0\n" for r in lines)
    )
    arguments = ["--id-column", "who", "--step-column", "when", "--success-column", "how", "--group-column", "part"]
    assert main(["diagnose", str(renamed), *arguments, "--json", "--answer", "text"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["diagnose", str(rollouts), "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    for key in ("success_rate", "active_share", "tail_miss", "regimes"):
        assert found["run"][key] == expected["run"][key]
    assert main(["diagnose", str(rollouts), "--group-size", "4", "--success-threshold", "-1", "--json"]) == 0
    half = json.loads(capsys.readouterr().out)
    assert (half["run"]["groups"], half["run"]["success_rate"]["estimate"]) == (60, 1.0)


def test_a_page_beside_the_text(rollouts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["diagnose", str(rollouts), "--html", str(page)]) == 0
    assert "Success rate" in capsys.readouterr().out
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing argument 'PATH'"),
        (["nowhere"], "the path must exist, got 'nowhere'"),
        (["RUN", "--rare-fraction", "a"], "--rare-fraction must be numbers separated by commas"),
        (["RUN", "--rare-fraction", "2"], "--rare-fraction must be between 0 and 1, got 2"),
        (["RUN", "--html", "run.jsonl"], "--html must name a file that ends in .html, got run.jsonl"),
        (
            ["RUN", "--html", "no/such/folder/a.html"],
            "--html must name a file in a folder that exists, got no/such/folder/a.html",
        ),
        (["RUN", "--success-column", "rewrd"], "did you mean 'reward'?"),
        (["RUN", "--group-size", "9"], "at least one group must have N = 9 rollouts, got 8 at most"),
    ],
)
def test_faults_are_one_line(
    rollouts: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["diagnose", *(str(rollouts) if one == "RUN" else one for one in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fgrpo: ")
    assert captured.err.count("\n") == 1
    assert words in captured.err


def test_what_holds_no_rollouts_says_where_they_are_or_what_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = Path("runs/a/completions/completions_00001.parquet")
    for folder in (table.parent, Path("runs/a/checkpoint-9"), Path("fresh/completions"), Path("swept"), Path("bare")):
        folder.mkdir(parents=True)
    table.touch()
    Path("runs/a/model.safetensors").touch()
    Path("swept/plan.parquet").touch()
    Path("record.csv").write_text("run_id,step,retained_mass\nx,0,1\n")
    Path("counts.csv").write_text("prompt,n,correct\na,8,3\n")
    Path("counts.jsonl").write_text('{"id": 1, "samples": 8, "c": 3}\n')
    Path("none.jsonl").touch()
    Path("page.html").mkdir()
    for arguments, message in {
        "rns/a": "got 'rns/a': did you mean 'runs/a'?",
        "runs/aa": "got 'runs/aa': did you mean 'runs/a'?",
        "elsewhere": "pass a run folder or a file of rollouts",
        "runs": "got 'runs' around a run: pass 'runs/a'",
        "runs/a/checkpoint-9": "inside a run: pass the run's folder, 'runs/a'",
        "runs/a/model.safetensors": "pass the folder of its run, 'runs/a'",
        "fresh": "got 'fresh' without a table: the first is written at the first logging step",
        "fresh/completions": "without a table: the first is written at the first logging step",
        "bare": "got 'bare' without any: train with log_completions=True",
        "swept": "of a simulated sweep: fgrpo sweep status swept and fgrpo figure 4 --results swept read it",
        "record.csv": "got records of a simulated sweep: fgrpo sweep status DIR reads them",
        "counts.csv": "got counts per prompt ('n' and 'correct'): fgrpo evaluate table FILE, fgrpo advise",
        "counts.jsonl": "got counts per prompt ('samples' and 'c')",
        "none.jsonl": "got none in none.jsonl: write a row per rollout",
        "runs/a": "got 1 table that cannot be read (1), have no rows (0)",
        "runs/a --html page.html": "--html must name a file in a folder that exists, got page.html, which is a folder",
    }.items():
        assert main(["diagnose", *arguments.split()]) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1


def test_help_states_the_grouping_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "are cut into blocks of N" in text
    assert "The same prompt twice in a step gives two groups" in text
    assert "the rollouts of one prompt and step (and --group-column) form a group" in text


def test_the_core_install_suffices(rollouts: Path) -> None:
    code = (
        "import sys\nfrom fgrpo.cli import main\n"
        f"assert main(['diagnose', {str(rollouts)!r}, '--json']) == 0\n"
        "print('\\n', {'torch', 'trl', 'transformers', 'datasets', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].strip() == "set()"
