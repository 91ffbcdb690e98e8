"""All answers of a prompt in one sequence: a tree of digits that attention follows from each token to its ancestors.

The 1,000 answers share their beginnings, so that a forward pass over them one by one computes the same keys again and
again. Here the tokens of a prompt, its 10 first digits, the 100 pairs of digits and some third digits stand in one row;
each attends to the prompt and to the digits before it on its own branch and has the position that it has there.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import log_softmax

from fgrpo.llm.tiny_world.tokenizer import EOS, VOCABULARY

DIGITS = 10
PAIRS = DIGITS**2


class DigitLogProbabilities(NamedTuple):
    """Log-probabilities of what follows on each node of the tree, P prompts; differentiable where the model is.

    Attributes:
        first: Of the first digit, [P, 10].
        second: Of the second digit, by the first, [P, 10, 10].
        third: Of the third digit, by the two before it, [P, 10, 10, 10].
        end: Of the end token after each leaf (two digits and a third one), [P, L].
    """

    first: torch.Tensor
    second: torch.Tensor
    third: torch.Tensor
    end: torch.Tensor


def digit_log_probabilities(
    model: Any, prompts: Sequence[str], leaf_pair_L: NDArray[np.int64], leaf_digit_PL: NDArray[np.int64]
) -> DigitLogProbabilities:
    """Log-probabilities on the tree of digits of some prompts, by one forward pass.

    Args:
        model: A causal model of the tiny world that takes a mask [P, 1, n, n]; its precision is that of the result.
        prompts: Prompts of four tokens, on which the tree stands.
        leaf_pair_L: Leaves: the two digits before the third one, as a number in 0..99.
        leaf_digit_PL: The third digit of each leaf, by prompt.

    Returns:
        The log-probabilities, of digits and the end among the whole vocabulary.

    Source: this project.
    """
    prompt_ids = torch.tensor([[VOCABULARY[character] for character in prompt] for prompt in prompts])
    digit_ids = torch.tensor([VOCABULARY[str(digit)] for digit in range(DIGITS)])
    rows, length = prompt_ids.shape
    first, second = length, length + DIGITS  # where the digits of each level begin
    third = second + PAIRS
    parents = [
        *range(-1, length - 1),
        *[length - 1] * DIGITS,
        *(first + pair // DIGITS for pair in range(PAIRS)),
        *(second + int(pair) for pair in leaf_pair_L),
    ]
    attends = _ancestors(parents)
    token_ids = torch.cat(
        [
            prompt_ids,
            digit_ids.expand(rows, -1),
            digit_ids.repeat(DIGITS).expand(rows, -1),
            digit_ids[torch.as_tensor(leaf_digit_PL)],
        ],
        dim=1,
    )
    logits = model(
        input_ids=token_ids,
        attention_mask=attends.expand(rows, 1, -1, -1),
        position_ids=(attends.sum(-1) - 1).expand(rows, -1),
        use_cache=False,
    ).logits
    following = log_softmax(logits, dim=-1)
    digits = following[..., digit_ids]
    return DigitLogProbabilities(
        first=digits[:, length - 1],
        second=digits[:, first:second],
        third=digits[:, second:third].reshape(rows, DIGITS, DIGITS, DIGITS),
        end=following[:, third:, VOCABULARY[EOS]],
    )


def _ancestors(parents: Sequence[int]) -> torch.Tensor:
    """Whether a node (row) attends to another one (column): to itself and all above it; parents come first."""
    attends = torch.eye(len(parents), dtype=torch.bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            attends[node] |= attends[parent]
    return attends
