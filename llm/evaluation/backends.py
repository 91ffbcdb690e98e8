"""Backends that draw completions: transformers, and vLLM. Both get prompts as tokens, so both see the same prompt.

Sampling is from the model's own distribution, at a temperature: defaults in a checkpoint's generation_config.json
(top-k, repetition penalty and others, which most instruction-tuned models have) are not taken over, except for the
tokens that end a completion.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from fgrpo.llm.evaluation.models import DTYPES, load_model
from fgrpo.theory import _validation as check

BackendName = Literal["transformers", "vllm"]


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """How completions are drawn.

    Attributes:
        max_new_tokens: Most tokens of a completion, >= 1.
        temperature: Divides the logits, > 0.
        top_p: Least mass of the most probable tokens to draw from, in (0, 1]; 1: all tokens.
        batch_size: Completions drawn at a time, >= 1. Part of the settings: draws of a batch share their random
            numbers.
        seed: Seed of the draws, 0 to 2^53.
        dtype: Number format of the weights, one of `fgrpo.llm.evaluation.models.DTYPES`.

    Raises:
        ValueError: If a value is out of range.
    """

    max_new_tokens: int = 1024
    temperature: float = 1.0
    top_p: float = 1.0
    batch_size: int = 64
    seed: int = 0
    dtype: str = "auto"

    def __post_init__(self) -> None:
        way_out = "temperature 1 is the model itself; at 0 all samples of a problem are alike"
        check.scalar("temperature", check.positive("temperature", self.temperature, way_out))
        check.scalar("top_p", check.probability("top_p", self.top_p))
        check.scalar("top_p", check.positive("top_p", self.top_p, "1 draws from all tokens"))
        for name, least in (("max_new_tokens", 1), ("batch_size", 1), ("seed", 0)):
            check.scalar(name, check.whole(name, getattr(self, name), least, "pass a count, or a seed such as 0"))
        check.one_of("dtype", self.dtype, DTYPES)


class Completion(NamedTuple):
    """A completion: its text without special tokens, its tokens with the one that ended it, and whether one did."""

    text: str
    token_ids: list[int]
    ended: bool


class Backend(Protocol):
    """What draws completions."""

    def generate(self, prompts: Sequence[list[int]], samples: int, seeds: Sequence[int]) -> list[list[Completion]]:
        """Draw `samples` completions of each prompt; `seeds` has one number, below 2^31, for each."""


class TransformersBackend:
    """Batches padded on the left, through transformers' `generate`.

    The draws depend on the seeds, the prompts and the settings alone; the global random state stays as it was.

    Args:
        model: From `load_model`; its generation defaults are replaced.
        tokenizer: The model's.
        settings: How to draw.

    Source: this project.
    """

    def __init__(self, model: Any, tokenizer: Any, settings: SamplingSettings) -> None:
        from transformers import GenerationConfig

        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        ends = getattr(model.generation_config, "eos_token_id", None)
        ends = tokenizer.eos_token_id if ends is None else ends
        self._ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        pad = tokenizer.pad_token_id
        self._pad = int(pad if pad is not None else self._ends[0] if self._ends else 0)
        model.generation_config = GenerationConfig()  # what a call leaves open would be taken from here
        self._config = GenerationConfig(
            do_sample=True,
            temperature=float(settings.temperature),
            top_p=float(settings.top_p),
            top_k=0,
            max_new_tokens=settings.max_new_tokens,
            eos_token_id=self._ends or None,
            pad_token_id=self._pad,
        )

    def generate(self, prompts: Sequence[list[int]], samples: int, seeds: Sequence[int]) -> list[list[Completion]]:
        """See `Backend.generate`; the first seed is that of the call.

        Raises:
            ValueError: If a prompt and its completion exceed the model's positions, or the batch the GPU's memory.
        """
        import torch

        self._refuse_too_long(max(map(len, prompts)))
        rows = [ids for ids in prompts for _ in range(samples)]
        size = self.settings.batch_size
        device = self.model.device
        completions: list[Completion] = []
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.inference_mode():
            torch.manual_seed(seeds[0])
            try:
                for start in range(0, len(rows), size):
                    completions += self._batch(rows[start : start + size])
            except torch.OutOfMemoryError:
                raise ValueError(f"batch_size must fit the memory, got {size}: pass a smaller --batch-size") from None
        return [completions[i : i + samples] for i in range(0, len(rows), samples)]

    def _batch(self, rows: Sequence[list[int]]) -> list[Completion]:
        import torch

        width = max(map(len, rows))
        ids_BT = torch.full((len(rows), width), self._pad)
        mask_BT = torch.zeros_like(ids_BT)
        for i, row in enumerate(rows):
            ids_BT[i, width - len(row) :] = torch.tensor(row)
            mask_BT[i, width - len(row) :] = 1
        drawn: torch.Tensor = self.model.generate(
            input_ids=ids_BT.to(self.model.device),
            attention_mask=mask_BT.to(self.model.device),
            generation_config=self._config,
        )
        return [self._completion(row) for row in drawn[:, width:].tolist()]

    def _completion(self, row: list[int]) -> Completion:
        """A row of `generate`, cut after the token that ends it."""
        length = next((i for i, token in enumerate(row, 1) if token in self._ends), None)
        tokens = row[:length]
        return Completion(self.tokenizer.decode(tokens, skip_special_tokens=True), tokens, length is not None)

    def _refuse_too_long(self, longest: int) -> None:
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        if limit is not None and longest + self.settings.max_new_tokens > limit:
            raise ValueError(
                f"a prompt and its completion must fit {limit} positions, got {longest} + "
                f"{self.settings.max_new_tokens} tokens: lower --max-new-tokens"
            )


class VLLMBackend:
    """vLLM's `LLM.generate`, one request of n completions for each prompt.

    Args:
        name: Folder or hub name of the model.
        settings: How to draw; `batch_size` only says how many completions are asked for at a time, vLLM schedules.

    Raises:
        ValueError: If vLLM is not installed, or does not load the model.

    Source: this project, on vLLM's offline interface.
    """

    def __init__(self, name: str, settings: SamplingSettings) -> None:
        try:
            import vllm
        except ImportError as error:
            raise ValueError(
                f"the backend vllm needs vLLM, got {type(error).__name__}: pip install vllm, or pass --backend "
                "transformers"
            ) from None
        self.settings = settings
        self._parameters = vllm.SamplingParams
        try:
            self._engine = vllm.LLM(model=name, dtype=settings.dtype, seed=settings.seed % 2**31)
        except Exception as error:  # of vLLM's own kinds, and of those below it
            reason = " ".join(str(error).split())[:160] or type(error).__name__
            raise ValueError(
                f"vLLM must load {name!r}, got {type(error).__name__} ({reason}): check the name, or pass --backend "
                "transformers"
            ) from None

    def generate(self, prompts: Sequence[list[int]], samples: int, seeds: Sequence[int]) -> list[list[Completion]]:
        """See `Backend.generate`; each prompt has its own seed."""
        settings = self.settings
        requests = [{"prompt_token_ids": list(ids)} for ids in prompts]
        parameters = [
            self._parameters(
                n=samples,
                temperature=float(settings.temperature),
                top_p=float(settings.top_p),
                max_tokens=settings.max_new_tokens,
                seed=int(seed),
            )
            for seed in seeds
        ]
        answers = self._engine.generate(requests, parameters, use_tqdm=False)
        return [
            [Completion(one.text, list(one.token_ids), one.finish_reason == "stop") for one in answer.outputs]
            for answer in answers
        ]


def load_backend(backend: BackendName, name: str, tokenizer: Any, settings: SamplingSettings) -> Backend:
    """The backend with a model loaded.

    Raises:
        ValueError: If the name of the backend is unknown, or the model does not load.
    """
    check.one_of("backend", backend, ("transformers", "vllm"))
    if backend == "vllm":
        return VLLMBackend(name, settings)
    return TransformersBackend(load_model(name, settings.dtype), tokenizer, settings)
