"""The small Qwen2 model of the tiny world, built in code."""

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from fgrpo.llm.tiny_world.tokenizer import EOS, PAD, VOCABULARY


def build_model(
    seed: int = 0, *, hidden_size: int = 64, layers: int = 2, heads: int = 4, intermediate_size: int = 128
) -> Qwen2ForCausalLM:
    """Qwen2 model with random weights for the tokenizer of the tiny world: about 84,000 parameters by default.

    Args:
        seed: Seed of the weights; the global random state of torch is left as it was.
        hidden_size: Width, a multiple of twice `heads`.
        layers: Number of layers.
        heads: Attention heads (as many for keys and values).
        intermediate_size: Width of the feed-forward part.

    Returns:
        The model in evaluation mode, float32, on the CPU. Untrained it draws about uniformly from the vocabulary.

    Source: this project.
    """
    config = Qwen2Config(
        vocab_size=len(VOCABULARY),
        hidden_size=hidden_size,
        intermediate_size=intermediate_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=VOCABULARY[EOS],
        pad_token_id=VOCABULARY[PAD],
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
    return model.eval()
