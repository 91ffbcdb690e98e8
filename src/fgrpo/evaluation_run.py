"""`fgrpo evaluate run`: samples of models on problems, verified and counted, stored part by part."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

import fgrpo
from fgrpo.evaluation import EVALUATION_KEY
from fgrpo.llm.evaluation.backends import BackendName, SamplingSettings, load_backend
from fgrpo.llm.evaluation.models import fingerprint, load_tokenizer, trainer_step
from fgrpo.llm.evaluation.problems import Problem, read_problems
from fgrpo.llm.evaluation.sampling import Reward, Sampled, parts_of, sample_part
from fgrpo.llm.reward_loading import close_rewards, load_rewards, refuse_missing_columns
from fgrpo.parts import Parts, Settings, file_digest, model_label, read_parquet, refuse_other_settings, write_parquet
from fgrpo.theory import _validation as check

REWARD_NAMES = {"math": "math_reward", "exact": "exact_match"}
"""Short names of rewards; any that `fgrpo.llm.reward_loading` knows will do, an import path among them."""

_TRUNCATED_WARNING = 0.5  # share of completions without an end from which on a warning is due


def load_reward(name: str) -> Reward:
    """A reward function by its name.

    Raises:
        ValueError: If there is none of that name.
    """
    return load_rewards([REWARD_NAMES.get(name, name)])[0]


@dataclass(frozen=True)
class Sampling:
    """What is drawn of each problem, and what judges it.

    Attributes:
        data: Problems, see `fgrpo.llm.evaluation.problems.read_problems`.
        samples: Completions of each problem, >= 1.
        reward: `math`, `exact`, or what else `fgrpo.llm.reward_loading` knows.
        backend: `transformers` or `vllm`.
        settings: How to draw.

    Raises:
        ValueError: If there is no whole number of samples.
    """

    data: str | PathLike[str]
    samples: int
    reward: str
    backend: BackendName
    settings: SamplingSettings

    def __post_init__(self) -> None:
        check.scalar("samples", check.whole("samples", self.samples, 1, "pass the completions of each problem"))

    def of(self, model: str) -> dict[str, Any]:
        """All that a model's samples and their verdicts depend on, as JSON has it."""
        short = {long: short for short, long in REWARD_NAMES.items()}
        return {
            "model_fingerprint": fingerprint(model),
            "data": file_digest(self.data),
            "samples": self.samples,
            "reward": short.get(self.reward, self.reward),
            "backend": self.backend,
            **asdict(self.settings),
        }


def evaluate_models(
    models: Sequence[str],
    data: str | PathLike[str],
    samples: int,
    *,
    out: Path,
    reward: str = "math",
    settings: SamplingSettings | None = None,
    backend: BackendName = "transformers",
    overwrite: bool = False,
    progress: bool = False,
    write: Callable[[str], object] = print,
) -> list[Path]:
    """Sample models on problems and store how many samples of each problem are correct.

    A model that is finished in `out` with these settings is not sampled again; an interrupted one goes on with the
    problems that are left, to the same counts as without the interruption.

    Args:
        models: Folders or hub names.
        data: Problems, see `fgrpo.llm.evaluation.problems.read_problems`.
        samples: Completions of each problem, >= 1.
        out: Folder for the counts.
        reward: `math`, `exact`, or what else `fgrpo.llm.reward_loading` knows.
        settings: How to draw; default: `SamplingSettings()`.
        backend: `transformers` or `vllm`.
        overwrite: Whether to sample again what is there.
        progress: Whether to show a bar.
        write: What takes warnings.

    Returns:
        For each model a parquet file: prompt (the problem's id), samples, correct, truncated (samples without an end),
        and as metadata the model, its step and all settings. Problems of which no sample could be judged are left out,
        with a warning that counts them; so are single samples.

    Raises:
        ValueError: If an argument is out of range, data or a model cannot be used, what is stored has other settings,
            or no sample could be judged.
        OSError: If a file cannot be written.

    Source: Appendix L.4 (v2).
    """
    sampling = Sampling(data, samples, reward, backend, settings or SamplingSettings())
    judge = load_reward(reward)
    try:
        return [
            _evaluate(model, sampling, judge, out, overwrite=overwrite, progress=progress, write=write)
            for model in models
        ]
    finally:
        close_rewards([judge])


def _evaluate(
    model: str,
    sampling: Sampling,
    judge: Reward,
    out: Path,
    *,
    overwrite: bool,
    progress: bool,
    write: Callable[[str], object],
) -> Path:
    identity = sampling.of(model)
    path = out / f"{model_label(model)}-{identity['model_fingerprint'][:8]}.parquet"
    if path.exists() and not overwrite:
        stored = json.loads((read_parquet(path).schema.metadata or {}).get(EVALUATION_KEY, b"{}"))
        refuse_other_settings(stored.get("settings"), identity, f"the counts in {str(path)!r}")
        return path
    tokenizer = load_tokenizer(model)
    problems = read_problems(sampling.data, chat=getattr(tokenizer, "chat_template", None) is not None)
    with Parts(out / f".{path.stem}.parts", identity, overwrite=overwrite) as parts:
        names = sample_to_parts(parts, model, tokenizer, problems, sampling, judge, _count, progress=progress)
        counts = pa.concat_tables([parts.read(name) for name in names])
        write_parquet(_finished(counts, model, identity, write), path)
        parts.discard()
    return path


def sample_to_parts(
    parts: Parts,
    model: str,
    tokenizer: Any,
    problems: Sequence[Problem],
    sampling: Sampling,
    judge: Reward,
    tabulate: Callable[[Sequence[Sampled]], pa.Table],
    *,
    progress: bool,
) -> list[str]:
    """Sample what parts are missing and store of each what `tabulate` makes of it; the model loads if any is missing.

    Returns:
        The names of all parts, in the order of the problems.
    """
    samples, settings = sampling.samples, sampling.settings
    divided = parts_of(problems, samples, settings.batch_size)
    names = [f"part-{i:06d}" for i in range(len(divided))]
    missing = [(name, part) for name, part in zip(names, divided, strict=True) if not parts.has(name)]
    if missing:
        refuse_missing_columns([judge], {"prompt": problems[0].prompt, **problems[0].columns})
        backend = load_backend(sampling.backend, model, tokenizer, settings)
        stream = f"{settings.seed} {parts.settings['model_fingerprint']}"
        with tqdm(
            total=len(problems), desc=f"{model_label(model)}, sampling", unit="problem", disable=not progress
        ) as bar:
            bar.update(len(problems) - sum(len(part) for _, part in missing))
            for name, part in missing:
                parts.save(name, tabulate(sample_part(backend, tokenizer, part, samples, stream, judge)))
                bar.update(len(part))
    return names


def _count(sampled: Sequence[Sampled]) -> pa.Table:
    judged = [[correct for correct in one.correct if correct is not None] for one in sampled]
    return pa.table(
        {
            "prompt": pa.array([one.problem.id for one in sampled], pa.string()),
            "samples": pa.array(map(len, judged), pa.int64()),
            "correct": pa.array(map(sum, judged), pa.int64()),
            "truncated": pa.array(
                [sum(not completion.ended for completion in one.completions) for one in sampled], pa.int64()
            ),
            "unjudged": pa.array([one.correct.count(None) for one in sampled], pa.int64()),
        }
    )


def _finished(counts: pa.Table, model: str, identity: Settings, write: Callable[[str], object]) -> pa.Table:
    """The table to keep, with its metadata; warns of what it leaves out."""
    frame = counts.to_pandas()
    kept = frame["samples"] > 0
    drawn = int(frame["samples"].sum() + frame["unjudged"].sum())
    if not kept.any():
        raise ValueError(
            f"the reward {identity['reward']} must judge some completions, got none of {drawn:,} of {model!r}: check "
            "the reference answers in the data"
        )
    if frame["unjudged"].any():
        write(
            f"warning: {model}: {frame['unjudged'].sum():,} of {drawn:,} samples could not be judged, and "
            f"{(~kept).sum()} of {len(frame)} problems are left out for it: check their reference answers"
        )
    share = frame["truncated"].sum() / drawn
    if share >= _TRUNCATED_WARNING:
        write(
            f"warning: {model}: {100 * share:.0f} % of the completions reached max_new_tokens = "
            f"{identity['max_new_tokens']} without an end"
        )
    about = {"model": model, "step": trainer_step(model), "settings": identity, "fgrpo_version": fgrpo.__version__}
    return (
        counts.filter(pa.array(kept))
        .drop_columns("unjudged")
        .replace_schema_metadata({EVALUATION_KEY: json.dumps(about).encode()})
    )
