"""The folder of a run of `fgrpo train`: going on in it, bit for bit, and what leaves it alone."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest
from accelerate import PartialState
from safetensors.torch import load_file
from transformers import TrainerControl, TrainerState

from fgrpo.llm import FocalGRPOConfig
from fgrpo.llm.run_folder import RECORD, RecordCallback, RunFolder
from fgrpo.llm.settings import read_settings
from reference.llm_runs import settings


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def resumed(run: Callable[..., list[str]], name: str, step: int, *arguments: str) -> list[str]:
    """A run that goes on from a checkpoint of the run `name`, which is all that its folder has, up to the same end."""
    folder = Path(f"{name}-from-{step}")
    shutil.copytree(Path(name, f"checkpoint-{step}"), folder / f"checkpoint-{step}")
    shutil.copy(Path(name, RECORD), folder)
    (folder / "checkpoint-99").mkdir()  # broken off while it was written: it has no record
    return run(*arguments, "--output_dir", str(folder), resume=True)


def differing(one: Path, other: Path, first: int, last: int) -> list[str]:
    """Which of the steps have other rollouts or advantages, and whether the final weights differ."""
    tables = [f"completions/completions_{step:05d}.parquet" for step in range(first, last + 1)]
    found = [name for name in tables if not pd.read_parquet(one / name).equals(pd.read_parquet(other / name))]
    weights, others = (load_file(folder / "model.safetensors") for folder in (one, other))
    return found + [name for name in weights if not weights[name].equal(others[name])]


# 16 prompts and 6 rollouts of each, so an epoch is
# 4 generations of 4 prompts with one update each; the same with two updates each;
# 5 generations of 3 prompts, of which an update takes two, the last of an epoch one
@pytest.mark.parametrize(
    ("arguments", "last", "steps"),
    [
        ("", 9, (2, 4, 6)),
        ("--per_device_train_batch_size 12 --steps_per_generation 2", 18, (2, 8, 16)),
        ("--per_device_train_batch_size 18 --gradient_accumulation_steps 2 --steps_per_generation 1", 7, (2, 3, 4)),
    ],
    ids=["an update per generation", "two updates per generation", "two generations per update"],
)
def test_resuming_is_the_run_without_a_break(
    run: Callable[..., list[str]], tmp_path: Path, arguments: str, last: int, steps: Sequence[int]
) -> None:
    options = [*arguments.split(), "--max_steps", str(last), "--save_steps", "1"]
    whole = run(*options, "--output_dir", "whole")
    opening = next(number for number, line in enumerate(whole) if line.startswith("tiny: "))
    for step in steps:
        lines = resumed(run, "whole", step, *options)
        assert lines[:opening] == whole[:opening]  # no warning but those of the whole run
        assert lines[opening] == f"{whole[opening]}\ngoing on from whole-from-{step}/checkpoint-{step}"
        assert lines[opening + 1 : -1] == [line for line in whole[opening + 1 : -1] if int(line.split()[1]) > step]
        assert differing(tmp_path / f"whole-from-{step}", tmp_path / "whole", step + 1, last) == []
    start = load_file(tmp_path / "whole" / f"checkpoint-{steps[-1]}" / "model.safetensors")
    end = load_file(tmp_path / "whole" / "model.safetensors")
    assert any(not start[name].equal(end[name]) for name in end)


def test_a_generation_that_a_break_has_cut_is_drawn_again(run: Callable[..., list[str]], tmp_path: Path) -> None:
    options = ["--per_device_train_batch_size", "12", "--steps_per_generation", "2", "--max_steps", "14"]
    options += ["--save_steps", "1"]
    run(*options, "--output_dir", "whole")
    lines = resumed(run, "whole", 9, *options)
    warning = "warning: step 9 lies inside a generation (1 of 2 forward passes): "
    assert [line.startswith(warning) for line in lines].count(True) == 1
    cut, whole = tmp_path / "whole-from-9", tmp_path / "whole"
    prompts_10, prompts_11 = (
        [
            pd.read_parquet(folder / f"completions/completions_{step:05d}.parquet")["prompt"].tolist()
            for folder in (cut, whole)
        ]
        for step in (10, 11)
    )
    assert prompts_10[0] == prompts_10[1]  # the prompts of the cut generation
    assert prompts_11[0] == prompts_11[1]  # and the next one begins where it did
    assert differing(cut, whole, 10, 10) != []
    resumed(run, "whole-from-9", 12, *options)
    assert differing(tmp_path / "whole-from-9-from-12", cut, 13, 14) == []


def test_a_run_goes_on_only_as_what_it_was(run: Callable[..., list[str]], tmp_path: Path) -> None:
    run("--max_steps", "4", "--save_steps", "2", "--output_dir", "parts")
    before = contents(tmp_path / "parts")
    with pytest.raises(
        ValueError, match=r"checkpoint-4 must be of this configuration, got focal_gamma 1.0 there and 0.5"
    ):
        run("--focal_gamma", "0.5", "--output_dir", "parts", resume=True)
    with pytest.raises(ValueError, match=r"learning_rate 0\.0003 there and 0\.1 here"):
        run("--learning_rate", ".1", "--output_dir", "new", "--resume_from_checkpoint", "parts/checkpoint-4")
    for steps in ("4", "3"):  # nothing is left to do
        with pytest.raises(ValueError, match=f"max_steps must be above the 4 steps of parts/checkpoint-4, got {steps}"):
            run("--max_steps", steps, "--output_dir", "parts", resume=True)
    assert contents(tmp_path / "parts") == before
    assert not (tmp_path / "new").exists()
    epoch = ["--max_steps", "-1", "--num_train_epochs", "1", "--save_steps", "2", "--output_dir", "epoch"]
    run(*epoch)
    before = contents(tmp_path / "epoch")
    with pytest.raises(ValueError, match="must be above those of its checkpoint, got 4 and 4: the run is finished"):
        run(*epoch, resume=True)
    assert contents(tmp_path / "epoch") == before


def test_a_run_that_failed_before_its_first_step_is_not_in_the_way(
    run: Callable[..., list[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "runs/tiny"
    (folder / "completions").mkdir(parents=True)
    (folder / RECORD).write_text("{}")
    run("--max_steps", "1")
    assert (folder / "model.safetensors").is_file()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="output_dir must be a folder, got the file file: choose another"):
        run("--output_dir", "file/new")


def test_a_full_folder_is_left_alone(run: Callable[..., list[str]], tmp_path: Path) -> None:
    run("--max_steps", "1")
    folder = tmp_path / "runs/tiny"
    before = contents(folder)
    with pytest.raises(ValueError, match=r"output_dir must be empty, got runs/tiny with .* --resume .* --overwrite"):
        run()
    with pytest.raises(ValueError, match="gamma must be finite"):  # a bad value costs nothing of the old run
        run("--focal_gamma", "-1", overwrite=True)
    with pytest.raises(ValueError, match="--overwrite and --resume must not come together"):
        run(overwrite=True, resume=True)
    assert contents(folder) == before
    run("--seed", "1", "--max_steps", "1", overwrite=True)
    after = contents(folder)
    assert after["model.safetensors"] != before["model.safetensors"]
    assert json.loads(after[RECORD])["settings"]["seed"] == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match="--overwrite replaces runs of this command only, got mine with thesis"):
        run("--output_dir", "mine", overwrite=True)
    with pytest.raises(ValueError, match="--resume needs a checkpoint of this command, got none in mine"):
        run("--output_dir", "mine", resume=True)
    with pytest.raises(ValueError, match="output_dir must be a folder, got the file"):
        run("--output_dir", "mine/thesis.tex")
    with pytest.raises(ValueError, match="resume_from_checkpoint must be a folder, got 'none'"):
        run("--resume_from_checkpoint", "none")


def test_what_may_change_when_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = RunFolder(read_settings("tiny", None, ["--output_dir", str(tmp_path)]))
    there.write_record(tmp_path)
    for arguments in (["--max_steps", "9"], ["--logging_steps", "1"], ["--success_threshold", "0.5"]):
        RunFolder(read_settings("tiny", None, arguments)).refuse_other_settings(tmp_path)
    for arguments in (["--seed", "9"], ["--steps_per_generation", "2"], ["--reward_funcs", "exact_match"]):
        with pytest.raises(ValueError, match=f"{arguments[0][2:]} .* there and"):
            RunFolder(read_settings("tiny", None, arguments)).refuse_other_settings(tmp_path)
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="1 processes there and 2 here"):
        RunFolder(read_settings("tiny", None, [])).refuse_other_settings(tmp_path)
    monkeypatch.delenv("LOCAL_RANK")
    for schedule, free in (("linear", False), ("constant_with_warmup", True)):
        there = RunFolder(read_settings("tiny", None, ["--lr_scheduler_type", schedule]))
        there.write_record(tmp_path)
        longer = RunFolder(read_settings("tiny", None, ["--lr_scheduler_type", schedule, "--max_steps", "99"]))
        assert longer.length_is_free is free
        if free:
            longer.refuse_other_settings(tmp_path)
            continue
        with pytest.raises(
            ValueError, match=r"max_steps 60 there and 99 here \(the linear learning rate is for one length\): pass"
        ):
            longer.refuse_other_settings(tmp_path)
    warm_up = ["--lr_scheduler_type", "constant_with_warmup", "--warmup_steps"]
    for steps, free in (("0.1", False), ("10", True)):
        assert RunFolder(read_settings("tiny", None, [*warm_up, steps])).length_is_free is free
    for damage in ("", '{"settings": {', "[]", '{"settings": {}}', "\x80"):
        (tmp_path / RECORD).write_bytes(damage.encode("latin-1"))
        with pytest.raises(ValueError, match=f"{RECORD} must be the settings of a run .* got a damaged file: delete"):
            there.refuse_other_settings(tmp_path)


def test_a_checkpoint_is_recorded_when_all_processes_have_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "checkpoint-3"
    checkpoint.mkdir()
    waits: list[bool] = []
    monkeypatch.setattr(PartialState, "wait_for_everyone", lambda _: waits.append((checkpoint / RECORD).exists()))
    callback = RecordCallback(RunFolder(read_settings("tiny", None, [])))
    arguments = FocalGRPOConfig(**settings(tmp_path))
    for main_process in (False, True):  # each of them waits, and one writes
        state = TrainerState(global_step=3, is_world_process_zero=main_process)
        callback.on_save(arguments, state, TrainerControl())
        assert (checkpoint / RECORD).exists() is main_process
    assert waits == [False, False]
