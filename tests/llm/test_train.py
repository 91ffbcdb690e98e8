"""`fgrpo train` end to end on the tiny world: weights from text, refusals before anything is written."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from math import isclose
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from trl.trainer.utils import get_callable_name

from fgrpo.cli import main
from fgrpo.llm import reward_loading, run_data
from fgrpo.llm.recipe_files import FOLDER
from fgrpo.llm.run_folder import RECORD
from fgrpo.llm.settings import read_settings
from fgrpo.llm.tiny_world import pretraining
from fgrpo.llm.tiny_world.task import digit_sum_reward, prompts, rows
from reference.focal_advantages import expected_rows


def test_every_advantage_is_that_of_the_text(run: Callable[..., list[str]], tmp_path: Path) -> None:
    lines = run("--focal_gamma", "0.5")
    assert lines[0].startswith("tiny: 83,648 parameters, dapo, focal_gamma 0.5, N = 6, 4 prompts per generation")
    assert [line.split("  ")[0] for line in lines[1:3]] == ["step 1", "step 2"]
    assert lines[3:] == [f"model, checkpoints and completions: {Path('runs/tiny')}"]
    for step in (1, 2):
        table = pd.read_parquet(tmp_path / f"runs/tiny/completions/completions_{step:05d}.parquet")
        assert len(table) == 24
        # the reward is logged and checked against the text where the text shows all; a completion that did not end,
        # or holds special tokens, does not
        reward = table["digit_sum_reward"].tolist()
        judged = digit_sum_reward(table["prompt"].tolist(), table["completion"].tolist())
        assert all(mine >= logged for mine, logged in zip(judged, reward, strict=True))
        expected = expected_rows(
            table["prompt"].tolist(),
            table["completion"].tolist(),
            [i // 6 for i in range(24)],
            [lambda prompts, completions, values=reward: values],
            success=0,
            weight=lambda rate: (1 - rate) ** 0.5,
        )
        for name in ("advantage", "empirical_success_rate", "focal_weight"):
            assert table[name].tolist() == pytest.approx([getattr(row, name) for row in expected], abs=1e-6)
    assert 0 < table["focal_weight"].min() < 1  # the weight did something


FILES = {
    "question.jsonl": '{"question": "x"}\n',
    "empty.jsonl": "",
    "one.jsonl": '{"prompt": "a06:"}\n',
    "texts.jsonl": "".join(f'{{"prompt": "{prompt}"}}\n' for prompt in prompts()),
    "mixed.jsonl": '{"prompt": "a06:"}\n{"prompt": [{"role": "user", "content": "a06:"}]}\n',
    "number.json": '[{"prompt": 3}]',
    "roles.json": '[{"prompt": [{"text": "x"}]}]',
    "rewards_of_mine.py": "def short(prompts, completions, **_):\n    return [1.0]\n\n\n"
    "def single(prompts, completions, **_):\n    return 1.0\n\n\n"
    "def judge(prompts, completions, truth, **_):\n    return [1.0 for _ in completions]\n\n\nnumber = 3\n",
}
BAD = [
    ("--dataset_name question.jsonl", "the data must have a column prompt, got question"),
    ("--dataset_name empty.jsonl", "must have at least one prompt, got none"),
    ("--dataset_name none.jsonl", "data file must exist, got 'none.jsonl'"),
    ("--dataset_name one.jsonl", "at least the 4 prompts of one generation, got 1"),
    ("--dataset_name mixed.jsonl", "must have values of one type in each column, got a mixture"),
    ("--dataset_name number.json", "prompt in row 1 must be text or a list of messages"),
    ("--dataset_name roles.json", "prompt in row 1 must be text or a list of messages"),
    (
        "--dataset_name some/data",
        "data 'some/data' must load from the hub, got .* or pass a .csv, .jsonl, .json",
    ),
    ("--eval_strategy steps", "evaluation batch must be a multiple of num_generations 6, got 8 per device x 1 process"),
    ("--eval_strategy steps --per_device_eval_batch_size 0", "got 0 per device .* per_device_eval_batch_size 6$"),
    (
        "--eval_strategy steps --per_device_eval_batch_size 6 --dataset_name texts.jsonl",
        "dataset_test_split must be a file to evaluate on",
    ),
    ("--dataset_name texts.jsonl --reward_funcs exact_match --success_reward exact_match", "column 'answer'"),
    ("--reward_funcs rewards_of_mine:judge --success_reward judge", "must have a column truth for judge"),
    ("--reward_funcs rewards_of_mine:none", "reward_funcs must be .* or module:function, got 'rewards_of_mine:none'"),
    ("--reward_funcs rewards_of_mine:number", "reward_funcs must be functions"),
    ("--reward_funcs none.of.it", "No module named 'none'"),
    ("--reward_funcs digit_sum", "did you mean 'digit_sum_reward'"),
    ("--reward_weights 1 2", "reward_weights must be one for each of the reward functions digit_sum_reward, got 2"),
    ("--success_reward other", "success_reward must name exactly one reward function, got 'other' and digit_sum_re"),
    ("--reward_model_name_or_path some/judge --success_reward some/judge", "got 'some/judge' and judge, digit_sum"),
    ("--max_steps 0", "max_steps must be above 0, got 0"),
    ("--max_steps -1 --num_train_epochs 0", "num_train_epochs must be above 0, got 0.0"),
    ("--num_generations 1", "num_generations must be at least 2, got 1"),
    ("--num_generations 7", "multiple of num_generations 7, got 24 per device x 1 process x 1 steps = 24: what fits"),
    ("--loss_type cispo", "epsilon_high must be set"),
    ("--model_name_or_path here/modle", "got 'here/modle' with no modle in the folder here: check the path"),
    ("--model_name_or_path ./modle", "model must be a folder or a name on the hub, got './modle': check the path"),
    ("--model_name_or_path some/model", "model_name_or_path must be a folder with a model or a name .* 'some/model'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[arguments for arguments, _ in BAD])
def test_refuses_before_anything_is_written(
    run: Callable[..., list[str]], tmp_path: Path, arguments: str, message: str
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "here").mkdir()
    with pytest.raises(ValueError, match=message) as caught:
        run(*arguments.split())
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("said", "refused"), [("true", True), (None, True), ("false", False)])
def test_bfloat16_without_a_gpu_is_refused_before_the_data_are_read(
    run: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, refused: bool
) -> None:
    monkeypatch.setattr("fgrpo.llm.train.is_torch_bf16_gpu_available", lambda: False)
    (tmp_path / "gpu.yaml").write_text(f"use_cpu: false\nbf16: {'' if said is None else said}\n")
    message = "bf16 must be false without a GPU .* got true: pass --bf16 false" if refused else "data file must exist"
    with pytest.raises(ValueError, match=message):
        run("--dataset_name", "none.jsonl", config="tiny,gpu.yaml")


def test_success_that_is_not_defined_is_refused_before_anything_is_written(
    run: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "rewards_of_mine.py").write_text(FILES["rewards_of_mine.py"])
    (tmp_path / "two.yaml").write_text("success_reward:\nreward_funcs: [digit_sum_reward, rewards_of_mine.short]\n")
    with pytest.raises(ValueError, match=r"must name one of the .*, got None and digit_sum_reward, short: set it"):
        run(config="tiny,two.yaml")
    assert not (tmp_path / "runs").exists()


def test_a_wrong_number_of_rewards_ends_the_run_and_blocks_no_other(
    run: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "rewards_of_mine.py").write_text(FILES["rewards_of_mine.py"])
    mine = ["--reward_funcs", "rewards_of_mine.short", "--success_reward"]
    with pytest.raises(ValueError, match="'short' returned 1 rewards, but 24 were expected"):
        run(*mine, "short")
    (tmp_path / "runs/tiny" / RECORD).unlink()  # as where it failed while the trainer was built
    run("--max_steps", "1")


def test_rewards_may_be_tensors_and_objects_with_an_asynchronous_call(
    run: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "rewards_that_trl_takes.py").write_text(
        "import torch\n\n\nclass Later:\n    async def __call__(self, completions, **_):\n"
        "        return torch.arange(len(completions)) % 2\n\n\nlater = Later()\n"
    )
    run("--reward_funcs", "rewards_that_trl_takes:later", "--success_reward", "Later", "--max_steps", "1")
    table = pd.read_parquet(tmp_path / "runs/tiny/completions/completions_00001.parquet")
    assert table["Later"].tolist() == [0, 1] * 12


def test_names_of_rewards_lead_somewhere() -> None:
    loaded = reward_loading.load_rewards(reward_loading.NAMES)
    named = [get_callable_name(reward) for reward in loaded]
    assert named[: len(reward_loading.NAMES) - 1] == list(reward_loading.NAMES[:-1])
    assert loaded[0](prompts=["?"], completions=["\\boxed{2}"], answer=["2"]) == [1.0]
    reward_loading.close_rewards(loaded)
    with pytest.raises(ValueError, match="at least one reward function"):
        reward_loading.load_rewards([])


def test_problems_and_answers_become_prompts(tmp_path: Path) -> None:
    file = tmp_path / "problems.jsonl"
    file.write_text("".join(json.dumps({"problem": f"{i} + 1?", "answer": str(i + 1)}) + "\n" for i in range(20)))
    settings = read_settings("tiny", None, ["--dataset_name", str(file)])
    lines: list[str] = []
    data, test = run_data.load_data(settings, [], lines.append)
    assert (len(data), test) == (20, None)
    assert data[1]["prompt"].endswith("1 + 1?")  # no chat template, so text
    assert "20 read" in lines[0]
    assert "20 kept" in lines[0]


def test_chats_and_columns_of_a_file_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "chats.json"
    chats = [{"prompt": [{"role": "user", "content": row["prompt"]}], "answer": row["answer"]} for row in rows()]
    file.write_text(json.dumps(chats))
    arguments = ["--dataset_name", str(file), "--eval_strategy", "steps", "--dataset_test_split", str(file)]
    data, test = run_data.load_data(read_settings("tiny", None, arguments), [], print)
    assert data.to_list() == test.to_list() == chats


def base_world(cache: Path) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache), "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, subprocess.CompletedProcess[str], float]:
    """`fgrpo train` without any option, as somebody types it first."""
    folder, cache = tmp_path_factory.mktemp("newcomer"), tmp_path_factory.mktemp("user cache")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "fgrpo", "train"]
    done = subprocess.run(command, cwd=folder, env=base_world(cache), capture_output=True, text=True, timeout=500)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return folder, cache, done, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_a_newcomer_sees_the_success_rate_rise(
    newcomer: tuple[Path, Path, subprocess.CompletedProcess[str], float],
) -> None:
    folder, _, done, seconds = newcomer
    assert (done.returncode, done.stderr) == (0, "")
    first, start, *steps, last = done.stdout.splitlines()
    assert first.startswith("supervised training of the base model, once: ")
    assert start.startswith("tiny: 83,648 parameters, dapo, focal_gamma 1, N = 8, 8 prompts per generation, 1 process")
    assert [line.split("  ")[0] for line in steps] == [f"step {step}" for step in range(5, 61, 5)]
    rates = [float(line.split("success ")[1].split()[0]) for line in steps]
    # 0.62 to 0.91 where this was measured; the sampling error of a mean of 5 generations is about .04
    assert rates[-1] > rates[0] + 0.15
    assert last == "model, checkpoints and completions: runs/tiny"
    run = folder / "runs/tiny"
    found = {str(path.relative_to(run)) for path in run.rglob("*")}
    assert {"model.safetensors", RECORD, f"checkpoint-60/{RECORD}", "completions/completions_00060.parquet"} <= found
    assert seconds < 60


def test_two_processes_are_two(newcomer: tuple[Path, Path, subprocess.CompletedProcess[str], float]) -> None:
    folder, cache, _, _ = newcomer
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "fgrpo"]
    options = [
        "--per_device_train_batch_size",
        "12",
        "--num_generations",
        "8",
        "--max_steps",
        "2",
        "--logging_steps",
        "1",
    ]
    done = subprocess.run(
        [*command, "train", *options, "--output_dir", "two"],
        cwd=folder,
        env=base_world(cache),
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert lines[0].endswith("N = 8, 3 prompts per generation, 2 processes")
    assert len(lines) == 4  # the second process says nothing
    assert json.loads((folder / "two" / RECORD).read_text())["world_size"] == 2
    table = pd.read_parquet(folder / "two/completions/completions_00002.parquet")
    assert len(table) == 24
    for _, group in table.groupby(table.index // 8):  # the middle group lies on both processes
        rate = group["digit_sum_reward"].mean()
        assert group["prompt"].nunique() == 1
        assert all(isclose(weight, 1 - rate, abs_tol=1e-6) for weight in group["focal_weight"])


def test_dry_run_prints_a_configuration_that_is_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--config", "focal_grpo,vllm_colocate", "--num_processes", "8", "--dry-run"]
    assert main(["train", *arguments, "--model", "qwen3-4b-base", "--num_generations", "4"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    values = yaml.safe_load(output.out)
    (tmp_path / "again.yaml").write_text(output.out)
    again = read_settings("again.yaml", None, [])
    assert again.values == values
    assert values["chat_template_kwargs"] == {"enable_thinking": True}
    assert values["use_vllm"] is True
    for words in (
        "8 processes, N = 4",
        "256 rollouts = 64 prompts x 4",
        "1024 rollouts = 256 prompts x 4",
        "updates per generation 4",
    ):
        assert words in output.out
    # Lemma 3.1 at mu = .5, rho = .2: 1 - mu^N - (1 - mu)^N - (1 - tau)^N + ... term by term
    mu, tau, n = 0.5, 0.1, 4
    miss = (1 - tau) ** n - (1 - mu) ** n - (mu - tau) ** n
    line = next(line for line in output.out.splitlines() if line.startswith("#     0.5"))
    assert line.split()[2] == f"{1 - mu**n - (1 - mu) ** n:.3f}"
    assert line.split()[-2] == f"{miss:.3f}"
    assert list(tmp_path.iterdir()) == [tmp_path / "again.yaml"]


def test_dry_run_refuses_what_a_run_would(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--config", "cispo", "--epsilon_high", "none", "--dry-run"]) == 2
    assert capsys.readouterr().err.startswith("fgrpo: epsilon_high must be set")
    assert main(["train", "--config", str(FOLDER / "grpo.yaml"), "--num_generations", "3", "--dry-run"]) == 2
    assert capsys.readouterr().err.startswith("fgrpo: the rollouts of a generation must be a multiple")


def test_base_distribution_is_what_it_says() -> None:
    base = pretraining.base_distribution(3).reshape(16, -1)
    correct = [[digits for digits in range(1000) if sum(map(int, f"{digits:03d}")) == total] for total in range(6, 22)]
    mass: list[Any] = [row[answers] for row, answers in zip(base, correct, strict=True)]
    assert base.sum(1) == pytest.approx(1)
    assert sorted(part.sum() for part in mass) == pytest.approx(pretraining.SUCCESS_RATES)
    for part in mass:
        ranked = sorted(part / part.sum(), reverse=True)
        assert ranked[:3] == pytest.approx([0.85 * share for share in (4 / 7, 2 / 7, 1 / 7)])
        assert sum(ranked[3:]) == pytest.approx(0.15)
    assert (pretraining.base_distribution(3) == base.reshape(16, 10, 10, 10)).all()
    assert (pretraining.base_distribution(4) != base.reshape(16, 10, 10, 10)).any()


def test_base_model_is_made_once(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(pretraining, "pretrained_model", never)
    assert pretraining.base_model_folder(steps=60, cache=base.parent, announce=never) == base
