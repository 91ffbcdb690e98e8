"""The base model of the tiny world: supervised training towards a distribution that is known exactly.

Success rates from .05 to .9 so that groups are active, correct answers of which three are common and the others rare,
and wrong answers that cluster: what reinforcement learning then does to the rare ones can be watched.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from transformers import PreTrainedModel

from fgrpo.llm.tiny_world.model import build_model
from fgrpo.llm.tiny_world.task import FAMILIES, SUMS, prompts
from fgrpo.llm.tiny_world.tokenizer import build_tokenizer
from fgrpo.llm.tiny_world.tree import DIGITS, digit_log_probabilities
from fgrpo.theory._validation import FloatArray

SUCCESS_RATES = (0.05, 0.15, 0.25, 0.35, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.72, 0.75, 0.78, 0.8, 0.85, 0.9)
"""Success rates of the 16 prompts under the base distribution, in an order drawn from the seed."""
COMMON_SHARES = (4 / 7, 2 / 7, 1 / 7)
"""How the three common correct answers of a prompt share its common mass."""
RARE_FRACTION = 0.15
"""Share of a prompt's correct mass on all other correct answers."""
WRONG_ATTRACTORS = 8
_UNIFORM_WRONG = 0.3  # share of the wrong mass that is spread over all wrong answers
_LEARNING_RATE = 1e-2
_ENDINGS = 8  # answers after which a step learns the end token


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
    digit_sums = np.add.outer(np.add.outer(np.arange(DIGITS), np.arange(DIGITS)), np.arange(DIGITS)).reshape(-1)
    base = np.zeros((len(SUMS), DIGITS**3))
    for row, rate, total in zip(base, rates, SUMS, strict=True):
        correct = generator.permutation(np.flatnonzero(digit_sums == total))
        wrong = generator.permutation(np.flatnonzero(digit_sums != total))
        common, rare = np.split(correct, [len(COMMON_SHARES)])
        row[common] = rate * (1 - RARE_FRACTION) * np.array(COMMON_SHARES)
        row[rare] = rate * RARE_FRACTION / len(rare)
        row[wrong] = (1 - rate) * _UNIFORM_WRONG / len(wrong)
        row[wrong[:WRONG_ATTRACTORS]] += (1 - rate) * (1 - _UNIFORM_WRONG) / WRONG_ATTRACTORS
    return base.reshape(-1, *[DIGITS] * 3)


def pretrained_model(seed: int = 0, steps: int = 400) -> PreTrainedModel:
    """The model of the tiny world after supervised training towards `base_distribution`.

    A step takes the exact cross-entropy over all digits of the 16 prompts of one family, the families `a` and `x` in
    turn: both have the same base distribution, so that what is trained on one can be watched on the other. The end
    token is learned after a few answers drawn at random.

    Args:
        seed: Seed of weights, base distribution and draws.
        steps: Optimizer steps (AdamW, 1e-2, one cycle).

    Returns:
        The model, in evaluation mode. After 400 steps it is .01 to .02 nats from the base distribution.

    Source: this project.
    """
    base = torch.tensor(base_distribution(seed), dtype=torch.float32)
    model = build_model(seed)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=_LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=_LEARNING_RATE, total_steps=steps)
    generator = np.random.default_rng(seed)
    for step in range(steps):
        answers = generator.integers(DIGITS**3, size=_ENDINGS)
        third_digits = np.tile(answers % DIGITS, (len(SUMS), 1))
        learned = digit_log_probabilities(model, prompts(FAMILIES[step % 2]), answers // DIGITS, third_digits)
        loss = -(
            (base.sum((2, 3)) * learned.first).sum()
            + (base.sum(3) * learned.second).sum()
            + (base * learned.third).sum()
            + learned.end.mean(dim=1).sum()
        ) / len(SUMS)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    return model


def base_model_folder(
    seed: int = 0, steps: int = 400, *, cache: Path | None = None, announce: Callable[[str], object] | None = None
) -> Path:
    """Folder with the pretrained model and its tokenizer, made on first use and kept.

    Processes that ask at the same time wait for the one that makes it. The folder's name has a digest of the modules
    that make the model, so that a change of one of them makes a new model.

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
    folder = root / f"tiny-{seed}-{steps}-{_digest_of_sources()}"
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


def _digest_of_sources() -> str:
    here = Path(__file__)
    sources = [here.with_stem(stem).read_bytes() for stem in ("model", "pretraining", "task", "tokenizer", "tree")]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:12]
