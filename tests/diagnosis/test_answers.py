r"""Answers out of texts and chat lists: what counts as the same, and what a prompt is."""

import pytest

from fgrpo.diagnosis.answers import NO_ANSWER, boxed_code, code, identity, normal, readable, text_code


@pytest.mark.parametrize("written", [r"\dfrac{1}{2}", r" $\frac{1}{2}$ ", r"\left\frac{1}{ 2}\right", r"\frac{1}{2}."])
def test_answers_that_look_different_are_the_same(written: str) -> None:
    assert normal(written) == r"\frac{1}{2}"
    assert boxed_code(rf"\boxed{{{written}}}") == boxed_code(r"well, \boxed{\frac{1}{2}}")


def test_codes_tell_answers_apart() -> None:
    assert boxed_code("no box") == NO_ANSWER
    assert boxed_code(r"\boxed{3} and then \boxed{4") == NO_ANSWER  # cut: what it meant is not known
    assert boxed_code(r"\boxed{0.5}") != boxed_code(r"\boxed{1/2}")  # no algebra
    assert text_code(" a b\n") == text_code("a b") != text_code("ab")
    assert len({code(str(i)) for i in range(10_000)}) == 10_000
    assert all(0 <= code(str(i)) < 2**63 for i in range(100))
    assert code("\ud800") >= 0  # a lone surrogate, as broken UTF-8 gives


def test_texts_of_chats() -> None:
    chat = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "2+2"},
        {"role": "assistant", "content": [{"type": "image"}, {"type": "text", "text": "4"}]},
        {"role": "assistant", "content": None, "tool_calls": []},
    ]
    assert readable(chat, "user") == "2+2"
    assert readable(chat, "assistant") == "4\n"
    assert readable([{"content": "no role"}], "user") == "no role"
    assert readable({"role": "user", "content": "one"}, "user") == "one"
    assert readable("text", "user") == "text"
    assert readable(7, "user") == "7"
    assert readable(None, "assistant") == ""


def test_identity_of_prompts() -> None:
    one = [{"role": "user", "content": "a"}]
    filled_by_parquet = [{"content": "a", "role": "user", "tool_calls": None}]
    assert identity(one) == identity(filled_by_parquet)
    assert identity(one) != identity([{"role": "system", "content": "a"}])
    assert identity("a") == "a"
