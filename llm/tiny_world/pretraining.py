"""The base model of the tiny world: supervised training towards a distribution that is known exactly.

Success rates from .05 to .9 so that groups are active, correct answers of which three are common and the others rare,
and wrong answers that cluster: what reinforcement learning then does to the rare ones can be watched.
"""

import hashlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from torch.nn.functional import log_softmax
from transformers import PreTrainedModel

from fgrpo.llm.tiny_world.model import build_model
from fgrpo.llm.tiny_world.task import SUMS, prompts
from fgrpo.llm.tiny_world.tokenizer import EOS, VOCABULARY, build_tokenizer
from fgrpo.theory._validation import FloatArray

SUCCESS_RATES = (0.05, 0.15, 0.25, 0.35, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.72, 0.75, 0.78, 0.8, 0.85, 0.9)
"""Success rates of the 16 prompts under the base distribution, in an order drawn from the seed."""
COMMON_SHARES = (4 / 7, 2 / 7, 1 / 7)
"""How the three common correct answers of a prompt share its common mass."""
RARE_FRACTION = 0.15
"""Share of a prompt's correct mass on all other correct answers."""
WRONG_ATTRACTORS = 8
_UNIFORM_WRONG = 0.3  # share of the wrong mass that is spread over all wrong answers
_DIGITS = 10
_BATCH = 256


def base_distribution(seed: int = 0) -> FloatArray:
    """Probabilities of the 1,000 answers of every prompt, which the base model is trained to have.

    Args:
        seed: Seed of the order of success rates and of which answers are common.

    Returns:
        Shape (16, 10, 10, 10): prompt, first, second and third digit; each prompt sums to 1.

    Source: this project.
    """
    generator = np.random.default_rng(seed)
    rates = generator.permutation(SUCCESS_RATES)
    digit_sums = np.add.outer(np.add.outer(np.arange(_DIGITS), np.arange(_DIGITS)), np.arange(_DIGITS)).reshape(-1)
    base = np.zeros((len(SUMS), _DIGITS**3))
    for row, rate, total in zip(base, rates, SUMS, strict=True):
        correct = generator.permutation(np.flatnonzero(digit_sums == total))
        wrong = generator.permutation(np.flatnonzero(digit_sums != total))
        common, rare = np.split(correct, [len(COMMON_SHARES)])
        row[common] = rate * (1 - RARE_FRACTION) * np.array(COMMON_SHARES)
        row[rare] = rate * RARE_FRACTION / len(rare)
        row[wrong] = (1 - rate) * _UNIFORM_WRONG / len(wrong)
        row[wrong[:WRONG_ATTRACTORS]] += (1 - rate) * (1 - _UNIFORM_WRONG) / WRONG_ATTRACTORS
    return base.reshape(-1, *[_DIGITS] * 3)


def pretrained_model(seed: int = 0, steps: int = 400) -> PreTrainedModel:
    """The model of the tiny world after supervised training towards `base_distribution`.

    A step takes 256 pairs of first digits drawn from the base distribution; the third digit enters by its whole
    distribution, which is quieter than a draw.

    Args:
        seed: Seed of weights, base distribution and draws.
        steps: Optimizer steps (AdamW, 3e-3, one cycle).

    Returns:
        The model, in evaluation mode.

    Source: this project.
    """
    base = torch.tensor(base_distribution(seed), dtype=torch.float32)
    pairs_PA = base.sum(-1).flatten(1)
    prompt_ids = torch.tensor([[VOCABULARY[character] for character in prompt] for prompt in prompts()])
    digit_ids = torch.tensor([VOCABULARY[str(digit)] for digit in range(_DIGITS)])
    model = build_model(seed)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.arange(_BATCH)
    for _ in range(steps):
        of_prompt = torch.randint(len(SUMS), (_BATCH,), generator=generator)
        pairs = torch.multinomial(pairs_PA[of_prompt], 1, generator=generator).squeeze(1)
        first, second = pairs // _DIGITS, pairs % _DIGITS
        third_BA = base[of_prompt, first, second] / base[of_prompt, first, second].sum(-1, keepdim=True)
        third = torch.multinomial(third_BA, 1, generator=generator).squeeze(1)
        digits = torch.stack([first, second, third], dim=1)
        logits = model(input_ids=torch.cat([prompt_ids[of_prompt], digit_ids[digits]], dim=1)).logits
        log_probability = log_softmax(logits[:, prompt_ids.shape[1] - 1 :], dim=-1)  # of the digits and the end
        loss = -(
            log_probability[rows, 0, digit_ids[first]]
            + log_probability[rows, 1, digit_ids[second]]
            + (third_BA * log_probability[:, 2, digit_ids]).sum(-1)
            + log_probability[rows, 3, VOCABULARY[EOS]]
        ).mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
    model.eval()
    return model


def base_model_folder(
    seed: int = 0, steps: int = 400, *, cache: Path | None = None, announce: Callable[[str], object] | None = None
) -> Path:
    """Folder with the pretrained model and its tokenizer, made on first use and kept.

    Processes that ask at the same time wait for the one that makes it. The folder's name has a digest of this module,
    so that a change of it makes a new model.

    Args:
        seed: Seed of `pretrained_model`.
        steps: Steps of `pretrained_model`.
        cache: Where to keep it; default: `fgrpo` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache).
        announce: What takes a line before the model is made, which takes a while.

    Returns:
        The folder; `from_pretrained` takes it.

    Raises:
        ValueError: If it must be made and torch.distributed runs already: transformers then saves on one process only.

    Source: this project.
    """
    root = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fgrpo"
    digest = hashlib.sha256(inspect.getsource(inspect.getmodule(base_model_folder)).encode()).hexdigest()[:12]  # type: ignore[arg-type]
    folder = root / f"tiny-{seed}-{steps}-{digest}"
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            if torch.distributed.is_available() and torch.distributed.is_initialized():
                raise ValueError(
                    f"the base model must be made before torch.distributed starts, got none in {folder}: "
                    "call base_model_folder first"
                )
            if announce is not None:
                announce(f"supervised training of the base model, once: {folder}")
            made = Path(tempfile.mkdtemp(dir=root))
            try:
                pretrained_model(seed, steps).save_pretrained(made)
                build_tokenizer().save_pretrained(made)
                made.rename(folder)  # in one go: a folder of that name is complete
            finally:
                shutil.rmtree(made, ignore_errors=True)
    return folder
