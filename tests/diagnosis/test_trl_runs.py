"""Runs of TRL: tables written as TRL writes them, every number against the literal diagnosis, and every pitfall."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fgrpo.diagnosis.columns import Reading
from fgrpo.diagnosis.diagnose import diagnose
from fgrpo.diagnosis.model import Diagnosis, Part
from fgrpo.diagnosis.read import read_rollouts
from fgrpo.diagnosis.text import diagnosis_text
from fgrpo.diagnosis.warning_signs import DOUBTS
from reference.diagnosis import Group, blocks, count
from reference.diagnosis import diagnose as literally
from reference.trl_tables import TableLogger, group_advantages

N, PROMPTS_PER_STEP, STEPS = 4, 3, 6
RHOS, GAMMAS = [0.05, 0.3], [0.0, 0.5, 2.0]


def chat(number: int) -> list[dict[str, str]]:
    return [{"role": "system", "content": "sum"}, {"role": "user", "content": f"q{number}"}]


@dataclass
class MadeUpRun:
    """A run of 5 prompts, 3 a step, 4 rollouts each; keeps what it wrote."""

    path: Path
    chats: bool = False
    unscored: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)
    rewards: tuple[str, ...] = ("accuracy",)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(7)
        self.logger = TableLogger(self.path, N * PROMPTS_PER_STEP)

    def generate(self, step: int, *, kept: bool = True) -> None:
        prompts, completions, advantages = [], [], []
        columns: dict[str, list[float | None]] = {name: [] for name in self.rewards}
        for number in [*self.random.sample(range(5), PROMPTS_PER_STEP - 1), 0]:  # prompt 0 now and then twice
            rewards: list[float | None] = []
            for _ in range(N):
                right = self.random.random() < (number + 1) / 6
                scored = self.random.random() >= self.unscored
                rewards.append(float(right) if scored else None)
                text = f"{number}:{self.random.randrange(3)}" if right else "no"
                completions.append([{"role": "assistant", "content": text}] if self.chats else text)
                prompts.append(chat(number) if self.chats else f"q{number}")
                for name in self.rewards[1:]:
                    columns[name].append(self.random.random())
            columns[self.rewards[0]] += rewards
            advantages += group_advantages(rewards)
        extra = {name: [value] * len(prompts) for name, value in self.extra.items()}
        self.logger.generate(prompts, completions, columns, advantages, extra)
        if kept:
            texts = [text[0]["content"] if self.chats else text for text in completions]
            rewards_ = columns[self.rewards[0]]
            for prompt, text, reward in zip(prompts, texts, rewards_, strict=True):
                name = prompt[1]["content"] if self.chats else prompt
                value = float("nan") if reward is None else reward
                self.rows.append({"step": step, "prompt": name, "completion": text, "reward": value})

    def train(self, steps: int = STEPS) -> "MadeUpRun":
        for step in range(1, steps + 1):
            self.generate(step)
            self.logger.log(step)
        return self

    def groups(self) -> list[Group]:
        return [group for group in blocks(self.rows, N, "reward") if count(group, 0.5)[1]]


def agrees(found: Part, groups: list[Group], n: int = N) -> None:
    """All numbers of a part are those of the literal diagnosis."""
    expected = literally(groups, threshold=0.5, rhos=RHOS, gammas=GAMMAS, n=n, level=0.5)
    assert (found.groups, found.rollouts, found.prompts) == (
        expected["groups"],
        expected["rollouts"],
        len(expected["prompts"]),
    )
    for name in ("success_rate", "active_share", "all_wrong_share", "all_right_share"):
        value = getattr(found, name)
        assert (value.estimate, value.lower, value.upper) == pytest.approx(expected[name], abs=1e-12), name
    for i, one in enumerate(found.tail_miss):
        probability = one.probability
        assert (probability.estimate, probability.lower, probability.upper) == pytest.approx(expected["tail_miss"][i])
        assert one.plug_in == pytest.approx(expected["plug_in"][i])
    for one, shares in zip(found.regimes, expected["regimes"], strict=True):
        assert (one.inactive, one.miss_prone, one.covered) == pytest.approx(tuple(shares.values()))
    assert found.distinct_correct == pytest.approx(expected["distinct_correct"])
    assert found.correct_pairs_differ == pytest.approx(expected["correct_pairs_differ"])


def agrees_throughout(found: Diagnosis, groups: list[Group]) -> None:
    """The run, its windows, its prompts and what a weight would have done."""
    agrees(found.run, groups, found.group_size)
    for part in found.windows:
        agrees(part, [group for group in groups if part.first_step <= group[0] <= part.last_step], found.group_size)
    assert sum(part.groups for part in found.windows) == found.run.groups
    expected = literally(groups, threshold=0.5, rhos=RHOS, gammas=GAMMAS, n=found.group_size, level=0.5)
    assert {one.prompt: [one.correct, one.rollouts] for one in found.prompts} == expected["prompts"]
    assert {one.prompt: one.distinct_correct for one in found.prompts} == expected["distinct_of_prompts"]
    for one in found.prompts:
        assert sum(part.rollouts for part in one.windows) == one.rollouts
        for part in one.windows:
            window = found.windows[part.window]
            mine = [group for group in groups if group[1] == one.prompt]
            mine = [group for group in mine if window.first_step <= group[0] <= window.last_step]
            counts = [count(group, 0.5) for group in mine]
            assert (part.correct, part.rollouts) == (sum(x for x, _ in counts), sum(size for _, size in counts))
    for row, other in zip(found.what_if, expected["what_if"], strict=True):
        assert row.mean_weight == pytest.approx(other["mean_weight"])
        assert row.mean_weight_given_active == pytest.approx(other["mean_weight_given_active"])
        assert row.effective_groups == pytest.approx(other["effective_groups"])
        for strength in row.strength:
            known = other[strength.advantage_scale]
            assert strength.matched_scale == pytest.approx(known["matched_scale"])
            assert strength.shares == pytest.approx(known["shares"])
            assert strength.tail_miss_shares == pytest.approx(known["tail_miss_shares"])


def judge(run: MadeUpRun | Path, **changes: Any) -> Diagnosis:
    path = run if isinstance(run, Path) else run.path
    options: dict[str, Any] = {"rare_fractions": RHOS, "gammas": GAMMAS[1:], "windows": 2} | changes
    return diagnose(path, **options)


def codes(diagnosis: Diagnosis) -> dict[str, int]:
    """Notes, and the warnings that come of reading."""
    notes = (*diagnosis.notes, *(note for note in diagnosis.warnings if note.code in DOUBTS))
    return {note.code: note.count for note in notes}


@pytest.mark.parametrize("chats", [False, True])
@pytest.mark.parametrize("unscored", [0.0, 0.4])
def test_numbers_of_a_run(tmp_path: Path, chats: bool, unscored: float) -> None:
    run = MadeUpRun(tmp_path / "run", chats=chats, unscored=unscored).train()
    found = judge(run)
    agrees_throughout(found, run.groups())
    assert found.layout.kind == "trl"
    assert found.layout.files == STEPS
    assert (found.group_size, found.answer) == (N, "text")
    assert "unscored_rollouts" in codes(found) if unscored else not found.notes
    assert found.logged_weights is None


def test_a_table_its_folder_and_the_run_are_one(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run").train(1)
    table = run.path / "completions" / "completions_00001.parquet"
    renamed = tmp_path / "renamed.parquet"
    renamed.write_bytes(table.read_bytes())
    results = [judge(path, windows=1) for path in (run.path, table.parent, table, renamed)]
    assert len({repr(result.run) for result in results}) == 1


def test_a_weight_and_a_rate_that_the_run_logged(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    for step in (1, 2, 3):
        run.generate(step)
        table = pd.DataFrame({"reward": run.logger.rewards["accuracy"]})
        rate = table["reward"].groupby(np.arange(len(table)) // N).transform("mean")
        run.logger.extra = {"empirical_success_rate": rate.tolist(), "focal_weight": ((1 - rate) ** 0.7).tolist()}
        run.logger.log(step)
    found = judge(run)
    weights = found.logged_weights
    assert weights is not None
    assert weights.verdict == "focal"
    assert weights.gamma == pytest.approx(0.7)
    assert weights.success_rate_difference < 1e-12
    agrees_throughout(found, run.groups())
    other = judge(run, reading=Reading(success_threshold=-1.0))
    assert "other_success" in {note.code for note in other.warnings}


def test_a_generation_logged_at_several_steps_counts_once(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    for step in range(1, 7):
        if step % 2:
            run.generate(step)
        run.logger.log(step)
    found = judge(run)
    assert codes(found) == {"repeated_generations": 3}
    agrees_throughout(found, run.groups())


def test_logging_steps_that_span_generations_lose_the_earlier_ones(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    for step in range(1, 7):
        run.generate(step, kept=step % 2 == 0)
        if step % 2 == 0:
            run.logger.log(step)
    agrees_throughout(judge(run), run.groups())


def test_rows_of_an_evaluation_are_left_out_where_the_state_tells(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    history = []
    for step in range(1, 7):
        run.generate(step, kept=step not in (2, 4))
        run.logger.log(step)
        history.append({"step": step, "rewards/accuracy/mean": 0.5, "completions/clipped_ratio": 1.0})
        if step in (2, 4):  # overwrites the table: part of the deque is of the evaluation
            kept = run.logger.rewards["accuracy"].copy()
            run.logger.generate(["e1"] * 2 + ["e2"] * 2, ["x"] * 4, {"accuracy": [1.0, 0.0, 1.0, 1.0]}, [0.0] * 4)
            assert len(kept) == N * PROMPTS_PER_STEP
            run.logger.log(step)
            history.append({"step": step, "eval_loss": 0.1})
    run.logger.state(history)
    found = judge(run)
    assert codes(found) == {"evaluation_tables": 2}
    agrees_throughout(found, run.groups())
    assert found.run.truncated_share == 1.0
    assert "all_truncated" in {note.code for note in found.warnings}


def test_two_rewards_need_a_name(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run", rewards=("accuracy", "style")).train()
    with pytest.raises(ValueError, match=r"must be one column, got 'accuracy', 'style': .*--success-column accuracy"):
        judge(run)
    agrees_throughout(judge(run, reading=Reading(success_column="accuracy")), run.groups())
    style = judge(run, reading=Reading(success_column="style"))
    assert "reward_not_binary" in {note.code for note in style.warnings}
    with pytest.raises(
        ValueError, match=r"--success-column must name a column, got 'acuracy': did you mean 'accuracy'"
    ):
        judge(run, reading=Reading(success_column="acuracy"))


def test_columns_of_the_user_are_no_rewards_where_the_state_names_those(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run", extra={"length": 3.0, "gold": "7"}).train()
    with pytest.raises(ValueError, match="got 'accuracy', 'length'"):
        judge(run)
    run.logger.state([{"step": 6, "rewards/accuracy/mean": 0.5, "loss": 0.0}])
    agrees_throughout(judge(run), run.groups())
    with pytest.raises(ValueError, match="--success-column must name numbers, got 'gold' of type"):
        judge(run, reading=Reading(success_column="gold"))


def test_a_damaged_state_is_no_obstacle(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run").train()
    for name, content in {"a": "{", "b": "[]", "c": '{"log_history": 3}'}.items():
        (run.path / f"checkpoint-{name}").mkdir()
        (run.path / f"checkpoint-{name}" / "trainer_state.json").write_text(content)
    agrees_throughout(judge(run), run.groups())


def test_an_id_column(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run")
    run.generate(1)
    run.logger.extra["id"] = list(run.logger.prompt)  # type: ignore[assignment]
    run.logger.log(1)
    read = read_rollouts(run.path, Reading(id_column="id"))
    assert set(read.prompts) == {row["prompt"] for row in run.rows}
    run.logger.extra["id"] = [1] * len(run.logger.prompt)  # type: ignore[assignment]
    run.logger.log(1)
    with pytest.raises(ValueError, match=r"an id must name one prompt, got two prompts for '1' of 'id' \(completions_"):
        read_rollouts(run.path, Reading(id_column="id"))


def test_files_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run").train()
    folder = run.path / "completions"
    whole = (folder / "completions_00001.parquet").read_bytes()
    (folder / "completions_00007.parquet").write_bytes(whole[: len(whole) // 2])  # still being written
    (folder / "completions_00008.parquet").write_bytes(b"")
    pd.DataFrame({"step": [], "prompt": [], "completion": [], "accuracy": [], "advantage": []}).to_parquet(
        folder / "completions_00009.parquet"
    )
    found = judge(run)
    assert codes(found) == {"unreadable_files": 2, "empty_files": 1}
    assert found.warnings[0].text.startswith(
        "2 of 9 files cannot be read (completions_00007.parquet, completions_00008"
    )
    assert diagnosis_text(found).split("\n\n")[1].startswith("WARNING unreadable_files: ")
    agrees_throughout(found, run.groups())
    for file in folder.glob("completions_0000[1-6].parquet"):
        file.unlink()
    with pytest.raises(
        ValueError,
        match=r"table of completions must be usable, got 3 tables that cannot be read \(2\), have no rows \(1\)",
    ):
        judge(run)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"drop": "prompt"}, r"completions_00001.parquet: the prompt must name a column, got 'prompt'"),
        ({"drop": "completion"}, r"the completion must name a column"),
        ({"drop": "accuracy"}, r"the table of completions must have a column of rewards, got none"),
        ({"rename": ("prompt", "prompts")}, r"did you mean 'prompts'"),
        ({"set": ("prompt", None)}, r"the prompt in completions_00001.parquet, row 1 must be there, got None"),
        ({"set": ("step", 0.5)}, r"the step in completions_00001.parquet, row 1 must be a whole number, got 0.5"),
        ({"set": ("accuracy", None)}, r"at least one group must have a reward, got 3 groups"),
    ],
)
def test_tables_that_are_not_as_they_should_be(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    run = MadeUpRun(tmp_path / "run").train(1)
    file = run.path / "completions" / "completions_00001.parquet"
    table = pd.read_parquet(file)
    match change:
        case {"drop": name}:
            table = table.drop(columns=name)
        case {"rename": (old, new)}:
            table = table.rename(columns={old: new})
        case {"set": (name, value)}:
            table[name] = pd.Series([value] * len(table), dtype="float64" if name == "accuracy" else None)
    table.to_parquet(file)
    with pytest.raises(ValueError, match=words) as caught:
        judge(run)
    assert "\n" not in str(caught.value)


def test_a_wrong_group_size_shows_in_the_advantages(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run").train()
    assert not judge(run).notes
    assert codes(judge(run, reading=Reading(group_size=2)))["advantages_do_not_fit"] > 0
    with pytest.raises(ValueError, match=r"blocks of N = 3, got a run of 4"):
        judge(run, reading=Reading(group_size=3))
    with pytest.raises(ValueError, match="group_size must be at least 2 in a run of TRL, got 1"):
        judge(run, reading=Reading(group_size=1))


def test_one_prompt_alone_is_one_block_unless_the_size_is_given(tmp_path: Path) -> None:
    logger = TableLogger(tmp_path / "run", 8)
    rewards = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    advantages = group_advantages(rewards[:4]) + group_advantages(rewards[4:])  # type: ignore[arg-type]
    logger.generate(["only"] * 8, ["c"] * 8, {"r": rewards}, advantages)  # type: ignore[dict-item]
    logger.log(1)
    whole = judge(tmp_path / "run")
    assert whole.group_size == 8
    assert codes(whole) == {"advantages_do_not_fit": 1}  # equal rewards, different advantages
    parted = judge(tmp_path / "run", reading=Reading(group_size=4))
    assert (parted.run.groups, codes(parted)) == (2, {})


def test_steps_follow_their_numbers(tmp_path: Path) -> None:
    run = MadeUpRun(tmp_path / "run").train(1)
    folder = run.path / "completions"
    for step in (99_999, 100_000):
        run.generate(step)
        run.logger.log(step)
    assert sorted(file.name for file in folder.iterdir())[1] == "completions_100000.parquet"
    assert [part.first_step for part in judge(run, windows=3).windows] == [1, 99_999, 100_000]
