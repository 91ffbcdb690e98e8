"""The trainer refuses a TRL that works otherwise, and a definition of success that is none, before any training."""

from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from trl import GRPOConfig, GRPOTrainer
from trl.experimental.async_grpo import AsyncGRPOTrainer

from fgrpo.llm import FocalGRPOTrainer, FocalWeightMixin, contract
from fgrpo.llm.tiny_world.model import build_model
from reference.llm_runs import CheckedTrainer, build, easy_start, long_format, settings

RANGE = r"trl \S+ works otherwise than expected, install trl>=1.14,<1.17"


@pytest.mark.parametrize("name", contract.PARAMETERS)
def test_changed_methods_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(GRPOTrainer, name, lambda self, other: None)
    with pytest.raises(ValueError, match=rf"GRPOTrainer.{name} must take \(self, .*\), got \(self, other\): {RANGE}"):
        build(FocalGRPOTrainer, tmp_path)
    monkeypatch.delattr(GRPOTrainer, name)
    with pytest.raises(ValueError, match=rf"GRPOTrainer.{name} must take .*, got no such method: {RANGE}"):
        build(FocalGRPOTrainer, tmp_path)


def test_methods_of_the_class_behind_the_mixin_are_looked_at(tmp_path: Path) -> None:
    class Other(GRPOTrainer):
        def _calculate_rewards(self, inputs: Any) -> Any:
            raise AssertionError

    class HandsOn(GRPOTrainer):
        def _calculate_rewards(self, *arguments: Any) -> Any:
            return super()._calculate_rewards(*arguments)

    with pytest.raises(ValueError, match=rf"Other._calculate_rewards must take .*, got \(self, inputs\): {RANGE}"):
        build(type("FocalOther", (FocalWeightMixin, Other), {}), tmp_path)
    build(type("FocalHandsOn", (FocalWeightMixin, HandsOn), {}), tmp_path).train()


def test_the_range_is_that_of_the_installed_package() -> None:
    required = [one for text in requires("fgrpo") or () if (one := Requirement(text)).name == "trl"]
    assert {str(one.specifier) for one in required} == {str(SpecifierSet(contract.SUPPORTED_TRL))}


def test_missing_attributes_are_refused(tmp_path: Path) -> None:
    trainer = build(FocalGRPOTrainer, tmp_path)
    contract.check_trainer(trainer)
    for name in contract.ATTRIBUTES:
        kept = trainer.__dict__.pop(name)
        with pytest.raises(ValueError, match=f"must have the attribute {name}, got none: {RANGE}"):
            contract.check_trainer(trainer)
        trainer.__dict__[name] = kept


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("no call", "advantages must be made from _calculate_rewards, got a generation without a call: "),
        ("fewer rows", "advantages must have 16 rows, got 15: "),
        ("other order", "logged advantages must be those of the ranks in order, got others: "),
        ("not gathered", "rewards must have 1 times 16 rows, got 12: "),
    ],
)
def test_changed_behaviour_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, message: str
) -> None:
    generate, rewards = GRPOTrainer._generate_and_score_completions, GRPOTrainer._calculate_rewards

    def changed(self: Any, inputs: Any) -> Any:
        output = generate(self, inputs)
        if behaviour == "no call":
            self._generation = None
        if behaviour == "fewer rows":
            output["advantages"] = output["advantages"][:-1]
        if behaviour == "other order":
            self._logs["advantages"].rotate(1)
        return output

    def fewer(self: Any, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        return rewards(self, inputs, prompts, completions, completion_ids_list)[:12]

    monkeypatch.setattr(GRPOTrainer, "_generate_and_score_completions", changed)
    if behaviour == "not gathered":
        monkeypatch.setattr(GRPOTrainer, "_calculate_rewards", fewer)
    with pytest.raises(ValueError, match=f"{message}{RANGE}"):
        build(FocalGRPOTrainer, tmp_path).train()


def test_releases_outside_the_range_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "version", lambda _: "1.99.0")
    with pytest.warns(UserWarning, match=r"trl 1.99.0 is not among the tested releases >=1.14,<1.17"):
        build(FocalGRPOTrainer, tmp_path)


def test_the_asynchronous_trainer_is_refused() -> None:
    class Asynchronous(FocalWeightMixin, AsyncGRPOTrainer):
        pass

    with pytest.raises(ValueError, match=r"subclass of GRPOTrainer, got Asynchronous\(FocalWeightMixin, AsyncGRPOTr"):
        Asynchronous("model", easy_start)


@pytest.mark.parametrize("args", [None, GRPOConfig])
def test_plain_configuration_is_refused(tmp_path: Path, args: Any) -> None:
    plain = args and args(**settings(tmp_path))
    with pytest.raises(ValueError, match=r"args must be a FocalGRPOConfig, got (NoneType|GRPOConfig): pass"):
        FocalGRPOTrainer(build_model(), easy_start, plain)


@pytest.mark.parametrize(
    ("rewards", "name", "message"),
    [
        ([long_format, easy_start], None, "must name one of the reward functions, got None and long_format, easy_st"),
        ([easy_start], "easy_star", "must name exactly one reward function, got 'easy_star' and easy_start: "),
        ([easy_start, easy_start], "easy_start", "must name exactly one reward function, got 'easy_start' and easy_s"),
    ],
)
def test_success_must_be_defined(tmp_path: Path, rewards: list[Any], name: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=f"success_reward {message}"):
        build(CheckedTrainer, tmp_path, rewards, success_reward=name)
