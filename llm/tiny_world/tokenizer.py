"""The character-level tokenizer of the tiny world, built in code."""

from collections.abc import Mapping
from types import MappingProxyType

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD, EOS, UNK = "<pad>", "<eos>", "<unk>"
VOCABULARY: Mapping[str, int] = MappingProxyType(
    {token: i for i, token in enumerate((PAD, EOS, UNK, *"0123456789", ":", "a", "x"))}
)
"""Token -> id: three special tokens, ten digits, the colon, and one letter for each family of prompts."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Tokenizer with one token per character of `VOCABULARY`; any other character is the unknown token.

    Returns:
        A tokenizer that pads on the left, as generation needs it. Load a saved one with
        `PreTrainedTokenizerFast.from_pretrained`: `AutoTokenizer` takes the class from the model's configuration and
        drops unknown characters silently.

    Source: this project.
    """
    tokenizer = Tokenizer(models.WordLevel(dict(VOCABULARY), unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, unk_token=UNK, padding_side="left"
    )
