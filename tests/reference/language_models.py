"""A tiny model in a folder, and what it gives sequences, token by token without batches, padding or caches."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fgrpo.llm.tiny_world.model import build_model
from fgrpo.llm.tiny_world.tokenizer import build_tokenizer
from fgrpo.theory._validation import FloatArray


def save_tiny_model(folder: Path, seed: int = 0, sharpness: float = 4.0) -> Path:
    """The tiny world's model with random weights and sharpened logits, and generation defaults that would spoil it."""
    model = build_model(seed)
    with torch.no_grad():
        model.model.norm.weight *= sharpness
    model.save_pretrained(folder)
    build_tokenizer().save_pretrained(folder)
    path = folder / "generation_config.json"
    path.write_text(
        json.dumps(json.loads(path.read_text()) | {"do_sample": True, "top_k": 2, "repetition_penalty": 3.0})
    )
    return folder


def next_token_law(model: Any, ids: Sequence[int], temperature: float = 1.0) -> FloatArray:
    """Probabilities of the token after `ids`."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([list(ids)])).logits[0, -1].numpy() / temperature
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())


def two_token_law(model: Any, ids: Sequence[int], temperature: float, end: int) -> FloatArray:
    """Probabilities of the first and second token drawn; a sequence that ends at the first counts as (end, end)."""
    first = next_token_law(model, ids, temperature)
    law = np.zeros((first.size, first.size))
    for token, probability in enumerate(first):
        if token == end:
            law[end, end] = probability
        else:
            law[token] = probability * next_token_law(model, [*ids, token], temperature)
    return law


def sequence_nll(model: Any, prompt: Sequence[int], completion: Sequence[int]) -> float:
    """-ln p(completion | prompt), a forward pass for each token."""
    ids, total = list(prompt), 0.0
    for token in completion:
        total -= float(np.log(next_token_law(model, ids)[token]))
        ids.append(token)
    return total
