"""The estimator for verl against the literal reference, in verl's calling convention, and its registration."""

import math
import subprocess
import sys
import textwrap
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgrpo.llm import verl_plugin, verl_score
from fgrpo.llm.verl_focal import focal_grpo
from reference.score_advantages import score_advantages

ROOT = Path(__file__).parents[2]
TOKENS = 4


def batch(scores: list[float | None]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token rewards and mask of responses of 1 to 4 tokens, the score at the last one; no score is NaN."""
    rewards, mask = torch.zeros(len(scores), TOKENS), torch.zeros(len(scores), TOKENS)
    for row, score in enumerate(scores):
        length = 1 + row % TOKENS
        rewards[row, length - 1] = math.nan if score is None else score
        mask[row, :length] = 1
    return rewards, mask


def by_estimator(scores: list[float | None], prompts: list[str], **config: Any) -> list[float]:
    """One advantage per rollout, as verl would call for it; also that its tokens share it and the rest is 0."""
    rewards, mask = batch(scores)
    before = rewards.clone()
    advantages, returns = focal_grpo(
        token_level_rewards=rewards, response_mask=mask, config=config, index=np.array(prompts, dtype=object)
    )
    assert torch.equal(rewards.nan_to_num(7), before.nan_to_num(7))
    assert torch.equal(advantages, returns)
    assert torch.equal(advantages, advantages[:, :1] * mask)
    return advantages[:, 0].tolist()


@given(
    rollouts=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 1.0, None])), min_size=1, max_size=24),
    gamma=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    signed=st.booleans(),
    normalise=st.booleans(),
)
def test_equals_the_reference(
    rollouts: list[tuple[str, float | None]], gamma: float, signed: bool, normalise: bool
) -> None:
    prompts = [prompt for prompt, _ in rollouts]
    scores = [score if score is None or not signed else 2 * score - 1 for _, score in rollouts]
    config = {"focal_gamma": gamma, "norm_adv_by_std_in_grpo": normalise, "gamma": 1.0, "use_kl_in_reward": False}
    found = by_estimator(scores, prompts, **config)
    assert found == pytest.approx(score_advantages(scores, prompts, gamma, normalise=normalise), abs=2e-6)


PROMPTS = list("abacbabcab")  # interleaved: a four times, b four times, c twice
SCORES: list[float | None] = [1, 1, 1, 0, 0, 0, 0, 1, 1, 0]


def test_the_reference_would_notice_wrong_weights() -> None:
    found = by_estimator(SCORES, PROMPTS, focal_gamma=1.0)
    right = score_advantages(SCORES, PROMPTS, 1.0)
    assert found == pytest.approx(right, abs=2e-6)
    overall = [a * 0.5 for a in score_advantages(SCORES, PROMPTS, 0.0)]  # the batch's success rate for every group
    contiguous = score_advantages(SCORES, sorted(PROMPTS), 1.0)  # groups taken for contiguous
    for wrong in (score_advantages(SCORES, PROMPTS, 0.0), score_advantages(SCORES, PROMPTS, 2.0), overall, contiguous):
        assert found != pytest.approx(wrong, abs=0.05)


def test_both_codings_of_success_have_the_same_weights() -> None:
    signed = [None if score is None else 2 * score - 1 for score in SCORES]
    assert by_estimator(signed, PROMPTS, focal_gamma=0.5) == pytest.approx(
        by_estimator(SCORES, PROMPTS, focal_gamma=0.5), abs=1e-5
    )
    # without the standard deviation the advantages are twice as large, the weights the same
    plain = {"focal_gamma": 0.5, "norm_adv_by_std_in_grpo": False}
    assert by_estimator(signed, PROMPTS, **plain) == pytest.approx(
        [2 * advantage for advantage in by_estimator(SCORES, PROMPTS, **plain)]
    )
    # a threshold that takes a partial score for a success; a score at the threshold is none
    partial: list[float | None] = [0.5, 0.5, 0.0, 1.0]
    assert by_estimator(partial, list("aaaa"), focal_gamma=1.0) == pytest.approx(
        score_advantages([0.5, 0.5, 0.0, 1.0], list("aaaa"), 1.0, threshold=0.75), abs=2e-6
    )
    assert by_estimator(partial, list("aaaa"), focal_gamma=1.0, success_threshold=0.4) == pytest.approx(
        score_advantages(partial, list("aaaa"), 1.0, threshold=0.4), abs=2e-6
    )


def test_corners() -> None:
    weighted = {"focal_gamma": 1.0}
    assert by_estimator([1, 1, 1], list("aaa"), **weighted) == [0, 0, 0]
    assert by_estimator([0, 0, 0], list("aaa"), **weighted) == [0, 0, 0]
    assert by_estimator([None, None], list("aa"), **weighted) == [0, 0]
    assert by_estimator([1, None], list("aa"), focal_gamma=0.0) == [0, 0]
    # a group of one keeps its score at gamma 0, as in verl's grpo
    assert by_estimator([1, -1], list("ab"), focal_gamma=0.0) == pytest.approx([1, -1], abs=2e-6)
    assert by_estimator([1, -1], list("ab"), **weighted) == pytest.approx([0, -1], abs=2e-6)
    # explicit arguments come before the configuration
    rewards, mask = batch(SCORES)
    explicit, _ = focal_grpo(rewards, mask, PROMPTS, config={"focal_gamma": 2.0}, focal_gamma=0.0)
    assert explicit[:, 0].tolist() == by_estimator(SCORES, PROMPTS, focal_gamma=0.0)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "focal_gamma must be given, got none: add +algorithm.focal_gamma=0.5 to verl's command line"),
        ({"gamma": 1.0}, "focal_gamma must be given, got none: "),
        ({"focal_gamma": -1.0}, "focal_gamma must be finite and at least 0, got -1: "),
        ({"focal_gamma": math.nan}, "focal_gamma must be finite and at least 0, got nan: "),
        ({"focal_gamma": [0.5, 1.0]}, "focal_gamma must be one number, got an array of shape (2,): "),
        ({"focal_gamma": "half"}, "focal_gamma must be a real number"),
        ({"focal_gamma": 1.0, "success_threshold": math.inf}, "success_threshold must be finite, got inf: "),
        ({"focal_gamma": 1.0, "use_kl_in_reward": True}, "use_kl_in_reward must be off, got True: "),
    ],
)
def test_refuses_settings(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"must") as caught:
        by_estimator(SCORES, PROMPTS, **config)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_refuses_shapes() -> None:
    rewards, mask = batch(SCORES)
    with pytest.raises(ValueError, match=r"must have one shape \(rollouts, tokens\), got \(10, 4\) and \(10, 3\): "):
        focal_grpo(rewards, mask[:, :3], PROMPTS, focal_gamma=1.0)
    with pytest.raises(ValueError, match=r"must have one shape \(rollouts, tokens\), got \(10,\) and \(10,\): "):
        focal_grpo(rewards.sum(1), mask.sum(1), PROMPTS, focal_gamma=1.0)
    with pytest.raises(ValueError, match=r"^index must have one entry per rollout, got 9 for 10: "):
        focal_grpo(rewards, mask, PROMPTS[:9], focal_gamma=1.0)


def test_entry_point_is_listed_and_harmless_without_verl() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["entry-points"]["verl.plugins"] == {"focal_grpo": "fgrpo.llm.verl_plugin"}
    (ours,) = (entry for entry in entry_points(group="verl.plugins") if entry.name == verl_plugin.NAME)
    assert ours.load() is verl_plugin


def test_importing_verl_registers(tmp_path: Path) -> None:
    # a stand-in with verl's registry and its way of loading plugins: while `import verl` still runs, errors swallowed
    folder = tmp_path / "verl" / "trainer" / "ppo"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    (tmp_path / "verl" / "__init__.py").write_text(
        textwrap.dedent("""
        from importlib.metadata import entry_points
        for entry in entry_points(group="verl.plugins"):
            try:
                entry.load()
            except Exception as error:
                print(error)
        """)
    )
    (folder / "core_algos.py").write_text(
        textwrap.dedent("""
        REGISTRY = {}
        def register_adv_est(name):
            def decorator(function):
                assert REGISTRY.setdefault(name, function) is function
                return function
            return decorator
        """)
    )
    code = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import verl
        from verl.trainer.ppo.core_algos import REGISTRY
        from fgrpo.llm import verl_focal, verl_plugin
        assert verl_plugin.register()
        assert REGISTRY == {{"focal_grpo": verl_focal.focal_grpo}}
        assert "torch" not in sys.modules
        print("registered")
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "registered\n", done.stderr


def test_score() -> None:
    texts = [(r"\boxed{\frac12}", "0.5"), (r"0.5", "0.5"), (r"\boxed{1}", "???")]
    scores = [verl_score.compute_score("d", text, truth, extra_info={}) for text, truth in texts]
    assert scores[:2] == [1.0, 0.0]
    assert math.isnan(scores[2])
    verl_score._reward().close()
