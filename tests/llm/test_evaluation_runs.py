"""Whole evaluations and probes of the tiny model: numbers recomputed from text, interruptions, settings that differ."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

import fgrpo.evaluation_run
import fgrpo.rare_probe
from fgrpo.cli import main
from fgrpo.evaluation_run import evaluate_models
from fgrpo.llm.evaluation.backends import SamplingSettings, TransformersBackend
from fgrpo.llm.evaluation.models import fingerprint, load_model, load_tokenizer
from fgrpo.llm.evaluation.problems import read_problems
from fgrpo.llm.evaluation.sampling import problem_seed
from fgrpo.parts import Parts
from fgrpo.rare_probe import build_probe, read_probe, score_probe
from fgrpo.rare_report import probe_rises, rises_text
from fgrpo.theory.pass_estimates import pass_at_k
from reference.language_models import save_tiny_model, sequence_nll

SAMPLES = 30
SETTINGS = SamplingSettings(max_new_tokens=2, batch_size=60, seed=4)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two checkpoints of one run."""
    run = tmp_path_factory.mktemp("models") / "run"
    folders = [save_tiny_model(run / f"checkpoint-{step}", seed=step) for step in (1, 2)]
    for step, folder in enumerate(folders, 1):
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return [str(folder) for folder in folders]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, models: list[str]) -> Path:
    """Problems whose answers the first model gives now and then: the likeliest text of one or two tokens."""
    path = tmp_path_factory.mktemp("data") / "problems.jsonl"
    prompts = ["a06:", "a07:", "x1", "a9", "xx", "a21:"]
    tokenizer = load_tokenizer(models[0])
    backend = TransformersBackend(load_model(models[0]), tokenizer, SETTINGS)
    drawn = backend.generate([tokenizer(prompt)["input_ids"] for prompt in prompts], 20, [0])
    answers = [pd.Series([one.text for one in completions if one.text]).mode()[0] for completions in drawn]
    rows = [
        {"id": f"p{i}", "prompt": prompt, "answer": None if i == 3 else answer}
        for i, (prompt, answer) in enumerate(zip(prompts, answers, strict=True))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def evaluate(model: str, data: Path, out: Path, said: list[str] | None = None, **options: Any) -> Path:
    options = {"reward": "exact", "settings": SETTINGS} | options
    write: Callable[[str], object] = (said if said is not None else []).append
    (path,) = evaluate_models([model], data, SAMPLES, out=out, write=write, **options)
    return path


def test_counts_are_those_of_the_texts(models: list[str], data: Path, tmp_path: Path) -> None:
    said: list[str] = []
    path = evaluate(models[0], data, tmp_path, said)
    assert path.name == f"run_checkpoint-1-{fingerprint(models[0])[:8]}.parquet"
    assert [path.name for path in tmp_path.iterdir()] == [path.name]
    counts = pq.read_table(path).to_pandas()
    tokenizer = load_tokenizer(models[0])
    backend = TransformersBackend(load_model(models[0]), tokenizer, SETTINGS)
    problems = read_problems(data, chat=False)
    expected = []
    for i in range(0, len(problems), 2):  # a batch of 60 holds two problems
        pair = problems[i : i + 2]
        seed = problem_seed(f"4 {fingerprint(models[0])}", pair[0])
        drawn = backend.generate([tokenizer(p.prompt)["input_ids"] for p in pair], SAMPLES, [seed, 0])
        for problem, completions in zip(pair, drawn, strict=True):
            answer = problem.columns["answer"]
            correct = sum(one.text == answer for one in completions)
            truncated = sum(one.token_ids[-1] != tokenizer.eos_token_id for one in completions)
            if answer is not None:
                expected.append((problem.id, SAMPLES, correct, truncated))
    assert list(counts.itertuples(index=False, name=None)) == expected
    assert 0 < counts["correct"].sum() < counts["samples"].sum()
    assert "30 of 180 samples could not be judged, and 1 of 6 problems are left out" in said[0]
    assert "reached max_new_tokens = 2" in said[1]


class Interrupted(Exception):
    """What stops a call in the middle."""


def interrupted_after(calls: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, until it has been called so often."""
    count = 0

    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count > calls:
            raise Interrupted
        return function(*arguments, **options)

    return call


def test_an_interrupted_evaluation_goes_on(
    models: list[str], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evaluate(models[0], data, tmp_path / "whole")
    sample = fgrpo.evaluation_run.sample_part
    monkeypatch.setattr(fgrpo.evaluation_run, "sample_part", interrupted_after(2, sample))
    with pytest.raises(Interrupted):
        evaluate(models[0], data, tmp_path / "cut")
    with pytest.raises(ValueError, match="must have the same settings, got seed 4 there and 5 now"):
        evaluate(models[0], data, tmp_path / "cut", settings=SamplingSettings(max_new_tokens=2, batch_size=60, seed=5))
    monkeypatch.setattr(fgrpo.evaluation_run, "sample_part", interrupted_after(1, sample))  # one part is left
    cut = evaluate(models[0], data, tmp_path / "cut")
    assert pq.read_table(cut).equals(pq.read_table(whole), check_metadata=True)
    monkeypatch.setattr(fgrpo.evaluation_run, "sample_part", interrupted_after(0, sample))  # none: finished
    assert evaluate(models[0], data, tmp_path / "cut") == cut
    assert evaluate(models[0], data, tmp_path / "cut", reward="exact_match") == cut  # the long name of the same reward
    with pytest.raises(ValueError, match=r"the counts in .* must have the same settings, got reward 'exact' there"):
        evaluate(models[0], data, tmp_path / "cut", reward="digit_sum_reward")
    with pytest.raises(Interrupted):
        evaluate(models[0], data, tmp_path / "cut", overwrite=True)


def test_no_answer_to_judge_by(models: list[str], data: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    other = tmp_path / "data.json"
    other.write_text(json.dumps([{"prompt": row["prompt"], "answer": ""} for row in rows[:2]]))
    with pytest.raises(ValueError, match=r"must judge some completions, got none of 60 of"):
        evaluate(models[0], other, tmp_path / "out")
    other.write_text(json.dumps([{"prompt": row["prompt"]} for row in rows[:2]]))
    with pytest.raises(ValueError, match="column 'answer'"):
        evaluate(models[0], other, tmp_path / "out", overwrite=True)


def test_the_command_ranks_checkpoints(
    models: list[str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = ["--samples", "30", "--k", "1,4", "--max-new-tokens", "2", "--batch-size", "60", "--seed", "4"]
    arguments = ["evaluate", "run", *models, "--data", str(data), *numbers, "--reward", "exact", "--quiet"]
    arguments += ["--out", str(tmp_path), "--select-best", "run"]
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    best: dict[str, float] = {}
    for row in answer["models"]:
        counts = pd.read_parquet(tmp_path / f"run_{Path(row['model']).name}-{fingerprint(row['model'])[:8]}.parquet")
        for one in row["pass_at_k"]:
            values = pass_at_k(counts["samples"], counts["correct"], one["k"])
            assert one["estimate"] == pytest.approx(np.mean(values))
            assert one["lower"] <= one["estimate"] <= one["upper"]
        best[row["model"]] = row["pass_at_k"][0]["estimate"]
    assert [row["compute"] for row in answer["models"]] == [1, 2]
    (selected,) = answer["selected"]
    assert selected["model"] == max(best, key=lambda name: best[name])
    assert main(arguments) == 0  # nothing is sampled again
    captured = capsys.readouterr()
    assert "selected of" in captured.out
    assert "Loading" not in captured.err


@pytest.fixture(scope="module")
def probe(models: list[str], data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("probe") / "probe.parquet"
    settings = SamplingSettings(max_new_tokens=2, batch_size=60, dtype="float64")
    build_probe(models[0], data, 60, path, top=0.2, reward="exact", settings=settings)
    return path


def test_a_probe_holds_the_rarest_and_common_ones(models: list[str], data: Path, probe: Path) -> None:
    assert [path.name for path in probe.parent.iterdir()] == [probe.name]
    table, about = read_probe(probe)
    frame = table.to_pandas()
    answers = {problem.id: problem.columns["answer"] for problem in read_problems(data, chat=False)}
    assert frame["completion"].tolist() == [answers[prompt] for prompt in frame["prompt"]]
    assert frame["tokens"].tolist() == [len(ids) for ids in frame["completion_ids"]]
    exact = load_model(models[0], "float64")
    expected = [sequence_nll(exact, p, c) for p, c in zip(frame["prompt_ids"], frame["completion_ids"], strict=True)]
    np.testing.assert_allclose(frame["nll"], expected, rtol=1e-12)
    summary = about["summary"]
    size = int(np.ceil(0.2 * summary["correct"]))
    assert summary["samples"] == 360
    assert frame["set"].tolist() == ["rare"] * size + ["control"] * size
    per_token = frame["nll"] / frame["tokens"]
    assert per_token[:size].min() > per_token[size:].max()
    assert per_token[:size].is_monotonic_decreasing


def test_the_choice_of_both_sets() -> None:
    """On rows whose NLL per token is 1 to 20: the top 15 % are 20, 19, 18, common ones are 1 to 10."""
    rows = pd.DataFrame(
        {
            "prompt": ["a", "b"] * 9 + ["c", "a"],
            "prompt_ids": [[1]] * 20,
            "completion_ids": [[2] * (1 + i % 3) for i in range(20)],
            "completion": "",
            "nll": [(i + 1.0) * (1 + i % 3) for i in range(20)],
        }
    )
    probe = fgrpo.rare_probe._choose(rows, 0.15, seed=0)
    per_token = probe["nll"] / probe["tokens"]
    assert per_token[:3].tolist() == [20, 19, 18]
    assert per_token[3:].max() <= 10
    assert len(set(per_token)) == 6
    assert probe["prompt"][:5].tolist() == ["a", "c", "b", "a", "b"]  # c has no common one: another stands in
    assert fgrpo.rare_probe._summary(probe, 40, 20).matched == 2
    more = fgrpo.rare_probe._choose(rows, 0.25, seed=0)
    assert more["prompt"][:9].tolist() == ["a", "c", "b", "a", "b", "a", "b", "a", "b"]
    assert (more["nll"] / more["tokens"]).nunique() == 10  # none serves twice
    for count in (2, 3, 5, 19):  # both sets are of one size, also where half is no whole number
        half = fgrpo.rare_probe._choose(rows[:count], 0.5, seed=0)["set"]
        assert half.tolist() == ["rare"] * (count // 2) + ["control"] * (count // 2)
    with pytest.raises(ValueError, match="at least 2 correct completions, got 1"):
        fgrpo.rare_probe._choose(rows[:1], 0.01, seed=0)


def test_scores_against_brute_force_and_the_base_model(models: list[str], probe: Path, tmp_path: Path) -> None:
    itself = score_probe(models[0], probe, out=tmp_path).scores
    np.testing.assert_allclose(itself["nll_after"], itself["nll_before"], rtol=1e-12)
    scores = score_probe(models[1], probe, out=tmp_path, batch_size=3).scores
    exact = load_model(models[1], "float64")
    frame = read_probe(probe)[0].to_pandas()
    expected = [sequence_nll(exact, p, c) for p, c in zip(frame["prompt_ids"], frame["completion_ids"], strict=True)]
    np.testing.assert_allclose(scores["nll_after"], expected, rtol=1e-12)
    rises = probe_rises(scores)
    rare = frame["set"] == "rare"
    by_hand = (expected - frame["nll"]) / frame["tokens"]
    assert rises.rare.estimate == pytest.approx(by_hand[rare].mean())
    assert rises.control.estimate == pytest.approx(by_hand[~rare].mean())
    assert rises.difference.estimate == pytest.approx(by_hand[rare].mean() - by_hand[~rare].mean())


def test_interrupted_probes_and_scores_go_on(
    models: list[str], data: Path, probe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SamplingSettings(max_new_tokens=2, batch_size=60, dtype="float64")
    path = tmp_path / "probe.parquet"
    nlls = fgrpo.rare_probe.completion_nlls
    for calls, top in ((2, 0.5), (3, 0.2)):  # of six parts, which do not depend on the size of the rare set
        monkeypatch.setattr(fgrpo.rare_probe, "completion_nlls", interrupted_after(calls, nlls))
        with pytest.raises(Interrupted):
            build_probe(models[0], data, 60, path, top=top, reward="exact", settings=settings)
        monkeypatch.setattr(fgrpo.evaluation_run, "sample_part", None)  # all is drawn
    monkeypatch.setattr(fgrpo.rare_probe, "completion_nlls", interrupted_after(1, nlls))
    build_probe(models[0], data, 60, path, top=0.2, reward="exact", settings=settings)
    assert pq.read_table(path).equals(pq.read_table(probe), check_metadata=True)
    with pytest.raises(ValueError, match="exists: pass --overwrite"):
        build_probe(models[0], data, 60, path, top=0.2, reward="exact", settings=settings)

    monkeypatch.setattr(fgrpo.rare_probe, "_BATCHES_A_PART", 1)
    monkeypatch.setattr(fgrpo.rare_probe, "completion_nlls", interrupted_after(2, nlls))
    with pytest.raises(Interrupted):
        score_probe(models[1], path, out=tmp_path, batch_size=2)
    count = -(-len(pd.read_parquet(path)) // 2)
    monkeypatch.setattr(fgrpo.rare_probe, "completion_nlls", interrupted_after(count - 2, nlls))
    cut = score_probe(models[1], path, out=tmp_path, batch_size=2).scores
    monkeypatch.setattr(fgrpo.rare_probe, "completion_nlls", nlls)
    pd.testing.assert_frame_equal(cut, score_probe(models[1], path, out=tmp_path / "whole", batch_size=2).scores)


def test_probes_that_cannot_be_used(models: list[str], data: Path, probe: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.parquet"
    pd.DataFrame({"n": [8], "c": [1]}).to_parquet(counts)
    with pytest.raises(ValueError, match="must be a file of `fgrpo rare build`"):
        score_probe(models[0], counts, out=tmp_path)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(probe.read_bytes()[:-50])
    with pytest.raises(ValueError, match="must be parquet, got damage"):
        score_probe(models[0], torn, out=tmp_path)
    other = tmp_path / "other"
    shutil.copytree(models[0], other)
    tokenizer = load_tokenizer(str(other))
    tokenizer.add_tokens(["b"])
    tokenizer.save_pretrained(other)
    with pytest.raises(ValueError, match=r"the tokenizer of .* must be that of the probe's base model"):
        score_probe(str(other), probe, out=tmp_path)
    for change, words in (({"top": 0.6}, "at most 1/2"), ({"samples": 0}, "samples must be")):
        with pytest.raises(ValueError, match=words):
            build_probe(models[0], data, **{"samples": 8, "path": tmp_path / "p.parquet"} | change)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must end in \.parquet"):
        build_probe(models[0], data, 8, tmp_path / "p.csv")


def test_the_rare_commands(models: list[str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "probe.parquet"
    arguments = ["--data", str(data), "--samples", "30", "--max-new-tokens", "2", "--reward", "exact", "--quiet"]
    assert main(["rare", "build", models[0], *arguments, "--out", str(path), "--top", "0.3"]) == 0
    assert "completions are correct" in capsys.readouterr().out
    assert main(["rare", "score", *models, "--probe", str(path), "--out", str(tmp_path), "--quiet", "--json"]) == 0
    base, trained = json.loads(capsys.readouterr().out)
    assert abs(base["rare"]["estimate"]) < 1e-6
    assert abs(trained["rare"]["estimate"]) > 1e-3
    assert main(["rare", "score", models[1], "--probe", str(path), "--out", str(tmp_path), "--quiet"]) == 0
    assert "rare - control" in capsys.readouterr().out


def test_parts_have_one_writer_and_survive_damage(tmp_path: Path) -> None:
    with (
        Parts(tmp_path / "parts", {"seed": 0}),
        pytest.raises(ValueError, match="one writer at a time"),
        Parts(tmp_path / "parts", {"seed": 0}),
    ):
        pass
    (tmp_path / "parts" / "settings.json").write_text("{")
    with pytest.raises(ValueError, match="got damage: pass --overwrite"), Parts(tmp_path / "parts", {"seed": 0}):
        pass
    (tmp_path / "parts" / "a.parquet").write_bytes(b"PAR1")
    with Parts(tmp_path / "parts", {"seed": 1}, overwrite=True) as parts:
        assert not parts.has("a")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="must be writable"), Parts(tmp_path / "file" / "parts", {}):
        pass


def scores_of(rng: np.random.Generator, problems: int) -> pd.DataFrame:
    """Rises of mean 0 with an effect of the problem, two to six completions a problem in either set."""
    rows = []
    for i in range(problems):
        effect = rng.normal()
        for name in ("rare", "control"):
            for _ in range(int(rng.integers(2, 7))):
                rows.append((name, str(i), 4, 400.0, 400.0 + 4 * (effect + 0.3 * rng.normal())))
    return pd.DataFrame(rows, columns=["set", "prompt", "tokens", "nll_before", "nll_after"])


def test_intervals_count_problems() -> None:
    """Coverage of a nominal 90 % in 200 repetitions; false alarms below 1e-3 for each of two, by the binomial law."""
    rng = np.random.default_rng(11)
    inside = {"rare": 0, "difference": 0, "naive": 0}
    for _ in range(200):
        scores = scores_of(rng, 25)
        rises = probe_rises(scores, level=0.9)
        for name, rise in (("rare", rises.rare), ("difference", rises.difference)):
            assert rise.lower is not None
            assert rise.upper is not None
            inside[name] += rise.lower <= 0 <= rise.upper
        rare = (scores["nll_after"] - 400)[scores["set"] == "rare"] / 4
        inside["naive"] += abs(rare.mean()) <= 1.65 * rare.std() / np.sqrt(rare.size)
    least, most = stats.binom.ppf([5e-4, 1 - 5e-4], 200, 0.9)
    assert least <= inside["rare"] <= most
    assert least <= inside["difference"] <= most
    assert inside["naive"] < least  # completions counted as if independent: too narrow


def test_rises_by_hand() -> None:
    scores = pd.DataFrame(
        {
            "set": ["rare", "rare", "control", "control"],
            "prompt": ["a", "b", "a", "c"],
            "tokens": [1, 2, 1, 1],
            "nll_before": [1.0, 2.0, 1.0, 1.0],
            "nll_after": [2.0, 8.0, 1.0, 2.0],
        }
    )
    rises = probe_rises(scores)
    assert (rises.rare.estimate, rises.control.estimate, rises.difference.estimate) == (2.0, 0.5, 1.5)
    # deviations per problem of the difference: a: -1/2 + 1/4, b: 1/2, c: -1/4
    error = np.sqrt(3 / 2 * (0.25**2 + 0.5**2 + 0.25**2))
    assert rises.difference.upper == pytest.approx(1.5 + stats.t.ppf(0.975, 2) * error)
    alone = probe_rises(scores.assign(prompt="a"))
    assert alone.rare.lower is None
    assert "no interval from one problem" in rises_text(["m"], [alone])
