"""The plain way to simulate the paper's policy: the baseline that the simulator's speed is compared with.

A dense torch loop over all actions, float32, importance ratio, Adam; everything allocated where it is needed. Its
sampler, too, is what one writes first, and is biased in the tail of a concentrated policy: torch.multinomial on float32
probabilities. So compare its speed and not its results.

Run from the repository's root: python benchmarks/naive.py --group-size 512
"""

import argparse
import time

import torch

from fgrpo.simulate import RunConfig
from fgrpo.simulate.policy import initial_logits


def simulate_naively(config: RunConfig) -> dict[str, float]:
    """The last policy's correct and retained mass of a run with the default update rule."""
    policy, update, correct = config.policy, config.update, config.policy.correct
    beta1, beta2 = update.betas
    generator = torch.Generator().manual_seed(config.seed)
    logits = torch.from_numpy(initial_logits(policy)).float()
    rewards = torch.full((policy.actions,), update.reward_wrong)
    rewards[:correct] = update.reward_correct
    start = torch.softmax(logits, dim=0)[:correct]
    first_moment, second_moment = torch.zeros_like(logits), torch.zeros_like(logits)
    for step in range(1, config.steps + 1):
        probabilities = torch.softmax(logits, dim=0)
        group = torch.multinomial(probabilities, config.group_size, replacement=True, generator=generator)
        counts = torch.bincount(group, minlength=policy.actions).float()
        success_rate = float(counts[:correct].sum()) / config.group_size
        mean_reward = success_rate * update.reward_correct + (1 - success_rate) * update.reward_wrong
        gradient = (1 - success_rate) ** config.gamma * counts * (rewards - mean_reward) / config.group_size
        first_moment = beta1 * first_moment + (1 - beta1) * gradient
        second_moment = beta2 * second_moment + (1 - beta2) * gradient**2
        unbiased_first = first_moment / (1 - beta1**step)
        unbiased_second = second_moment / (1 - beta2**step)
        logits = logits + update.learning_rate * unbiased_first / (unbiased_second.sqrt() + update.eps)
    end = torch.softmax(logits, dim=0)[:correct]
    retained = torch.minimum(start, end).sum() / start.sum()
    return {"correct_mass": float(end.sum()), "retained_mass": float(retained)}


def main() -> None:
    """Print CPU time per step and the end of one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group-size", type=int, default=512)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = RunConfig(options.group_size, steps=options.steps)
    began = time.process_time()
    end = simulate_naively(config)
    print(f"{1e3 * (time.process_time() - began) / config.steps:.3f} ms a step, {end}")


if __name__ == "__main__":
    main()
