"""Run folders that TRL itself makes: plain GRPOTrainer and the focal one, against rollouts kept by the rewards."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from fgrpo.diagnosis.columns import Reading
from fgrpo.diagnosis.diagnose import diagnose
from fgrpo.diagnosis.model import Diagnosis
from fgrpo.llm import FocalGRPOConfig, FocalGRPOTrainer
from fgrpo.llm.tiny_world.model import build_model
from fgrpo.llm.tiny_world.task import rows
from fgrpo.llm.tiny_world.tokenizer import build_tokenizer
from reference.diagnosis import Group, count
from reference.diagnosis import diagnose as literally
from reference.llm_runs import easy_start, long_format, settings

N = 4
RHOS, GAMMAS = [0.1], [0.0, 1.0]


class Kept:
    """A reward that keeps what it has judged, in the order of TRL's rows; a call is a generation."""

    __name__ = "kept"

    def __init__(self, judge: Callable[..., list[float]]) -> None:
        self.judge = judge
        self.generations: list[list[tuple[str, str, float]]] = []

    def __call__(self, prompts: Sequence[str], completions: Sequence[str], **columns: Any) -> list[float]:
        rewards = self.judge(prompts=prompts, completions=completions, **columns)
        self.generations.append(list(zip(prompts, completions, rewards, strict=True)))
        return rewards

    def groups(self, steps: Sequence[int]) -> list[Group]:
        """Groups of the generations that were logged, at these steps."""
        found = []
        for generation, step in zip(self.generations, steps, strict=True):
            for start in range(0, len(generation), N):
                members = generation[start : start + N]
                found.append((step, members[0][0], [(reward, answer) for _, answer, reward in members]))
        return found


def train(out: Path, rewards: list[Any], trainer: type[GRPOTrainer] = GRPOTrainer, **changes: Any) -> Path:
    config = FocalGRPOConfig if issubclass(trainer, FocalGRPOTrainer) else GRPOConfig
    trainer(
        model=build_model(),
        processing_class=build_tokenizer(),
        train_dataset=Dataset.from_list(rows()),
        reward_funcs=rewards,
        args=config(**settings(out, log_completions=True, num_completions_to_print=0, seed=3, **changes)),
    ).train()
    return out


def agrees(found: Diagnosis, groups: list[Group]) -> None:
    expected = literally(groups, threshold=0.5, rhos=RHOS, gammas=GAMMAS, n=N, level=0.5)
    run = found.run
    assert (found.group_size, run.groups, run.rollouts) == (N, len(groups), N * len(groups))
    for name in ("success_rate", "active_share", "all_wrong_share", "all_right_share"):
        value = getattr(run, name)
        assert (value.estimate, value.lower, value.upper) == pytest.approx(expected[name], abs=1e-12)
    assert run.tail_miss[0].probability.estimate == pytest.approx(expected["tail_miss"][0][0])
    assert run.regimes[0].miss_prone == pytest.approx(expected["regimes"][0]["miss-prone"])
    assert run.correct_pairs_differ == pytest.approx(expected["correct_pairs_differ"])
    assert {one.prompt: [one.correct, one.rollouts] for one in found.prompts} == expected["prompts"]
    assert found.what_if[1].mean_weight == pytest.approx(expected["what_if"][1]["mean_weight"])
    assert sum(0 < x < n for x, n in (count(group, 0.5) for group in groups)) > 0


def judge(path: Path, **reading: Any) -> Diagnosis:
    return diagnose(path, reading=Reading(**reading), rare_fractions=RHOS, gammas=GAMMAS)


def test_grpo_whose_generations_serve_two_steps(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = Kept(easy_start)
    changes = {"steps_per_generation": 2, "per_device_train_batch_size": 8, "max_steps": 6, "save_strategy": "steps"}
    found = judge(train(tmp_path / "run", [kept], loss_type="grpo", **changes))
    agrees(found, kept.groups([1, 3, 5]))
    assert {note.code: note.count for note in found.notes} == {"repeated_generations": 3}
    assert found.layout.files == 6
    assert 0.0 <= found.run.truncated_share <= 1.0  # of the checkpoint's state
    assert found.logged_weights is None


def test_dapo_that_logs_every_second_step(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = Kept(easy_start)
    found = judge(train(tmp_path / "run", [kept], loss_type="dapo", epsilon_high=0.28, logging_steps=2, max_steps=4))
    kept.generations = kept.generations[1::2]
    agrees(found, kept.groups([2, 4]))
    assert not found.notes


def test_two_rewards_and_a_focal_weight(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = Kept(easy_start)
    path = train(
        tmp_path / "run", [kept, long_format], FocalGRPOTrainer, focal_gamma=0.7, success_reward="kept", max_steps=4
    )
    with pytest.raises(ValueError, match=r"must be one column, got 'kept', 'long_format'"):
        judge(path)
    found = judge(path, success_column="kept")
    agrees(found, kept.groups([1, 2, 3, 4]))
    weights = found.logged_weights
    assert weights is not None
    assert (weights.verdict, weights.success_rate_from) == ("focal", "logged")
    assert weights.gamma == pytest.approx(0.7, abs=1e-4)
    assert weights.success_rate_difference < 1e-6
    assert not {"weights_not_focal", "other_success"} & {note.code for note in found.warnings}


def test_two_rewards_of_plain_trl_with_evaluations(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = Kept(easy_start)
    changes = {"eval_strategy": "steps", "eval_steps": 2, "num_generations_eval": 2, "per_device_eval_batch_size": 8}
    trainer = GRPOTrainer(
        model=build_model(),
        processing_class=build_tokenizer(),
        train_dataset=Dataset.from_list(rows()),
        eval_dataset=Dataset.from_list(rows("x")[:4]),
        reward_funcs=[kept, long_format],
        args=GRPOConfig(
            **settings(
                tmp_path / "run",
                log_completions=True,
                num_completions_to_print=0,
                max_steps=5,  # evaluates at steps 2, 4 and, being the last, 5
                **(changes | {"save_strategy": "steps"}),
            )
        ),
    )
    trainer.train()
    found = judge(tmp_path / "run", success_column="kept")
    train_generations = [one for one in kept.generations if one[0][0].startswith("a")]
    assert len(train_generations) < len(kept.generations)
    kept.generations = [train_generations[0], train_generations[2]]
    agrees(found, kept.groups([1, 3]))
    assert {note.code: note.count for note in found.notes} == {"evaluation_tables": 3}
