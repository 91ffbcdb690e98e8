"""Literal references for the simulator: definitions followed word by word, and deliberately wrong variants."""

import math
import time
from fractions import Fraction

import numpy as np
import scipy.stats
import torch

from fgrpo.simulate.engine_reference import simulate

# changes to the default run that between them use every rule, weight and estimate
RULES = {
    "figure_matching": {},
    "appendix_j_literal": {"gamma": 0.7},
    "raw rewards": {"surrogate": "linear_distinct", "optimizer": "sgd", "learning_rate": 5.0, "gamma": 0.7},
    "std, signs": {"advantage_scale": "std", "optimizer": "signsgd", "weight": "hard_upweight", "weight_alpha": 2.0},
    "shrunk": {"optimizer": "rmsprop", "success_estimate": "shrunk", "prior_correct": 3.0, "gamma": 0.7},
    "ema": {"success_estimate": "ema", "weight": "step", "weight_low": 0.1, "weight_threshold": 0.55},
    "population": {"success_estimate": "population", "gamma": 2.0, "advantage_scale": "std"},
    "control": {"weight": "constant", "weight_scale": 0.3, "optimizer": "sgd", "surrogate": "linear"},
}


def literal_optimizer(parameter, update):
    """The optimizer of torch.optim that ours has to follow, without decay: that of ours is decoupled."""
    options = {"lr": update.learning_rate, "maximize": True, "foreach": False}
    optimizers = {
        "adam": lambda: torch.optim.Adam([parameter], betas=update.betas, eps=update.eps, **options),
        "rmsprop": lambda: torch.optim.RMSprop([parameter], alpha=update.betas[1], eps=update.eps, **options),
        "sgd": lambda: torch.optim.SGD([parameter], **options),
        # the sign is Adam without memory
        "signsgd": lambda: torch.optim.Adam([parameter], betas=(0.0, 0.0), eps=1e-30, **options),
    }
    return optimizers[update.optimizer]()


def surrogate_gradient(logits, counts, rewards, weight, *, surrogate, scale_eps=None):
    """Gradient in the logits by automatic differentiation of the surrogate, summed over the single rollouts.

    With `scale_eps` advantages are divided by the population standard deviation of the rollouts' rewards plus it.
    """
    z = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    p = torch.softmax(z, dim=0)
    rollouts = [action for action, count in enumerate(counts) for _ in range(count)]
    drawn = torch.tensor([rewards[action] for action in rollouts], dtype=torch.float64)
    advantages = drawn - drawn.mean()
    if scale_eps is not None:
        advantages = advantages / (drawn.std(unbiased=False) + scale_eps)
    total = torch.zeros((), dtype=torch.float64)
    if surrogate == "linear_distinct":
        for action in set(rollouts):
            total = total + weight * rewards[action] * p[action] / len(rollouts)
    for action, advantage in zip(rollouts, advantages, strict=True):
        if surrogate == "importance_ratio":
            total = total + weight * advantage * p[action] / p[action].detach() / len(rollouts)
        elif surrogate == "linear":
            total = total + weight * advantage * p[action] / len(rollouts)
    total.backward()
    return z.grad.numpy()


def group_metrics(probabilities, new_probabilities, counts, correct, leaves):
    """The measures of one group, one action at a time, in Fractions where it matters."""
    group_size, draws = int(sum(counts)), int(sum(counts[:correct]))
    active = 0 < draws < group_size
    exact = [Fraction(float(p)) for p in probabilities]
    exact = [p / sum(exact) for p in exact]
    mu = sum(exact[:correct])
    chances = [(1 - exact[a]) ** group_size - (mu - exact[a]) ** group_size - (1 - mu) ** group_size for a in leaves]
    unsampled = [a for a in range(correct) if counts[a] == 0]
    return {
        "leaf_tail_miss": sum(active and counts[a] == 0 for a in leaves) / len(leaves),
        "leaf_tail_miss_probability": float(sum(chances) / len(leaves)),
        "unsampled_correct_mass": sum(probabilities[a] for a in unsampled),
        "unsampled_correct_mass_change": sum(new_probabilities[a] - probabilities[a] for a in unsampled),
    }


def policy_metrics(logits, start_logits, correct):
    """The measures of a policy, one action at a time."""
    p0, pt = ([math.exp(z) / sum(map(math.exp, zs)) for z in zs] for zs in (start_logits, logits))
    q0, qt = sum(p0[:correct]), sum(pt[:correct])
    actions = range(correct)
    return {
        "correct_mass": qt,
        "retained_mass": sum(min(p0[a], pt[a]) for a in actions) / q0,
        "entropy": -sum(p * math.log(p) for p in pt),
        "correct_entropy": -sum(pt[a] / qt * math.log(pt[a] / qt) for a in actions),
        "correct_overlap": sum(min(p0[a] / q0, pt[a] / qt) for a in actions),
        "share_improved": sum(pt[a] > p0[a] for a in actions) / correct,
        "worst_drop": max(p0[a] - pt[a] for a in actions),
        "anchor_mass": pt[0],
    }


def sample_counts_float32(probabilities, group_size, rng):
    """Wrong on purpose: inversion of a cumulative sum in float32, as torch.multinomial does it."""
    cumulative = np.cumsum(probabilities.astype(np.float32))
    cumulative /= cumulative[-1]
    uniforms = rng.random(group_size).astype(np.float32)
    drawn = np.minimum(cumulative.searchsorted(uniforms, side="right"), probabilities.size - 1)
    return np.bincount(drawn, minlength=probabilities.size)


def pooled(counts, expected, at_least):
    """Counts and expectations of cells of neighbouring actions, each cell with `at_least` expected or more."""
    cell = np.floor(np.cumsum(expected) / at_least)
    starts = np.flatnonzero(np.diff(cell, prepend=-1.0))
    observed, expectation = np.add.reduceat(counts, starts), np.add.reduceat(expected, starts)
    # the cells between two crossings of the grid may fall short: merge each of those into its left neighbour
    keep = [0]
    for index in range(1, len(starts)):
        if expectation[keep[-1] : index].sum() >= at_least and expectation[index:].sum() >= at_least:
            keep.append(index)
    return np.add.reduceat(observed, keep), np.add.reduceat(expectation, keep)


def goodness_of_fit(counts, probabilities):
    """p-value of the chi-square test against the exact law, at most 200 cells, each with 10 expected or more."""
    draws = counts.sum()
    observed, expected = pooled(counts, draws * probabilities / probabilities.sum(), max(10, draws / 200))
    statistic = ((observed - expected) ** 2 / expected).sum()
    return scipy.stats.chi2.sf(statistic, len(observed) - 1)


def simulate_or_fail(configs):
    """As the run function of an engine: fails for seed 13, and never ends in time for seed 14."""
    for config in configs:
        if config.seed == 13:
            raise ArithmeticError("seed 13")
        if config.seed == 14:
            time.sleep(300)
    return [simulate(config) for config in configs]
