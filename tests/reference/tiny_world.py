"""The tiny world enumerated literally: every completion of a prompt scored by itself, and sums written out."""

import math
from collections.abc import Collection

import torch

from fgrpo.llm.tiny_world.tokenizer import EOS, VOCABULARY


def all_log_probabilities(model, prompt: str) -> dict[str, float]:
    """Log-probability of each of the 1,000 answers and the end after it, one causal row per answer."""
    answers = [f"{number:03d}" for number in range(1000)]
    ids = torch.tensor([[VOCABULARY[c] for c in prompt + answer] + [VOCABULARY[EOS]] for answer in answers])
    with torch.inference_mode():
        scores = torch.log_softmax(model(input_ids=ids).logits.double(), dim=-1)
    found = {}
    for row, answer in enumerate(answers):
        found[answer] = sum(
            float(scores[row, position - 1, ids[row, position]]) for position in range(len(prompt), ids.shape[1])
        )
    return found


def opening_probabilities(model, prompt: str) -> dict[str, float]:
    """Probability of each of the 1,000 answers as the first three tokens, whatever follows."""
    answers = [f"{number:03d}" for number in range(1000)]
    ids = torch.tensor([[VOCABULARY[c] for c in prompt + answer] for answer in answers])
    with torch.inference_mode():
        scores = torch.log_softmax(model(input_ids=ids).logits.double(), dim=-1)
    return {
        answer: math.exp(
            sum(float(scores[row, position - 1, ids[row, position]]) for position in range(len(prompt), ids.shape[1]))
        )
        for row, answer in enumerate(answers)
    }


def literal_measures(
    before: dict[str, float], after: dict[str, float], correct: Collection[str], rare: Collection[str]
) -> dict[str, float]:
    """The numbers of one prompt from log-probabilities of all its answers."""
    start = {answer: math.exp(before[answer]) for answer in correct}
    now = {answer: math.exp(after[answer]) for answer in correct}
    start_mass, mass = sum(start.values()), sum(now.values())
    entropy = -sum(p / mass * math.log(p / mass) for p in now.values())
    common = [answer for answer in correct if answer not in rare]
    return {
        "correct_mass": mass,
        "rare_mass": sum(now[answer] for answer in rare),
        "retained_mass": sum(min(start[answer], now[answer]) for answer in correct) / start_mass,
        "correct_entropy": entropy,
        "effective_number": math.exp(entropy),
        "correct_overlap": sum(min(start[answer] / start_mass, now[answer] / mass) for answer in correct),
        "delta_nll_rare": sum(before[answer] - after[answer] for answer in rare) / len(rare),
        "delta_nll_common": sum(before[answer] - after[answer] for answer in common) / len(common),
    }
