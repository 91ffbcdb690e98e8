"""Log-probabilities of given completions under a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray


def completion_nlls(
    model: Any, prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], *, batch_size: int = 8
) -> FloatArray:
    """Negative log-likelihood of each completion given its prompt, summed over the completion's tokens.

    At temperature 1, whatever the completions were drawn at. A batch is padded on the right, where a causal model does
    not look; each token's probability is normalised in float32, or in the model's own format if that is wider.

    Args:
        model: A causal language model.
        prompts: The prompts as tokens, one per completion.
        completions: The completions as tokens, with the token that ended them; at least one token each.
        batch_size: Completions scored at a time, >= 1.

    Returns:
        -ln p(completion | prompt) in nats, >= 0, shape (completions,), float64.

    Raises:
        ValueError: If there are not as many prompts as completions, one of them has no tokens, a token is not in the
            model's vocabulary, or a batch exceeds the GPU's memory.

    Source: Appendix M (v2).
    """
    import torch

    size = int(check.scalar("batch_size", check.whole("batch_size", batch_size, 1, "pass a count")))
    if len(prompts) != len(completions) or any(map(_empty, (*prompts, *completions))):
        raise ValueError(
            f"each completion must have its prompt, and both tokens, got {len(prompts)} and {len(completions)}: "
            "pass sequences of tokens"
        )
    vocabulary = model.get_input_embeddings().weight.shape[0]
    highest = max((max(sequence) for sequence in (*prompts, *completions)), default=0)
    if highest >= vocabulary:
        raise ValueError(
            f"tokens must be below the model's vocabulary of {vocabulary}, got {highest}: it has another tokenizer"
        )
    nlls = np.zeros(len(prompts))
    for start in range(0, len(prompts), size):
        batch = slice(start, start + size)
        try:
            nlls[batch] = _batch(model, prompts[batch], completions[batch])
        except torch.OutOfMemoryError:
            raise ValueError(f"batch_size must fit the memory, got {size}: pass a smaller --batch-size") from None
    return nlls


def _empty(sequence: Sequence[int]) -> bool:
    return len(sequence) == 0


def _batch(model: Any, prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]]) -> list[float]:
    import torch

    rows = [[*prompt, *completion] for prompt, completion in zip(prompts, completions, strict=True)]
    width = max(map(len, rows))
    ids_BT = torch.zeros((len(rows), width), dtype=torch.long)
    mask_BT = torch.zeros_like(ids_BT)
    for i, row in enumerate(rows):
        ids_BT[i, : len(row)] = torch.tensor(row)
        mask_BT[i, : len(row)] = 1
    with torch.inference_mode():
        logits_BTV = model(
            input_ids=ids_BT.to(model.device), attention_mask=mask_BT.to(model.device), use_cache=False
        ).logits
        return [
            _sequence_nll(logits_TV[len(prompt) - 1 : len(row) - 1], completion)
            for logits_TV, prompt, completion, row in zip(logits_BTV, prompts, completions, rows, strict=True)
        ]


def _sequence_nll(logits_TV: Any, completion: Sequence[int]) -> float:
    """Of one completion, from the logits of the places before its tokens."""
    import torch

    wide = logits_TV.to(torch.promote_types(logits_TV.dtype, torch.float32))
    of_token = wide.gather(1, torch.tensor(completion, device=wide.device)[:, None])[:, 0]
    nll_T = (torch.logsumexp(wide, dim=-1) - of_token).double()
    return float(nll_T.clamp(min=0.0).sum())  # rounding can leave a certain token below 0
