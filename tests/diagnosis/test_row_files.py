"""Plain files of rollouts: JSONL, CSV and parquet give the same numbers, every fault one line or a counted note."""

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fgrpo.diagnosis.columns import Reading
from fgrpo.diagnosis.diagnose import diagnose
from fgrpo.diagnosis.model import Diagnosis
from fgrpo.diagnosis.read import read_rollouts
from fgrpo.diagnosis.rollouts import Rollouts
from reference.diagnosis import Group, count
from reference.diagnosis import diagnose as literally

RHOS = [0.1]


def made_up(steps: int = 4, n: int = 5) -> tuple[list[dict[str, Any]], list[Group]]:
    """Rows of a run in mixed order, and its groups."""
    generator = random.Random(5)
    rows, groups = [], []
    for step in range(steps):
        visited = []
        for prompt in generator.sample(range(6), 3):
            rollouts = []
            for _ in range(n):
                reward = None if generator.random() < 0.1 else float(generator.random() < prompt / 6)
                answer = f"{generator.randrange(2)}"
                rollouts.append((reward, answer))
                visited.append({"prompt_id": f"p{prompt}", "step": step, "reward": reward, "answer": answer})
            groups.append((step, f"p{prompt}", rollouts))
        generator.shuffle(visited)
        rows += visited
    return rows, [group for group in groups if count(group, 0.5)[1]]


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / name
    match path.suffix:
        case ".csv":
            pd.DataFrame(rows).to_csv(path, index=False)
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        case ".parquet":
            pd.DataFrame(rows).to_parquet(path)
    return path


def judge(path: Path, **changes: Any) -> Diagnosis:
    return diagnose(path, **({"rare_fractions": RHOS, "windows": 2} | changes))


def read(path: Path, **reading: Any) -> Rollouts:
    return read_rollouts(path, Reading(**reading))


@pytest.mark.parametrize("name", ["run.jsonl", "run.csv", "run.parquet"])
def test_every_format_gives_the_literal_numbers(tmp_path: Path, name: str) -> None:
    rows, groups = made_up()
    found = judge(write(tmp_path, name, rows))
    assert (found.layout.kind, found.group_size, found.answer) == ("rows", 5, "text")
    for part, chosen in [
        (found.run, groups),
        (found.windows[0], [group for group in groups if group[0] < 2]),
        (found.windows[1], [group for group in groups if group[0] >= 2]),
    ]:
        expected = literally(chosen, threshold=0.5, rhos=RHOS, gammas=[1.0], n=5, level=0.5)
        for key in ("success_rate", "active_share", "all_wrong_share", "all_right_share"):
            value = getattr(part, key)
            assert (value.estimate, value.lower, value.upper) == pytest.approx(expected[key], abs=1e-12)
        miss = part.tail_miss[0].probability
        assert (miss.estimate, miss.lower, miss.upper) == pytest.approx(expected["tail_miss"][0])
        assert part.correct_pairs_differ == pytest.approx(expected["correct_pairs_differ"])
        assert part.distinct_correct == pytest.approx(expected["distinct_correct"])
    assert {note.code for note in found.notes} == {"unscored_rollouts"}


def test_a_folder_of_files_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    rows, _ = made_up(steps=11)
    whole = judge(write(tmp_path, "whole.jsonl", rows))
    folder = tmp_path / "dump"
    folder.mkdir()
    for step in range(11):
        write(folder, f"{step}.jsonl", [row for row in rows if row["step"] == step])
    parted = judge(folder)
    assert parted.layout.files == 11
    assert (parted.run, parted.windows, parted.prompts) == (whole.run, whole.windows, whole.prompts)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ({"prompt_id": "problem_id", "step": "global_step", "reward": "score", "answer": "response"}, {}),
        ({"prompt_id": "input", "step": "iteration", "reward": "is_correct", "answer": "output"}, {}),
        (
            {"prompt_id": "who", "step": "when", "reward": "how"},
            {"id_column": "who", "step_column": "when", "success_column": "how"},
        ),
    ],
)
def test_other_names(tmp_path: Path, names: dict[str, str], options: dict[str, str]) -> None:
    rows, _ = made_up()
    known = judge(write(tmp_path, "known.csv", rows))
    renamed = [{names.get(key, key): value for key, value in row.items()} for row in rows]
    found = judge(write(tmp_path, "renamed.csv", renamed), reading=Reading(**options))  # type: ignore[arg-type]
    assert found.run == known.run


def test_values_as_texts_and_chats(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "2+2"}]
    rows = [
        {"prompt": chat, "step": "3", "reward": reward, "completion": [{"role": "assistant", "content": text}]}
        for reward, text in [(True, r"\boxed{4}"), ("False", "x"), ("1.0", r"\boxed{ 4 }"), ("none", "y"), (None, "z")]
    ]
    run = read(write(tmp_path, "run.jsonl", rows))
    assert run.prompts == ("2+2",)
    assert (run.step_G.tolist(), run.rows_G.tolist(), run.scored_G.tolist(), run.correct_G.tolist()) == (
        [3],
        [5],
        [3],
        [2],
    )
    assert run.boxed_C[0] == run.boxed_C[1] >= 0
    assert run.text_C[0] != run.text_C[1]


def test_group_columns_and_sizes(tmp_path: Path) -> None:
    rows = [{"id": "a", "step": 0, "reward": i % 2, "group": i // 2} for i in range(4)]
    rows += [{"id": "b", "step": 0, "reward": 1, "group": 9} for _ in range(2)]
    rows += [{"id": "c", "step": 0, "reward": 1, "group": 9} for _ in range(2)]
    run = read(write(tmp_path, "groups.jsonl", rows))
    assert run.rows_G.tolist() == [2, 2, 2, 2]
    assert run.layout.rule.startswith("rollouts of the same prompt, step and 'group'")
    plain = write(tmp_path, "plain.jsonl", [{key: row[key] for key in ("id", "step", "reward")} for row in rows])
    with pytest.raises(ValueError, match=r"got 4 rollouts of the prompt in row 1 at step 0 where 2 are usual"):
        read(plain)
    assert read(plain, group_size=2).correct_G.tolist() == [1, 1, 2, 2]
    named = read(write(tmp_path, "named.jsonl", [row | {"part": row["group"]} for row in rows]), group_column="part")
    assert named.rows_G.tolist() == [2, 2, 2, 2]


def test_an_answer_column_that_is_the_reference_is_no_answer(tmp_path: Path) -> None:
    rows, _ = made_up()
    found = judge(write(tmp_path, "run.jsonl", [row | {"answer": row["prompt_id"]} for row in rows]))
    assert (found.answer, found.layout.text_column) == ("none", None)
    assert "answer_is_reference" in {note.code for note in found.notes}
    right = [row | {"answer": row["prompt_id"], "reward": 1.0} for row in rows]  # equal, but nothing was wrong
    assert judge(write(tmp_path, "right.jsonl", right)).answer == "text"


def test_truncated_rollouts(tmp_path: Path) -> None:
    rows, _ = made_up()
    some = judge(write(tmp_path, "some.jsonl", [row | {"truncated": row["step"] == 0} for row in rows]))
    assert some.run.truncated_share == 0.25
    assert not some.warnings
    every = judge(write(tmp_path, "all.csv", [row | {"is_truncated": 1} for row in rows]))
    assert "all_truncated" in {note.code for note in every.warnings}


@pytest.mark.parametrize("cut", ['{"prompt_id": "p1", "step": 9, "rew', '"'])
def test_a_row_that_is_being_written_is_left_out(tmp_path: Path, cut: str) -> None:
    rows, _ = made_up()
    path = write(tmp_path, "run.jsonl", rows)
    whole = judge(path)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(cut)
    found = judge(path)
    assert found.run == whole.run
    assert {note.code: note.count for note in found.notes}["partial_files"] == 1


def test_a_csv_row_that_is_being_written_and_one_that_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("prompt_id,step,reward\na,0,1\na,0,0\nb,0")
    run = read(path)
    assert run.rows_G.tolist() == [2]
    assert [note.code for note in run.notes] == ["partial_files"]
    path.write_text("prompt_id,step,reward\r\na,0,1\r\na,0,0\r\na,0,1")  # no line end, yet whole
    run = read(path)
    assert run.rows_G.tolist() == [3]
    assert not run.notes


def test_long_completions_in_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("id,step,reward,completion\n" + f"a,0,1,{'x' * 200_000}\n" * 2)
    assert read(path).correct_G.tolist() == [2]


def test_unreadable_and_empty_files_in_a_folder(tmp_path: Path) -> None:
    rows, _ = made_up()
    write(tmp_path, "1.parquet", rows)
    (tmp_path / "2.parquet").write_bytes(b"PAR1")
    write(tmp_path, "3.parquet", [{"prompt_id": "a", "step": 0, "reward": 1.0}])
    pd.read_parquet(tmp_path / "3.parquet").iloc[:0].to_parquet(tmp_path / "3.parquet")
    read_ = read(tmp_path)
    notes = {note.code: note.count for note in read_.notes}
    assert "1 of 3 files cannot be read (2.parquet" in read_.notes[0].text
    assert (notes["unreadable_files"], notes["empty_files"]) == (1, 1)


ROW = {"prompt_id": "a", "step": 0, "reward": 1.0}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [{"prompt": "a", "step": 0}],
            r"the file must have a column of rewards, got none: name one of 'prompt', 'step'",
        ),
        ([{"prompt": "a", "reward": 0}], r"the step must be a column \(step or global_step.*with --step-column"),
        ([{"step": 0, "reward": 0}], r"the prompt must be a column .* with --id-column"),
        ([{"promt_id": "a", "step": 0, "reward": 0}], r"did you mean 'promt_id'\?"),
        ([ROW | {"score": 1}], r"must be one column, got 'reward', 'score': .*--success-column reward"),
        ([ROW, ROW | {"reward": "high"}], r"the reward in row 2 must be a finite number, got 'high'"),
        ([ROW | {"reward": "inf"}], r"the reward in row 1 must be a finite number, got 'inf'"),
        ([ROW | {"reward": [1]}], r"the reward in row 1 must be a finite number, got \[1\]"),
        ([ROW | {"step": "late"}], r"the step in row 1 must be a whole number, got 'late'"),
        ([ROW | {"step": True}], r"the step in row 1 must be a whole number, got True"),
        ([ROW | {"prompt_id": None}], r"the prompt in row 1 must be there, got None"),
        ([ROW | {"prompt_id": ""}], r"the prompt in row 1 must be there, got ''"),
        ([ROW | {"reward": None}] * 2, r"at least one group must have a reward, got 1 groups"),
        (
            [ROW | {"prompt": "x"}, ROW | {"prompt": "y"}],
            r"an id must name one prompt, got two of 'prompt' for 'a' of 'prompt_id' \(row 2\)",
        ),
        ([], r"at least one rollout must be there, got none in run.jsonl: write a row"),
    ],
)
def test_rows_that_are_not_as_they_should_be(tmp_path: Path, rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        read(write(tmp_path, "run.jsonl", rows))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("run.jsonl", b'{"prompt_id": 1}\nnonsense\n', r"run.jsonl: the file must have a column of rewards"),
        ("run.jsonl", b'{"id": 1, "step": 0, "reward": 1}\nnonsense\n{}\n', r"line 2 must be a JSON object"),
        ("run.csv", b"id,step,reward\na,0,1\na,0\nb,0,1\n", r"line 3 must have 3 cells like the header, got 2"),
        ("run.csv", b'id,step,reward\n"a,0,1\n', r"must be CSV, got damage"),
        ("run.jsonl", b'{"id": ' + b"[" * 100_000, r"must hold flat rows, got JSON nested too deeply"),
        ("run.csv", b"id,step,reward,reward\na,0,1,0\n", r"columns must have different names, got 'reward' twice"),
        ("run.csv", b"", r"at least one rollout must be there"),
        ("run.csv", b"id,step,reward\n", r"at least one rollout must be there"),
        ("run.csv", b"id,step,reward\n\xff\xfe,0,1\n", r"must be UTF-8 text"),
        ("run.jsonl", b"\xff\xfe\n", r"must be UTF-8 text"),
        (
            "run.parquet",
            b"PAR1nonsensePAR1",
            r"at least one rollout must be readable, got none in run.parquet; unreadable: run.parquet",
        ),
        ("run.xlsx", b"", r"a file of rollouts must end in .jsonl, .csv, .parquet"),
    ],
)
def test_files_that_are_not_as_they_should_be(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_paths_that_hold_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the path must exist, got .*nowhere"):
        read(tmp_path / "nowhere")
    with pytest.raises(
        ValueError, match=r"a run's folder must hold completions/completions_\*\.parquet, got .*log_completions=True"
    ):
        read(tmp_path)
