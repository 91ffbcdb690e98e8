"""Checks the estimator inside an environment that has verl: python tests/llm/check_verl.py. Not part of `make test`.

1. `import verl` alone registers it, through the entry point.
2. At gamma 0 it gives what verl's `grpo` gives, bit for bit: interleaved groups of sizes 1 to 9, with and without the
   standard deviation.
3. At gamma > 0 verl's own `compute_advantage`, given the configuration that verl's command line builds, gives the
   literal reference.
4. verl's loader finds the reward function.
5. verl's command line takes every setting of docs/how-to/verl.md.
"""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import verl
from hydra import compose, initialize_config_module
from verl.trainer.ppo.core_algos import get_adv_estimator_fn
from verl.utils.import_utils import load_extern_object

from fgrpo.llm.verl_focal import focal_grpo

sys.path.insert(0, str(Path(__file__).parents[1]))
from reference.score_advantages import score_advantages

SETTINGS = ["algorithm.adv_estimator=focal_grpo", "+algorithm.focal_gamma=0.5"]


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor, np.ndarray[Any, Any], list[float]]:
    """Token rewards, mask, prompts and scores of 45 rollouts in groups of 1 to 9, shuffled."""
    draw = np.random.default_rng(seed)
    prompts = np.array([f"prompt-{size}" for size in range(1, 10) for _ in range(size)], dtype=object)
    draw.shuffle(prompts)
    scores = draw.choice([0.0, 1.0], size=len(prompts)).tolist()
    lengths = draw.integers(1, 7, size=len(prompts))
    mask = torch.tensor(np.arange(6) < lengths[:, None], dtype=torch.float32)
    rewards = torch.zeros(len(prompts), 6)
    rewards[torch.arange(len(prompts)), torch.tensor(lengths) - 1] = torch.tensor(scores)
    return rewards, mask, prompts, scores


def check_gamma_zero() -> None:
    grpo = get_adv_estimator_fn("grpo")
    for seed in range(20):
        rewards, mask, prompts, _ = batch(seed)
        for normalise in (True, False):
            theirs = grpo(rewards.clone(), mask, prompts, norm_adv_by_std_in_grpo=normalise)[0]
            ours = focal_grpo(rewards, mask, prompts, focal_gamma=0.0, norm_adv_by_std_in_grpo=normalise)[0]
            assert torch.equal(ours, theirs)
            assert not torch.equal(
                focal_grpo(rewards, mask, prompts, focal_gamma=1.0, norm_adv_by_std_in_grpo=normalise)[0], theirs
            )


def check_through_verl() -> None:
    from verl import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage

    with initialize_config_module("verl.trainer.config", version_base=None):
        algorithm = compose("ppo_trainer", overrides=SETTINGS).algorithm
    for seed in range(20):
        rewards, mask, prompts, scores = batch(seed)
        data = DataProto.from_dict(
            {"token_level_rewards": rewards, "response_mask": mask}, non_tensors={"uid": prompts}
        )
        done = compute_advantage(data, adv_estimator=algorithm.adv_estimator, gamma=algorithm.gamma, config=algorithm)
        expected = torch.tensor(score_advantages(scores, list(prompts), 0.5))[:, None] * mask
        torch.testing.assert_close(done.batch["advantages"], expected, rtol=1e-5, atol=1e-6, check_dtype=False)
        torch.testing.assert_close(done.batch["returns"], done.batch["advantages"], rtol=0, atol=0)


def check_settings() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "verl.md").read_text()
    (command,) = (block for block in page.split("```") if "trainer.total_epochs" in block)
    paper = re.findall(r"\+?[\w.]+=\S+", command)
    arms = [re.findall(r"[\w.]+=[\w.]+", row) for row in re.findall(r"^\| .+ \| (.+) \|$", page, flags=re.MULTILINE)]
    with initialize_config_module("verl.trainer.config", version_base=None):
        for arm in arms:
            actor = compose("ppo_trainer", overrides=[*paper, *arm]).actor_rollout_ref.actor
        assert len(paper) > 15
        assert len(arms) > 8
    defaults = {"lr_scheduler_type": "constant", "betas": [0.9, 0.999], "weight_decay": 0.01, "clip_grad": 1.0}
    assert {name: actor.optim[name] for name in defaults} == defaults
    assert (actor.loss_agg_mode, actor.ppo_epochs, actor.clip_ratio, actor.use_kl_loss) == ("token-mean", 1, 0.2, False)


def main() -> None:
    assert get_adv_estimator_fn("focal_grpo") is focal_grpo, "the entry point did not register it"
    check_gamma_zero()
    check_through_verl()
    check_settings()
    score = load_extern_object("pkg://fgrpo.llm.verl_score", "compute_score")
    assert score(data_source="x", solution_str=r"\boxed{\frac12}", ground_truth="0.5", extra_info={}) == 1.0
    assert score(data_source="x", solution_str="0.5", ground_truth="0.5", extra_info={}) == 0.0
    print(f"verl {verl.__version__}: focal_grpo is registered, equals grpo at gamma 0 and the reference at gamma 0.5")


if __name__ == "__main__":
    main()
