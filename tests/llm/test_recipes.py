"""Recipe files against the presets, and the reading of files and arguments against TRL's own parser."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate.commands.config.config_args import load_config_from_file
from trl import DatasetMixtureConfig, ModelConfig, TrlParser
from trl.scripts.grpo import GRPOScriptArguments

from fgrpo.llm import FocalGRPOConfig
from fgrpo.llm.launch import is_launched, is_main_process, running_processes
from fgrpo.llm.presets import METHODS, preset, tiny_preset
from fgrpo.llm.recipe_files import ADDITIONS, FOLDER, LAUNCHES, RECIPES, read_layers, read_yaml, recipe_texts, yaml_line
from fgrpo.llm.settings import Settings, read_settings

PRESETS = {"tiny": tiny_preset(), **{method: preset(method) for method in METHODS}}

TRL_FILE = """\
env:
  FGRPO_TEST_VARIABLE: 7
model_name_or_path: some/model
dtype: bfloat16
lora_target_modules: [q_proj, v_proj]
use_peft: true
reward_funcs:
  - accuracy_reward
  - think_format_reward
reward_weights: [1, 0.5]
dataset_name: some/data
learning_rate: 1e-6
save_steps: 20
num_generations: 4
per_device_train_batch_size: 2
gradient_accumulation_steps: 2
use_cpu: true
bf16: false
gradient_checkpointing: no
scale_rewards: false
generation_kwargs: {top_k: 5}
model_init_kwargs: {use_cache: false}
max_completion_length: 64
epsilon_high: null
report_to: none
output_dir: some/folder
"""


def test_files_are_written_from_the_presets() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yaml")}
    assert found == recipe_texts() | {f"{name}.yaml": found[f"{name}.yaml"] for name in ADDITIONS}
    assert {path.stem for path in (FOLDER / "accelerate").iterdir()} == set(LAUNCHES)


@pytest.mark.parametrize("name", RECIPES)
def test_a_file_holds_what_its_preset_holds(name: str) -> None:
    assert yaml.safe_load((FOLDER / f"{name}.yaml").read_text()) == dict(PRESETS[name].keys)
    assert PRESETS[name].notes.keys() & PRESETS[name].keys.keys()


def test_every_note_has_a_key() -> None:
    used = {key for recipe in PRESETS.values() for key in recipe.keys} | {"chat_template_kwargs"}
    assert {key for recipe in PRESETS.values() for key in recipe.notes} <= used


@pytest.mark.parametrize("name", ADDITIONS)
def test_additions_have_keys_of_trl(name: str) -> None:
    keys = read_yaml(FOLDER / f"{name}.yaml").keys()
    assert keys <= {field.name for field in dataclasses.fields(FocalGRPOConfig)}


@pytest.mark.parametrize(("name", "kind"), [("fsdp2", "FSDP"), ("zero3", "DEEPSPEED")])
def test_accelerate_takes_the_launch_files(name: str, kind: str) -> None:
    config = load_config_from_file(str(FOLDER / "accelerate" / f"{name}.yaml"))
    assert (config.distributed_type, config.num_processes, config.mixed_precision) == (kind, 8, "bf16")


def test_a_file_of_trl_means_what_it_means_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "trl.yaml"
    file.write_text(TRL_FILE)
    overrides = ["--learning_rate", "2e-6", "--num-iterations", "2", "--success_reward=accuracy_reward"]
    monkeypatch.setenv("FGRPO_TEST_VARIABLE", "before")
    kinds = (GRPOScriptArguments, FocalGRPOConfig, ModelConfig, DatasetMixtureConfig)
    expected = TrlParser(kinds).parse_args_and_config(["--config", str(file), *overrides])
    monkeypatch.setenv("FGRPO_TEST_VARIABLE", "before")
    settings = read_settings(str(file), None, overrides)
    assert os.environ["FGRPO_TEST_VARIABLE"] == "7"
    for kind, theirs in zip(kinds, expected, strict=True):
        ours = settings.build(kind)
        for field in dataclasses.fields(kind):
            if field.init and field.name not in ("local_rank", "logging_dir"):
                assert getattr(ours, field.name) == getattr(theirs, field.name), field.name


def test_later_files_and_the_command_line_win(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("learning_rate: 0.1\nbeta: 0.1\nseed: 1\n")
    (tmp_path / "two.yml").write_text("beta: 0.2\nseed: 2\n")
    settings = read_settings(f"tiny,{tmp_path}/one.yaml,{tmp_path}/two.yml", None, ["--seed", "3"])
    assert [settings.get(key) for key in ("learning_rate", "beta", "seed")] == [0.1, 0.2, 3]
    assert settings.get("max_steps") == tiny_preset().keys["max_steps"]
    assert settings.get("num_iterations") == 1  # TRL's default


def test_a_recipe_by_name_fits_the_model_the_group_and_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    settings = read_settings("focal_cispo,vllm_server", "llama-3.2-3b-instruct", ["--num_generations", "16"])
    assert settings.values["focal_gamma"] == 0.5
    assert settings.values["vllm_mode"] == "server"
    assert settings.batches.prompts_per_generation == 256
    assert settings.batches.updates_per_generation == 4
    # per device as asked for, and the batch kept
    assert read_settings("grpo", None, ["--per_device_train_batch_size", "8"]).batches.prompts_per_update == 64
    with pytest.raises(ValueError, match="must divide the rollouts of an update on a device, got 3: pass 2"):
        read_settings("grpo", None, ["--per_device_train_batch_size", "3"])


def test_a_recipe_as_a_file_is_taken_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    settings = read_settings(str(FOLDER / "focal_grpo.yaml"), None, ["--num_generations", "16"])
    assert settings.batches.prompts_per_generation == 256 * 4 // 16 * 8 // 16


def test_the_model_of_any_configuration() -> None:
    assert read_settings("tiny", "qwen2.5-7b", []).get("model_name_or_path") == "Qwen/Qwen2.5-7B"
    assert read_settings("tiny", "some/model", []).get("model_name_or_path") == "some/model"


def test_arguments_of_accelerate_are_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("num_processes: 4\n")
    settings = read_settings(f"tiny,{tmp_path}/mine.yaml", None, ["--mixed_precision=no", "--main_process_port", "1"])
    assert settings.launch == ("--num_processes", "4", "--mixed_precision", "no", "--main_process_port", "1")
    assert (settings.world_size, settings.processes_to_start) == (4, 4)
    settings = read_settings("focal_grpo", None, ["--accelerate_config", "fsdp2"])
    assert settings.launch == ("--config_file", str(FOLDER / "accelerate" / "fsdp2.yaml"))
    assert settings.world_size == 8
    assert settings.batches.prompts_per_generation == 256


def test_flags_of_accelerate_are_on_or_off(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("multi_gpu: false\nmodule: true\nuse_deepspeed: no\nnum_machines: 1\n")
    assert read_settings(f"tiny,{tmp_path}/mine.yaml", None, []).launch == ("--module", "--num_machines", "1")


def test_a_cluster_that_sets_world_size_alone_has_launched_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    assert (is_launched(), is_main_process()) == (False, True)
    settings = read_settings("tiny", None, [])
    assert (settings.world_size, settings.processes_to_start) == (1, 1)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert (is_launched(), is_main_process(), running_processes()) == (True, False, 4)


def test_a_launch_that_started_fewer_processes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FGRPO_LAUNCHED", "1")  # and no WORLD_SIZE: what accelerate does on a CPU
    with pytest.raises(ValueError, match="num_processes must be the processes that run, got 2 where 1 run"):
        read_settings("tiny", None, ["--num_processes", "2"])
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert read_settings("tiny", None, ["--num_processes", "2"]).world_size == 2


BAD_ARGUMENTS = [
    ("focal_grp", [], "--config must be one of .* did you mean 'focal_grpo'"),
    ("none.yaml", [], "--config must be a file that exists, got 'none.yaml'"),
    ("vllm_server,tiny", [], "a recipe must come first in --config"),
    ("tiny", ["--learning_rat", "1"], "got 'learning_rat': did you mean learning_rate"),
    ("tiny", ["--zzz"], "got 'zzz': TRL's GRPOConfig lists the keys"),
    ("tiny", ["stray"], "arguments must be --key value, got 'stray'"),
    ("tiny", ["--max_steps", "x"], "invalid int value: 'x'"),
    ("tiny", ["--optim", "x"], "argument --optim: invalid choice: 'x': see"),
    ("tiny", ["--num_processes"], "argument --num_processes/--num-processes: expected one argument: see accelerate"),
    (
        "tiny",
        ["--num_processes", "x"],
        "argument --num_processes/--num-processes: invalid int value: 'x': see accelerate",
    ),
    ("tiny", ["--num_processes", "0"], "num_processes must be a whole number of at least 1, got 0"),
    ("tiny", ["--accelerate_config"], "accelerate_config must be fsdp2, zero3, .* got ''"),
    ("tiny", ["--accelerate_config", "none"], "accelerate_config must be fsdp2, zero3"),
]


@pytest.mark.parametrize(("config", "arguments", "message"), BAD_ARGUMENTS)
def test_refuses_arguments(config: str, arguments: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_settings(config, None, arguments)
    assert "\n" not in str(caught.value)


BAD_FILES = [
    ("a: [", "must be YAML, got damage"),
    ("- a", r"must be a YAML mapping, got \['a'\]"),
    ("1: a", "must be a YAML mapping"),
    ("env: 3", "env in .* must be a mapping, got 3"),
    ("lerning_rate: 1", "got 'lerning_rate': did you mean learning_rate"),
    ("num_generations: 2.5", "invalid int value: '2.5'"),
    ("num_generations: true", "invalid int value: 'True'"),
    ("bf16: 3", "Truthy value expected"),
]


@pytest.mark.parametrize(("content", "message"), BAD_FILES)
def test_refuses_files(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_settings(str(tmp_path / "bad.yaml"), None, [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps_per_generation": 2, "generation_batch_size": 64}, "must not come together, got 2 and 64"),
        ({"generation_batch_size": 100}, "multiple of 64 per device x 1 process, got 100: pass 128"),
        ({"num_generations": None}, "num_generations must be at least 2, got None"),
    ],
)
def test_refuses_batches(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _ = Settings({**tiny_preset().keys, **changes}, (), 1).batches


def test_generation_batch_size_is_counted_like_steps() -> None:
    settings = Settings({**tiny_preset().keys, "generation_batch_size": 256}, (), 1)
    assert settings.batches.steps_per_generation == 4


@pytest.mark.parametrize(
    "value", [1e-6, 0.5, 3, "text", "a: b", "1e-6", True, None, [1, "x"], {"a": [1, None]}, "", "# no"]
)
def test_a_line_of_yaml_reads_back(value: Any) -> None:
    line = yaml_line("key", value)
    assert "\n" not in line
    assert yaml.safe_load(line) == {"key": value}


def test_layers_keep_the_environment_apart(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("env:\n  A: 1\n  B: x\nseed: 1\n")
    (tmp_path / "b.yaml").write_text("env: {A: 2}\n")
    layers = read_layers(f"{tmp_path}/a.yaml,{tmp_path}/b.yaml")
    assert (layers.recipe, dict(layers.values), dict(layers.environment)) == (None, {"seed": 1}, {"A": "2", "B": "x"})
