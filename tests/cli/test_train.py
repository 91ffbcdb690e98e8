"""`fgrpo train` at the command line: what it says without starting anything, and that it stays light."""

import os
import subprocess
import sys
from typing import Any

import pytest
from accelerate.commands import launch as accelerate_launch

from fgrpo.cli import main
from fgrpo.commands.train import HINTS
from fgrpo.llm.presets import MODELS
from fgrpo.llm.recipe_files import LAUNCHES, RECIPES
from fgrpo.llm.settings import read_settings


def test_help_needs_no_torch() -> None:
    code = (
        "import sys\nfrom fgrpo.cli import main\nmain(['train', '--help'])\n"
        "assert not {'torch', 'trl', 'transformers', 'datasets', 'yaml'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for option in ("--config", "--model", "--dry-run", "--recipes", "--overwrite", "--resume", "--quiet"):
        assert option in done.stdout


def test_recipes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    count = len(RECIPES)
    assert [line.split()[0] for line in lines[:count]] == list(RECIPES)
    assert lines[count].endswith("--config focal_grpo,vllm_colocate:")
    assert lines[count + 1 : count + 3] == [
        "vllm_colocate        vLLM inside the training processes",
        "vllm_server          vLLM on devices of its own",
    ]
    assert [
        line.split(": ")[1].split(", ")[: len(names)]
        for line, names in zip(lines[-2:], (MODELS, LAUNCHES), strict=True)
    ] == [
        list(MODELS),
        list(LAUNCHES),
    ]


def test_without_the_extra_it_says_which_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("fgrpo.llm.settings")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "trl", None)
    assert main(["train"]) == 2
    assert capsys.readouterr().err == (
        "fgrpo: fgrpo train needs the extra llm, got no module trl: "
        "pip install -c constraints.txt -e '.[llm]' in the checkout\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "focal"], "fgrpo: --config must be one of tiny, grpo"),
        (["--config"], "fgrpo: Option '--config' requires an argument"),
        (
            ["--learning_rte", "1"],
            "fgrpo: every key must be one of TRL's or a focal one, got 'learning_rte': did you mean",
        ),
        (
            ["--out", "x"],
            "fgrpo: every key must be one of TRL's or a focal one, got --out: TRL's name for it is --output_",
        ),
        (
            ["--group-size=4"],
            "fgrpo: every key must be one of TRL's or a focal one, got --group-size: TRL's name for it",
        ),
        (["focal_grpo"], "fgrpo: arguments must be --key value, got 'focal_grpo': did you mean --config focal_grpo?"),
        (["my.yaml"], "fgrpo: arguments must be --key value, got 'my.yaml': did you mean --config my.yaml?"),
        (["focal"], "fgrpo: arguments must be --key value, got 'focal': write which key it belongs to"),
        (["--config", "focal_grpo", "--model"], "fgrpo: Option '--model' requires an argument"),
    ],
)
def test_bad_arguments_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["train", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", HINTS)
def test_hints_are_no_keys_and_name_keys(name: str) -> None:
    with pytest.raises(ValueError, match=f"got '{name}'"):
        read_settings("tiny", None, [f"--{name}", "1"])
    key = HINTS[name].split()[0].removeprefix("--")
    if key != "config":
        read_settings("tiny", None, [f"--{key}", "1"])


def test_launch_arguments_start_the_same_command_in_their_processes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    inherited: list[str] = []

    def starts(arguments: Any) -> None:
        started.append(arguments)
        inherited.append(os.environ["FGRPO_LAUNCHED"])

    monkeypatch.setattr(accelerate_launch, "launch_command", starts)
    command = ["train", "--num_processes", "4", "--seed", "3", "--overwrite", "--mixed_precision=no"]
    assert main([*command, "--config", "tiny"]) == 0
    assert (started[0].num_processes, started[0].mixed_precision, started[0].module) == (4, "no", True)
    assert started[0].training_script == "fgrpo"
    passed = started[0].training_script_args
    assert passed[:4] == ["train", "--config", "tiny", "--overwrite"]
    assert {"--seed", "3", "--num_processes", "4"} <= set(passed)
    assert inherited == ["1"]
    assert "FGRPO_LAUNCHED" not in os.environ  # this process is none of those that it started

    def fails(_: Any) -> None:
        raise subprocess.CalledProcessError(2, "python")

    monkeypatch.setattr(accelerate_launch, "launch_command", fails)
    assert main(command) == 2
    assert "FGRPO_LAUNCHED" not in os.environ
    assert capsys.readouterr().err == ""  # the process that failed has said why


def test_an_interrupted_run_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fgrpo.llm import train

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "train", interrupted)
    assert main(["train"]) == 2
    assert capsys.readouterr().err.startswith("fgrpo: interrupted: --resume goes on from the latest checkpoint, ")


def test_warnings_stay_out_of_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--save_steps", "3", "--steps_per_generation", "4", "--dry-run"]) == 0
    output = capsys.readouterr()
    assert output.err.startswith("warning: save_steps=3 times gradient_accumulation_steps=1 is no multiple")
    assert "warning" not in output.out
