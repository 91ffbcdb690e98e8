"""Focal GRPO for verl: an advantage estimator in the calling convention of verl's registry (0.9.1).

verl's own loop calls a registered estimator with `token_level_rewards`, `response_mask`, `index` and `config`; every
other setting has to come out of `config`, the block `algorithm` of its configuration. verl is not imported here.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fgrpo.llm.groups import SUCCESS_THRESHOLD
from fgrpo.theory import _validation as check
from fgrpo.theory import focal_weight

if TYPE_CHECKING:
    from torch import Tensor


def focal_grpo(
    token_level_rewards: "Tensor",
    response_mask: "Tensor",
    index: Sequence[Hashable],
    epsilon: float = 1e-6,
    config: Mapping[str, Any] | None = None,
    *,
    focal_gamma: float | None = None,
    success_threshold: float | None = None,
    norm_adv_by_std_in_grpo: bool | None = None,
) -> "tuple[Tensor, Tensor]":
    """Advantages of GRPO times the focal weight of their group.

    The score of a rollout is the sum of its token rewards, a rollout is a success if its score is above the threshold,
    and the group's weight is (1 - share of successes)^gamma. At gamma 0 the result is that of verl's `grpo`, bit for
    bit. A rollout whose score is not finite is unscorable: it gets advantage 0 and the rest of its group is treated as
    if it were not there.

    Args:
        token_level_rewards: Rewards, shape (rollouts, tokens); outcome rewards stand at one token.
        response_mask: 1 on the tokens of a response, 0 after its end and on tokens it did not choose, of that shape.
        index: The prompt of each rollout; groups may be interleaved and of different sizes.
        epsilon: Added to the standard deviation.
        config: verl's block `algorithm`: `focal_gamma`, `success_threshold` (0.5), `norm_adv_by_std_in_grpo` (True) are
            read where the arguments of these names are None.
        focal_gamma: Focal exponent, >= 0; not verl's `gamma`, which is a discount.
        success_threshold: Score above which a rollout is a success; 0.5 serves rewards {0, 1} and {-1, 1}.
        norm_adv_by_std_in_grpo: Whether to divide by the group's standard deviation (over n - 1).

    Returns:
        Advantages twice, as advantages and returns, each of shape (rollouts, tokens): the same on all tokens of a
        rollout, 0 outside its mask.

    Raises:
        ValueError: gamma missing or out of range, threshold not finite, shapes that do not fit, or a KL penalty inside
            the rewards (`use_kl_in_reward`), out of which no success can be read.

    Limiting cases: a group of one rollout has no baseline and keeps its score, as in verl's `grpo`; where all but one
    rollout of a larger group are unscorable, that one gets 0. A group that is all right gets weight 0 for gamma > 0.

    Source: Section 4.1 (v1 and v2), the paper's stack being verl; the unscorable: this project.
    """
    import torch

    settings = {} if config is None else config
    gamma = _number("focal_gamma", focal_gamma, settings, None, check.non_negative)
    threshold = _number("success_threshold", success_threshold, settings, SUCCESS_THRESHOLD, check.finite)
    normalise = norm_adv_by_std_in_grpo
    if normalise is None:
        normalise = bool(settings.get("norm_adv_by_std_in_grpo", True))
    if gamma > 0 and settings.get("use_kl_in_reward", False):
        raise ValueError(
            "use_kl_in_reward must be off, got True: a reward with a KL penalty does not show success; "
            "use actor_rollout_ref.actor.use_kl_loss"
        )
    if token_level_rewards.ndim != 2 or token_level_rewards.shape != response_mask.shape:
        raise ValueError(
            f"token_level_rewards and response_mask must have one shape (rollouts, tokens), got "
            f"{tuple(token_level_rewards.shape)} and {tuple(response_mask.shape)}: pass what verl's batch holds"
        )
    if len(index) != len(token_level_rewards):
        raise ValueError(
            f"index must have one entry per rollout, got {len(index)} for {len(token_level_rewards)}: pass the uids"
        )

    with torch.no_grad():
        scores = token_level_rewards.sum(dim=-1)
        advantages = torch.zeros_like(scores)
        for rows in _groups(index):
            group = [row for row in rows if torch.isfinite(scores[row])]
            if not group or (len(group) == 1 and len(rows) > 1):
                continue
            rewards = scores[group]
            weight = focal_weight((rewards > threshold).double().mean().item(), gamma)
            advantages[group] = _standardised(rewards, epsilon, normalise) * weight
        advantages = advantages.unsqueeze(-1) * response_mask
    return advantages, advantages


def _standardised(rewards: "Tensor", epsilon: float, normalise: bool) -> "Tensor":
    """A group's rewards less their mean, over their standard deviation; a single one less 0, over 1."""
    single = len(rewards) == 1
    centred = rewards if single else rewards - rewards.mean()
    if not normalise:
        return centred
    return centred / ((1.0 if single else rewards.std()) + epsilon)


def _groups(index: Sequence[Hashable]) -> list[list[int]]:
    """The rows of each prompt, in the order of their first appearance."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for row, prompt in enumerate(index):
        groups[prompt].append(row)
    return list(groups.values())


def _number(name: str, given: float | None, settings: Mapping[str, Any], default: float | None, rule: Any) -> float:
    value = settings.get(name, default) if given is None else given
    if value is None:
        raise ValueError(f"{name} must be given, got none: add +algorithm.{name}=0.5 to verl's command line")
    return check.scalar(name, rule(name, value, f"pass one number as +algorithm.{name}"))
