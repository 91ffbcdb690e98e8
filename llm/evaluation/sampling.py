"""Samples of problems, drawn in parts and judged: what an evaluation counts and a rare-correct probe chooses from.

A part is what is drawn together: one problem, or as many as fit a batch. Its draws depend on the seed, the model, its
problems and the settings, not on the parts before it, so an interrupted evaluation goes on as if it had never stopped.
"""

import hashlib
from collections.abc import Callable, Sequence, Sized
from typing import Any, NamedTuple

from fgrpo.llm.data import encode
from fgrpo.llm.evaluation.backends import Backend, Completion
from fgrpo.llm.evaluation.problems import Problem
from fgrpo.llm.groups import SUCCESS_THRESHOLD

Reward = Callable[..., Any]


class Sampled(NamedTuple):
    """The samples of a problem: its prompt as tokens, the completions, and for each whether it is correct.

    `correct` is None where the reward has no say, for example as the reference answer cannot be read.
    """

    problem: Problem
    prompt_ids: list[int]
    completions: list[Completion]
    correct: list[bool | None]


def parts_of(problems: Sequence[Problem], samples: int, batch_size: int) -> list[list[Problem]]:
    """Problems in parts, in their order: as many as fit a batch with all their samples, at least one."""
    size = max(1, batch_size // samples)
    return [list(problems[i : i + size]) for i in range(0, len(problems), size)]


def problem_seed(stream: str, problem: Problem) -> int:
    """A seed below 2^31 of the draws of a problem: a digest of the evaluation's stream and the problem's identifier."""
    return int.from_bytes(hashlib.sha256(f"{stream} {problem.id}".encode()).digest()[:4], "big") >> 1


def sample_part(
    backend: Backend, tokenizer: Any, part: Sequence[Problem], samples: int, stream: str, reward: Reward
) -> list[Sampled]:
    """Draw and judge the samples of a part.

    Args:
        backend: What draws.
        tokenizer: The model's.
        part: Its problems.
        samples: Completions of each.
        stream: Names the stream of random numbers of the whole evaluation: its seed and the model. Two models must not
            share one, or their draws would go together where a comparison takes them as independent.
        reward: A reward function as TRL calls it; it gets the columns of the data and the completions' tokens too.

    Returns:
        The samples of each problem.

    Raises:
        ValueError: If the reward lacks a column, or gives another number of rewards than completions.

    Source: this project.
    """
    prompts = [encode(tokenizer, problem.prompt) for problem in part]
    drawn = backend.generate(prompts, samples, [problem_seed(stream, problem) for problem in part])
    repeated = [problem for problem in part for _ in range(samples)]
    flat = [completion for completions in drawn for completion in completions]
    rewards = reward(
        prompts=[problem.prompt for problem in repeated],
        completions=[_as_answer(problem, one.text) for problem, one in zip(repeated, flat, strict=True)],
        completion_ids=[completion.token_ids for completion in flat],
        **{name: [problem.columns[name] for problem in repeated] for name in part[0].columns},
    )
    got = len(rewards) if isinstance(rewards, Sized) else f"a {type(rewards).__name__}"
    if got != len(flat):
        raise ValueError(
            f"a reward function must return one reward per completion, got {got} for {len(flat)} completions: return "
            "None for those that cannot be judged"
        )
    # NaN is no say, too, as in the trainer
    correct = [None if value is None or value != value else bool(value > SUCCESS_THRESHOLD) for value in rewards]
    return [
        Sampled(problem, ids, completions, correct[i * samples : (i + 1) * samples])
        for i, (problem, ids, completions) in enumerate(zip(part, prompts, drawn, strict=True))
    ]


def _as_answer(problem: Problem, text: str) -> str | list[dict[str, str]]:
    """A completion as TRL hands it to rewards: of a chat, a chat."""
    return text if isinstance(problem.prompt, str) else [{"role": "assistant", "content": text}]
