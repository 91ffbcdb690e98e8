"""The rare-correct probe: a base model's least likely correct completions, and how much less likely training made them.

`build_probe` samples the base model, keeps the correct completions and takes those of the highest negative
log-likelihood per token as the rare set, as the paper does. Beside it stands a control set of as many common correct
completions, since the rise of a rare set alone says little (see `fgrpo.theory.delta_nll_rare`). `score_probe` scores
both under another model.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from tqdm import tqdm

import fgrpo
from fgrpo.evaluation_run import Sampling, load_reward, sample_to_parts
from fgrpo.llm.evaluation.backends import BackendName, SamplingSettings
from fgrpo.llm.evaluation.log_probabilities import completion_nlls
from fgrpo.llm.evaluation.models import fingerprint, load_model, load_tokenizer, vocabulary_digest
from fgrpo.llm.evaluation.problems import read_problems
from fgrpo.llm.evaluation.sampling import Sampled
from fgrpo.llm.reward_loading import close_rewards
from fgrpo.parts import Parts, file_digest, model_label, read_parquet, refuse_other_settings, write_parquet
from fgrpo.theory import _validation as check
from fgrpo.theory._validation import FloatArray

PROBE_KEY = b"fgrpo.rare_probe"
"""Metadata key under which a probe says how it was made, as JSON."""
COLUMNS = ("set", "prompt", "prompt_ids", "completion_ids", "completion", "tokens", "nll")
"""Columns of a probe: `rare` or `control`; the problem's id; prompt and completion as tokens, and the completion's
text; its number of tokens; its negative log-likelihood under the base model, summed over them, in nats."""

_COMPLETIONS = pa.schema(
    {
        "prompt": pa.string(),
        "prompt_ids": pa.list_(pa.int64()),
        "completion_ids": pa.list_(pa.int64()),
        "completion": pa.string(),
    }
)
_BATCHES_A_PART = 16


@dataclass(frozen=True)
class ProbeSummary:
    """What a probe was chosen from: samples drawn, the correct among them, and the size of either set.

    `matched` members of the control set have the problem of a member of the rare set.
    """

    samples: int
    correct: int
    set_size: int
    matched: int


@dataclass(frozen=True)
class ProbeScores:
    """A model's scores of a probe.

    Attributes:
        model: The model.
        scores: Columns set, prompt, tokens, nll_before, nll_after (sums in nats), in the probe's order.
    """

    model: str
    scores: pd.DataFrame


def build_probe(
    model: str,
    data: str | PathLike[str],
    samples: int,
    path: Path,
    *,
    top: float = 0.01,
    reward: str = "math",
    settings: SamplingSettings | None = None,
    backend: BackendName = "transformers",
    score_batch_size: int = 8,
    overwrite: bool = False,
    progress: bool = False,
) -> ProbeSummary:
    """Sample a base model and store its rarest correct completions beside a control set of common ones.

    The rare set: the share `top` of all correct completions, over all problems, that has the highest negative
    log-likelihood per token under the base model; at least one, at most half. Completions that were drawn twice count
    twice.
    The control set: as many of those at or below the median of all correct completions, drawn with the seed; for each
    rare one from the same problem as long as it has any left, then from all problems.

    What is drawn and scored is kept in parts beside `path` until the probe is finished; an interrupted call goes on.
    Both sets are scored by transformers, also where vLLM drew.

    Args:
        model: The base model, a folder or a hub name.
        data: Problems, see `fgrpo.llm.evaluation.problems.read_problems`.
        samples: Completions of each problem, >= 1; the paper draws 800 for 256 problems.
        path: The probe's file, .parquet.
        top: Share of the correct completions in the rare set, in (0, 1/2].
        reward: As for `fgrpo.evaluation_run.evaluate_models`.
        settings: How to draw, and the number format to score in.
        backend: What draws, `transformers` or `vllm`.
        score_batch_size: Completions scored at a time.
        overwrite: Whether to replace a probe or parts of one.
        progress: Whether to show a bar.

    Returns:
        What it was chosen from.

    Raises:
        ValueError: If an argument is out of range, data or model cannot be used, the file exists, parts have other
            settings, or fewer than two completions are correct.
        OSError: If a file cannot be written.

    Source: Section 5.4 and Appendix M (v2); the control set: this project.
    """
    sampling = Sampling(data, samples, reward, backend, settings or SamplingSettings())
    share = check.scalar("top", check.open_probability("top", top))
    if share > 0.5:
        raise ValueError(f"top must be at most 1/2, got {share}: the control set is as large, and disjoint")
    _refuse_path(path, overwrite)
    identity = sampling.of(model)
    judge = load_reward(reward)
    try:
        tokenizer = load_tokenizer(model)
        problems = read_problems(data, chat=getattr(tokenizer, "chat_template", None) is not None)
        with Parts(path.with_name(f".{path.stem}.parts"), identity, overwrite=overwrite) as parts:
            names = sample_to_parts(
                parts, model, tokenizer, problems, sampling, judge, _correct_completions, progress=progress
            )
            _score_parts(parts, names, model, sampling.settings.dtype, score_batch_size, progress)
            correct = pa.concat_tables([parts.read(f"{name}-scored") for name in names]).to_pandas()
            probe = _choose(correct, share, sampling.settings.seed)
            summary = _summary(probe, samples * len(problems), len(correct))
            about = {
                "model": model,
                "settings": {**identity, "top": share},
                "vocabulary": vocabulary_digest(tokenizer),
                "summary": asdict(summary),
                "fgrpo_version": fgrpo.__version__,
            }
            table = pa.Table.from_pandas(probe, preserve_index=False)
            write_parquet(table.replace_schema_metadata({PROBE_KEY: json.dumps(about).encode()}), path)
            parts.discard()
    finally:
        close_rewards([judge])
    return summary


def _refuse_path(path: Path, overwrite: bool) -> None:
    if path.suffix.lower() != ".parquet":
        raise ValueError(f"a probe's file must end in .parquet, got {str(path)!r}: rename it")
    if path.exists() and not overwrite:
        raise ValueError(f"a probe must be a new file, got {str(path)!r}, which exists: pass --overwrite to replace it")


def _correct_completions(sampled: Sequence[Sampled]) -> pa.Table:
    rows = [
        {
            "prompt": one.problem.id,
            "prompt_ids": one.prompt_ids,
            "completion_ids": completion.token_ids,
            "completion": completion.text,
        }
        for one in sampled
        for completion, correct in zip(one.completions, one.correct, strict=True)
        if correct and completion.token_ids
    ]
    return pa.Table.from_pylist(rows, schema=_COMPLETIONS)


def _score_parts(parts: Parts, names: Sequence[str], model: str, dtype: str, batch_size: int, progress: bool) -> None:
    """Beside each part, the same rows with the base model's negative log-likelihoods."""
    missing = [name for name in names if not parts.has(f"{name}-scored")]
    if not missing:
        return
    scorer = load_model(model, dtype)
    for name in tqdm(missing, desc=f"{model_label(model)}, scoring", unit="part", disable=not progress):
        part = parts.read(name)
        nlls = _nlls(scorer, part, batch_size)
        parts.save(f"{name}-scored", part.append_column("nll", pa.array(nlls)))


def _nlls(model: Any, rows: pa.Table, batch_size: int) -> FloatArray:
    prompts, completions = (rows[name].to_pylist() for name in ("prompt_ids", "completion_ids"))
    nlls = completion_nlls(model, prompts, completions, batch_size=batch_size)
    return check.non_negative("nll", nlls, "the model gives a completion no probability: check its weights and dtype")


def _choose(correct: pd.DataFrame, top: float, seed: int) -> pd.DataFrame:
    """The rare and the control set out of all correct completions."""
    if len(correct) < 2:
        raise ValueError(
            f"a probe needs at least 2 correct completions, got {len(correct)}: draw more samples, or check the answers"
        )
    tokens = correct["completion_ids"].map(len)
    per_token = (correct["nll"] / tokens).to_numpy()
    order = np.argsort(-per_token, kind="stable")
    # at most half: of an odd number, the half rounded up would leave too few for a control set of the same size
    rare = order[: min(int(np.ceil(top * len(correct) - 1e-9)), len(correct) // 2)]
    candidates = np.setdiff1d(np.flatnonzero(per_token <= np.median(per_token)), rare)
    candidates = np.random.default_rng(seed).permutation(candidates)
    control = _matched(correct["prompt"].to_numpy(), rare, candidates)
    probe = correct.assign(tokens=tokens).iloc[[*rare, *control]]
    return probe.assign(set=["rare"] * len(rare) + ["control"] * len(control))[list(COLUMNS)].reset_index(drop=True)


def _matched(prompts: NDArray[Any], rare: NDArray[np.int64], candidates: NDArray[np.int64]) -> list[int]:
    """For each rare completion a candidate of its prompt, in their order; the rest from what is left over."""
    left = [int(i) for i in candidates]
    of_prompt: dict[Any, list[int]] = {}
    for i in left:
        of_prompt.setdefault(prompts[i], []).append(i)
    chosen = [of_prompt[prompt].pop(0) for prompt in prompts[rare] if of_prompt.get(prompt)]
    taken = set(chosen)
    others = [i for i in left if i not in taken]
    return [*chosen, *others[: len(rare) - len(chosen)]]


def _summary(probe: pd.DataFrame, samples: int, correct: int) -> ProbeSummary:
    rare, control = (probe.loc[probe["set"] == name, "prompt"].value_counts() for name in ("rare", "control"))
    matched = int(np.minimum(rare, control.reindex(rare.index, fill_value=0)).sum())
    return ProbeSummary(samples, correct, int(rare.sum()), matched)


def score_probe(
    model: str,
    probe_path: Path,
    *,
    out: Path,
    batch_size: int = 8,
    overwrite: bool = False,
    progress: bool = False,
) -> ProbeScores:
    """Score the completions of a probe under a model, in the number format in which the base model was scored.

    Args:
        model: A folder or a hub name; its tokenizer must be the base model's.
        probe_path: From `build_probe`.
        out: Folder for the scores: finished ones are reused, interrupted ones go on.
        batch_size: Completions scored at a time.
        overwrite: Whether to score again what is there.
        progress: Whether to show a bar.

    Returns:
        The scores; `fgrpo.rare_report.probe_rises` says what they come to.

    Raises:
        ValueError: If the probe or the model cannot be used, or its tokenizer has other tokens.
        OSError: If a file cannot be written.

    Source: Section 5.4 and Appendix M (v2).
    """
    probe, about = read_probe(probe_path)
    identity = {"model_fingerprint": fingerprint(model), "probe": file_digest(probe_path)}
    path = out / f"rare-{model_label(model)}-{identity['model_fingerprint'][:8]}.parquet"
    if path.exists() and not overwrite:
        stored = read_parquet(path)
        refuse_other_settings(
            json.loads((stored.schema.metadata or {}).get(PROBE_KEY, b"{}")), identity, f"the scores in {str(path)!r}"
        )
        return ProbeScores(model, stored.to_pandas())
    if vocabulary_digest(load_tokenizer(model)) != about["vocabulary"]:
        raise ValueError(
            f"the tokenizer of {model!r} must be that of the probe's base model {about['model']!r}, got another: score "
            "models trained from that base"
        )
    scores = probe.select(["set", "prompt", "tokens"]).append_column("nll_before", probe["nll"])
    with Parts(out / f".{path.stem}.parts", {**identity, "batch_size": batch_size}, overwrite=overwrite) as parts:
        after = _score_rows(parts, probe, model, about["settings"]["dtype"], batch_size, progress)
        scores = scores.append_column("nll_after", pa.array(after))
        write_parquet(scores.replace_schema_metadata({PROBE_KEY: json.dumps(identity).encode()}), path)
        parts.discard()
    return ProbeScores(model, scores.to_pandas())


def _score_rows(parts: Parts, probe: pa.Table, model: str, dtype: str, batch_size: int, progress: bool) -> list[float]:
    size = batch_size * _BATCHES_A_PART
    starts = range(0, probe.num_rows, size)
    missing = [start for start in starts if not parts.has(f"rows-{start:08d}")]
    scorer = load_model(model, dtype) if missing else None
    for start in tqdm(missing, desc=model_label(model), unit="part", disable=not progress):
        parts.save(f"rows-{start:08d}", pa.table({"nll": _nlls(scorer, probe.slice(start, size), batch_size)}))
    return [value for start in starts for value in parts.read(f"rows-{start:08d}")["nll"].to_pylist()]


def read_probe(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """A probe and how it was made.

    Raises:
        ValueError: If the file is missing or damaged, or no probe.
    """
    if path.is_file() and path.suffix.lower() != ".parquet":  # a file of another kind is not damaged
        raise ValueError(f"a probe must be a file of `fgrpo rare build`, got {str(path)!r}: build one")
    table = read_parquet(path)
    about = (table.schema.metadata or {}).get(PROBE_KEY)
    missing = [name for name in COLUMNS if name not in table.column_names]
    if about is None or missing:
        got = f"no column {missing[0]}" if missing else "none of its metadata"
        raise ValueError(f"a probe must be a file of `fgrpo rare build`, got {str(path)!r} with {got}: build one")
    return table, json.loads(about)
