"""Sampling and scoring of language models: draws by law, log-probabilities by brute force, models that do not load."""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import Qwen2Config, Qwen2ForCausalLM

from fgrpo.llm.data import encode
from fgrpo.llm.evaluation.backends import SamplingSettings, TransformersBackend, VLLMBackend, load_backend
from fgrpo.llm.evaluation.log_probabilities import completion_nlls
from fgrpo.llm.evaluation.models import fingerprint, load_model, load_tokenizer, trainer_step, vocabulary_digest
from fgrpo.llm.evaluation.problems import Problem, read_problems
from fgrpo.llm.evaluation.sampling import parts_of, problem_seed, sample_part
from fgrpo.llm.tiny_world.tokenizer import EOS, VOCABULARY
from reference.language_models import save_tiny_model, sequence_nll, two_token_law

END = VOCABULARY[EOS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def prompts() -> list[list[int]]:
    return [[VOCABULARY[c] for c in text] for text in ("a06:", "a1", "x21:09")]


# One test of 3 prompts at two temperatures: false alarms 6e-4 in all, were the seed drawn anew.
@pytest.mark.parametrize(("temperature", "wrong"), [(1.0, 1.3), (0.7, 1.0)])
def test_draws_of_a_padded_batch_have_the_models_law(
    folder: Path, prompts: list[list[int]], temperature: float, wrong: float
) -> None:
    settings = SamplingSettings(max_new_tokens=2, temperature=temperature, batch_size=9000)  # one batch
    tokenizer = load_tokenizer(str(folder))
    backend = load_backend("transformers", str(folder), tokenizer, settings)
    drawn = backend.generate(prompts, 3000, [5, 6, 7])
    exact = load_model(str(folder), "float64")
    for ids, completions in zip(prompts, drawn, strict=True):
        counts = np.zeros((len(VOCABULARY), len(VOCABULARY)))
        for one in completions:
            first, second = (*one.token_ids, END)[:2]
            counts[first, second] += 1
            assert one.ended == (END in one.token_ids)
            assert END not in one.token_ids[:-1]
            assert one.text == tokenizer.decode(one.token_ids, skip_special_tokens=True)
        assert goodness_of_fit(counts, two_token_law(exact, ids, temperature, END)) > 1e-4
        assert goodness_of_fit(counts, two_token_law(exact, ids, wrong, END)) < 1e-8


def goodness_of_fit(counts: np.ndarray[Any, Any], law: np.ndarray[Any, Any]) -> float:
    expected = law.ravel() * counts.sum()
    large = expected >= 5
    observed = np.append(counts.ravel()[large], counts.ravel()[~large].sum())
    expected = np.append(expected[large], expected[~large].sum())
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def test_no_token_is_left_out_of_a_large_vocabulary() -> None:
    """transformers draws from the 50 likeliest tokens unless told otherwise; here 300 are about equally likely."""
    config = Qwen2Config(
        vocab_size=300,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        eos_token_id=1,
    )
    tokenizer = SimpleNamespace(eos_token_id=1, pad_token_id=None, decode=lambda ids, skip_special_tokens: "")
    settings = SamplingSettings(max_new_tokens=1, batch_size=3000)
    backend = TransformersBackend(Qwen2ForCausalLM(config).eval(), tokenizer, settings)
    (completions,) = backend.generate([[5, 6]], 3000, [0])
    assert len({one.token_ids[0] for one in completions}) > 280


def test_draws_depend_on_their_seed_alone(folder: Path, prompts: list[list[int]]) -> None:
    settings = SamplingSettings(max_new_tokens=3, batch_size=4)
    backend = load_backend("transformers", str(folder), load_tokenizer(str(folder)), settings)
    state = torch.random.get_rng_state()
    first = backend.generate(prompts, 3, [1, 2, 3])
    assert torch.equal(state, torch.random.get_rng_state())
    assert [len(completions) for completions in first] == [3, 3, 3]
    torch.rand(7)
    assert backend.generate(prompts, 3, [1, 2, 3]) == first
    assert backend.generate(prompts, 3, [2, 2, 3]) != first


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_log_probabilities_equal_brute_force(
    folder: Path, prompts: list[list[int]], dtype: str, tolerance: float
) -> None:
    generator = np.random.default_rng(0)
    completions = [[*generator.integers(0, len(VOCABULARY), length).tolist(), END] for length in (0, 1, 5, 2, 9)]
    of_prompt = [prompts[i % 3] for i in range(5)]
    exact = load_model(str(folder), "float64")
    expected = [sequence_nll(exact, p, c) for p, c in zip(of_prompt, completions, strict=True)]
    model = load_model(str(folder), dtype)
    for batch_size in (1, 2, 5):
        nlls = completion_nlls(model, of_prompt, completions, batch_size=batch_size)
        np.testing.assert_allclose(nlls, expected, rtol=tolerance)
    shifted = completion_nlls(model, of_prompt[1:] + of_prompt[:1], completions)  # another prompt: another number
    assert np.min(np.abs(shifted / expected - 1)) > 100 * tolerance


@pytest.mark.parametrize(
    ("prompt", "completion", "words"),
    [([3], [], "both tokens"), ([], [3], "both tokens"), ([3], [99], "vocabulary of 16")],
)
def test_sequences_that_cannot_be_scored(folder: Path, prompt: list[int], completion: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        completion_nlls(load_model(str(folder)), [prompt], [completion])


def test_tokens_with_no_probability_are_infinite() -> None:
    logits = torch.tensor([[[0.0, -torch.inf], [0.0, 0.0]]])
    model: Any = Scripted(logits)
    assert completion_nlls(model, [[0]], [[1]]).tolist() == [np.inf]
    assert completion_nlls(model, [[0]], [[0]]).tolist() == [0.0]


class Scripted:
    """A model of given logits."""

    device = torch.device("cpu")

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return torch.nn.Embedding(2, 1)

    def __call__(self, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(logits=self.logits)


class StubEngine:
    """vLLM's `LLM` as its documentation has it: requests and parameters in, outputs with text and token_ids out."""

    def __init__(self, model: str, dtype: str, seed: int) -> None:
        assert (Path(model).name, dtype, seed) == ("tiny", "auto", 3)

    def generate(self, prompts: Sequence[Any], sampling_params: Sequence[Any], *, use_tqdm: bool) -> list[Any]:
        assert use_tqdm is False
        return [
            SimpleNamespace(
                outputs=[
                    SimpleNamespace(
                        text=str((parameters.seed + i) % 10),
                        token_ids=(len(prompt["prompt_token_ids"]), END),
                        finish_reason="stop" if i % 2 == 0 else "length",
                    )
                    for i in range(parameters.n)
                ]
            )
            for prompt, parameters in zip(prompts, sampling_params, strict=True)
        ]


def test_vllm_by_its_call_shape(folder: Path, prompts: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    stub = ModuleType("vllm")
    stub.LLM = StubEngine  # type: ignore[attr-defined]
    stub.SamplingParams = lambda **options: SimpleNamespace(**options)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", stub)
    backend = load_backend("vllm", str(folder), None, SamplingSettings(seed=3))
    drawn = backend.generate(prompts, 2, [40, 50, 61])
    assert [[one.text for one in completions] for completions in drawn] == [["0", "1"], ["0", "1"], ["1", "2"]]
    assert [completions[0].token_ids for completions in drawn] == [[4, END], [2, END], [6, END]]
    assert [one.ended for one in drawn[0]] == [True, False]


def test_vllm_absent_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ValueError, match=r"needs vLLM, got .*: pip install vllm, or pass --backend transformers"):
        VLLMBackend("anything", SamplingSettings())
    with pytest.raises(ValueError, match="did you mean 'vllm'"):
        load_backend("vlm", "anything", None, SamplingSettings())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"temperature": 0.0}, "temperature must be finite and above 0"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.5}, "top_p must be between 0 and 1"),
        ({"max_new_tokens": 0}, "max_new_tokens must be a whole number"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"seed": -1}, "seed"),
        ({"dtype": "float23"}, "did you mean 'float32'"),
    ],
)
def test_settings_out_of_range(setting: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SamplingSettings(**setting)


def test_too_many_positions(folder: Path) -> None:
    backend = load_backend(
        "transformers", str(folder), load_tokenizer(str(folder)), SamplingSettings(max_new_tokens=62)
    )
    with pytest.raises(ValueError, match=r"fit 64 positions, got 3 \+ 62"):
        backend.generate([[3, 3, 3]], 1, [0])


def copy_without(folder: Path, target: Path, *names: str) -> str:
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(*names))
    return str(target)


def test_models_that_do_not_load(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="needs its tokenizer beside it"):
        load_tokenizer(copy_without(folder, tmp_path / "a", "tokenizer*"))
    with pytest.raises(ValueError, match=r"must hold config\.json"):
        load_model(copy_without(folder, tmp_path / "b", "config.json"))
    with pytest.raises(ValueError, match=r"the model of .* must load"):
        load_model(copy_without(folder, tmp_path / "c", "model.safetensors"))
    torn = Path(copy_without(folder, tmp_path / "d"))
    weights = torn / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"the model of .* must load"):
        load_model(str(torn))
    with pytest.raises(ValueError, match="check the path"):
        load_model(str(tmp_path / "absent"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="got 'a/absent' with no absent in the folder a: check the path"):
        fingerprint("a/absent")
    with pytest.raises(ValueError, match="the tokenizer of 'no/such' must load") as caught:
        load_tokenizer("no/such")
    assert "\n" not in str(caught.value)


def test_missing_weights_are_not_drawn_at_random(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    copy = Path(copy_without(folder, tmp_path / "model"))
    weights = load_file(copy / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"1 weights are missing, among them model\.norm\.weight"):
        load_model(str(copy))


def test_what_tells_checkpoints_apart(folder: Path, tmp_path: Path) -> None:
    same = Path(copy_without(folder, tmp_path / "same"))
    assert fingerprint(str(same)) == fingerprint(str(folder))
    weights = same / "model.safetensors"
    changed = bytearray(weights.read_bytes())
    changed[-1] ^= 1
    weights.write_bytes(changed)
    assert fingerprint(str(same)) != fingerprint(str(folder))
    assert trainer_step(str(same)) is None
    (same / "trainer_state.json").write_text('{"global_step": 7}')
    assert trainer_step(str(same)) == 7
    (same / "trainer_state.json").write_text("{")
    with pytest.raises(ValueError, match="must hold a global_step"):
        trainer_step(str(same))


def test_the_tiny_worlds_tokenizer_keeps_unknown_characters(folder: Path) -> None:
    tokenizer = load_tokenizer(str(folder))
    assert encode(tokenizer, "a?") == [VOCABULARY["a"], VOCABULARY["<unk>"]]
    other = load_tokenizer(str(folder))
    assert vocabulary_digest(other) == vocabulary_digest(tokenizer)
    other.add_tokens(["b"])
    assert vocabulary_digest(other) != vocabulary_digest(tokenizer)
    with pytest.raises(ValueError, match="needs a tokenizer with a chat template"):
        encode(tokenizer, [{"role": "user", "content": "1"}])
    with pytest.raises(ValueError, match="must have tokens"):
        encode(tokenizer, "")


def test_a_part_is_drawn_and_judged_as_its_problems(folder: Path) -> None:
    tokenizer = load_tokenizer(str(folder))
    backend = TransformersBackend(load_model(str(folder)), tokenizer, SamplingSettings(max_new_tokens=2, batch_size=7))
    problems = [Problem("x", "a06:", {"answer": "3"}), Problem("y", "a1", {"answer": None})]
    seen: list[dict[str, Any]] = []

    def reward(**columns: Any) -> list[float | None]:
        seen.append(columns)
        return [
            None if a is None else float(c == a) for c, a in zip(columns["completions"], columns["answer"], strict=True)
        ]

    x, y = sample_part(backend, tokenizer, problems, 5, "0 model", reward)
    assert seen[0]["prompts"] == ["a06:"] * 5 + ["a1"] * 5
    assert seen[0]["completion_ids"] == [one.token_ids for part in (x, y) for one in part.completions]
    assert x.correct == [one.text == "3" for one in x.completions]
    assert y.correct == [None] * 5
    assert [problem.id for part in parts_of(problems, 3, 7) for problem in part] == ["x", "y"]
    assert [len(part) for part in parts_of(problems, 4, 7)] == [1, 1]
    assert problem_seed("0 model", problems[0]) != problem_seed("0 other", problems[0])


def test_chats_reach_the_reward_as_chats(folder: Path) -> None:
    tokenizer = load_tokenizer(str(folder))
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}:{% endif %}"
    )
    prompt = [{"role": "user", "content": "a06"}]
    backend = TransformersBackend(load_model(str(folder)), tokenizer, SamplingSettings(max_new_tokens=1))
    seen: list[Any] = []

    def reward(completions: Any, **_: Any) -> list[float]:
        seen.extend(completions)
        return [0.0] * len(completions)

    (sampled,) = sample_part(backend, tokenizer, [Problem("x", prompt, {})], 2, "0", reward)
    assert sampled.prompt_ids == [VOCABULARY[c] for c in "a06:"]
    assert seen == [[{"role": "assistant", "content": one.text}] for one in sampled.completions]


def test_a_reward_without_a_say_is_neither_right_nor_wrong(folder: Path) -> None:
    tokenizer = load_tokenizer(str(folder))
    backend = TransformersBackend(load_model(str(folder)), tokenizer, SamplingSettings(max_new_tokens=1))
    rewards = [1.0, float("nan"), None, 0.5]
    (sampled,) = sample_part(backend, tokenizer, [Problem("x", "a06:", {})], 4, "0", lambda **_: rewards)
    assert sampled.correct == [True, None, None, False]
    with pytest.raises(ValueError, match="must return one reward per completion, got 4 for 3 completions: return None"):
        sample_part(backend, tokenizer, [Problem("x", "a06:", {})], 3, "0", lambda **_: rewards)
    with pytest.raises(ValueError, match="one reward per completion, got a float for 1 completions"):
        sample_part(backend, tokenizer, [Problem("x", "a06:", {})], 1, "0", lambda **_: 1.0)


def test_problems_from_files(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    rows: list[dict[str, Any]] = [
        {"id": 7, "prompt": "p", "answer": "1"},
        {"id": "b", "prompt": "q", "answer": "2", "prompts": 1},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_problems(path, chat=True) == [
        Problem("7", "p", {"id": 7, "answer": "1"}),
        Problem("b", "q", {"id": "b", "answer": "2"}),
    ]
    mathematics = tmp_path / "data.csv"
    mathematics.write_text("problem,answer\n1 + 1,2\n")
    (chat,), (text,) = read_problems(mathematics, chat=True), read_problems(mathematics, chat=False)
    assert chat.id == "1"
    assert [message["role"] for message in chat.prompt] == ["system", "user"]  # type: ignore[index]
    assert str(text.prompt).endswith("\n\n1 + 1")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "at least one row"),
        ([{"question": "p"}], "prompt must be a column, got 'question'"),
        ([{"prompt": 3}], "prompt in row 1 must be a text or a list"),
        ([{"prompt": []}], "prompt in row 1"),
        ([{"prompt": [{"role": "user"}]}], "prompt in row 1"),
        ([{"prompt": "p", "id": "a"}, {"prompt": "q", "id": "a"}], "id in row 2 must be new, got 'a' of row 1"),
        ([{"prompt": "p", "id": None}], "id in row 1 must identify"),
    ],
)
def test_problems_that_cannot_be_used(tmp_path: Path, rows: list[dict[str, Any]], words: str) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(ValueError, match=words) as caught:
        read_problems(path, chat=False)
    assert "data.json" in str(caught.value)
