"""The tiny world: its tokens, its model, and which completions are correct, by counting."""

from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from fgrpo.llm.tiny_world.model import build_model
from fgrpo.llm.tiny_world.task import (
    SUMS,
    asked_sum,
    correct_completions,
    digit_sum_reward,
    is_correct,
    prompts,
    rows,
)
from fgrpo.llm.tiny_world.tokenizer import EOS, UNK, VOCABULARY, build_tokenizer


def test_tokens_are_characters(tmp_path: Path) -> None:
    tokenizer = build_tokenizer()
    ids = tokenizer("a06:123x")["input_ids"]
    assert ids == [VOCABULARY[c] for c in "a06:123x"]
    assert tokenizer.decode(ids) == "a06:123x"
    assert tokenizer("?z")["input_ids"] == [VOCABULARY[UNK]] * 2
    assert len(tokenizer) == len(VOCABULARY)
    batch = tokenizer(["a06:", "1"], padding=True)
    assert batch["attention_mask"] == [[1, 1, 1, 1], [0, 0, 0, 1]]  # generation wants the padding on the left
    tokenizer.save_pretrained(tmp_path)
    again = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert again("a06:?")["input_ids"] == tokenizer("a06:?")["input_ids"]
    assert again.eos_token_id == VOCABULARY[EOS]


def test_model_is_that_of_its_seed_and_leaves_the_global_one() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, same, other = build_model(1), build_model(1), build_model(2)
    assert torch.equal(before, torch.random.get_rng_state())
    assert sum(p.numel() for p in one.parameters()) == 83_648
    assert all(torch.equal(*pair) for pair in zip(one.parameters(), same.parameters(), strict=True))
    assert not all(torch.equal(*pair) for pair in zip(one.parameters(), other.parameters(), strict=True))
    logits = one(torch.tensor([[VOCABULARY["a"]]])).logits
    assert logits.shape == (1, 1, len(VOCABULARY))


def test_correct_completions_are_those_with_the_sum() -> None:
    counts = {total: len(list(correct_completions(total))) for total in SUMS}
    assert (min(counts.values()), max(counts.values())) == (28, 75)
    for total in SUMS:
        by_number = {f"{n:03d}" for n in range(1000) if n // 100 + n // 10 % 10 + n % 10 == total}
        assert set(correct_completions(total)) == by_number
        assert all(is_correct(total, text) for text in by_number)
    assert not any(is_correct(6, text) for text in ("", "06", "0060", "123 ", "12x", "321x", "\uff11\uff12\uff13"))
    assert is_correct(6, "123")


def test_prompts_ask_for_the_sums() -> None:
    assert [asked_sum(prompt) for prompt in prompts()] == list(SUMS)
    assert prompts("x")[0] == "x06:"
    assert rows()[-1] == {"prompt": "a21:", "answer": 21}
    for bad in ("a6:", "a06", "06:", "a06:1"):
        with pytest.raises(ValueError, match="a prompt must be a letter, two digits and a colon, got"):
            asked_sum(bad)


def test_reward_judges_text_and_end() -> None:
    texts = ["123", "123", "123", "124", "12"]
    ids = [[4, 5, 6, 1], [4, 5, 6], [4, 2, 5, 6], [4, 5, 7, 1], [4, 5, 1]]
    asked = ["a06:"] * 5
    assert digit_sum_reward(asked, texts, completion_ids=ids) == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert digit_sum_reward(asked, texts, answer=[6] * 5) == [1.0, 1.0, 1.0, 0.0, 0.0]
