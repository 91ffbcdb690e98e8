"""The numbers of a diagnosis: frozen dataclasses, whose names are the keys of its JSON."""

from dataclasses import asdict, dataclass
from typing import Any

from fgrpo.diagnosis.rollouts import Layout, Note
from fgrpo.words import plain


@dataclass(frozen=True)
class Estimate:
    """A number with the limits of its interval; nan where the data do not give them."""

    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True)
class TailMiss:
    """Estimated tail-miss probability at one assumed rare fraction.

    Attributes:
        rare_fraction: rho = tau / mu, the user's assumption.
        probability: Mean over groups of (1 - rho)^X on active groups: unbiased, whatever the success rates.
        plug_in: Mean of Pr(B_tau) at X/N in place of mu, for comparison: biased.
    """

    rare_fraction: float
    probability: Estimate
    plug_in: float


@dataclass(frozen=True)
class Regimes:
    """Shares of prompts in each tail-miss regime, at the shrunk success rate of their counts and an assumed rho."""

    rare_fraction: float
    inactive: float
    miss_prone: float
    covered: float


@dataclass(frozen=True)
class Part:
    """What the groups of a part of the run hold: of a window of steps, or of all of it.

    Attributes:
        first_step: First logged step.
        last_step: Last logged step.
        groups: Groups with a reward.
        rollouts: Scored rollouts.
        prompts: Prompts seen.
        success_rate: Mean of X/N over groups.
        active_share: Share of active groups.
        all_wrong_share: Share of groups without a right rollout.
        all_right_share: Share of groups without a wrong one; with all_wrong_share the zero-variance groups.
        tail_miss: Estimated tail-miss probability, per rare fraction.
        regimes: Shares of prompts in each regime, per rare fraction.
        distinct_correct: Mean number of distinct right answers in groups with a right rollout; nan without text.
        correct_pairs_differ: Share of pairs of right rollouts of one group with different answers: unlike the number
            above it does not grow with X; nan where no group has two right rollouts.
        truncated_share: Share of truncated rollouts, where the run tells, else nan.
    """

    first_step: int
    last_step: int
    groups: int
    rollouts: int
    prompts: int
    success_rate: Estimate
    active_share: Estimate
    all_wrong_share: Estimate
    all_right_share: Estimate
    tail_miss: tuple[TailMiss, ...]
    regimes: tuple[Regimes, ...]
    distinct_correct: float
    correct_pairs_differ: float
    truncated_share: float


@dataclass(frozen=True)
class Trend:
    """Change of a quantity from the first window to the last, with its interval.

    Attributes:
        quantity: Name of the quantity: success_rate, active_share, or tail_miss.
        rare_fraction: Of a tail miss; nan else.
        change: Last window minus first.
        direction: 'rising', 'falling', or 'not clear' where the interval holds 0.
    """

    quantity: str
    rare_fraction: float
    change: Estimate
    direction: str


@dataclass(frozen=True)
class PromptWindow:
    """Counts of one prompt in one window (its number, from 0), and the success rate with exact limits."""

    window: int
    rollouts: int
    correct: int
    success_rate: Estimate


@dataclass(frozen=True)
class PromptHistory:
    """One prompt over the run.

    Attributes:
        prompt: Its name.
        groups: Its groups.
        rollouts: Its scored rollouts.
        correct: Right ones among them.
        success_rate: Their share, with exact limits (as if the policy had not changed).
        tail_miss: Mean of the estimate over its groups, in the order of the rare fractions.
        regimes: Regime in the last window that saw it, in the order of the rare fractions.
        distinct_correct: Distinct right answers over the run; None without text.
        windows: Windows that saw it, in order.
    """

    prompt: str
    groups: int
    rollouts: int
    correct: int
    success_rate: Estimate
    tail_miss: tuple[float, ...]
    regimes: tuple[str, ...]
    distinct_correct: int | None
    windows: tuple[PromptWindow, ...]


@dataclass(frozen=True)
class Strength:
    """Where the update strength of a step goes at one gamma, for one scale of the advantages.

    Attributes:
        advantage_scale: 'std' (advantages divided by the standard deviation of the group) or 'none'.
        matched_scale: Total strength over that without weight: the constant that a control would scale with.
        shares: Share of the strength in each band of empirical success rates.
        tail_miss_shares: Estimated share of it in tail-miss groups, in the order of the rare fractions.
    """

    advantage_scale: str
    matched_scale: float
    shares: tuple[float, ...]
    tail_miss_shares: tuple[float, ...]


@dataclass(frozen=True)
class WhatIf:
    """What the focal weight (1 - X/N)^gamma would have been on the run's groups, recomputed from their counts.

    Attributes:
        gamma: Focal exponent; 0 is the run without weight.
        mean_weight: Mean over all groups.
        mean_weight_given_active: Mean over active groups.
        effective_groups: (sum g)^2 / sum g^2 over active groups: as many groups of equal weight.
        effective_share: The same over the number of active groups.
        strength: For either scale of the advantages.
    """

    gamma: float
    mean_weight: float
    mean_weight_given_active: float
    effective_groups: float
    effective_share: float
    strength: tuple[Strength, ...]


@dataclass(frozen=True)
class Band:
    """Active groups whose empirical success rate lies in a band; the lower edge belongs to it."""

    low: float
    high: float
    groups: int
    share_of_active_groups: float


@dataclass(frozen=True)
class LoggedWeights:
    """The weights that the run logged, against (1 - success rate)^gamma.

    Attributes:
        groups: Active groups with a logged weight.
        mean_weight: Their mean.
        gamma: Exponent that fits best; nan if none can be told.
        largest_error: Largest |weight - fit|.
        renormalised: Whether the fit needs a factor for each step, as focal_renormalize gives.
        success_rate_from: 'logged' if the run logged empirical_success_rate, else 'recomputed'.
        success_rate_difference: Largest difference between the logged and the recomputed one; nan if not logged.
        verdict: 'focal', 'focal, renormalised', 'no weight', 'constant', 'not focal' or 'cannot tell'.
    """

    groups: int
    mean_weight: float
    gamma: float
    largest_error: float
    renormalised: bool
    success_rate_from: str
    success_rate_difference: float
    verdict: str


@dataclass(frozen=True)
class Diagnosis:
    """Answer of `diagnose`.

    Attributes:
        path: What was read.
        layout: How it was read.
        group_size: N of the regimes: as given or found, else the most frequent number of rollouts of a group.
        group_sizes: How many groups have each number of rollouts, as (size, groups), rising.
        level: Tail-miss probability from which on a group size counts as miss-prone.
        confidence: Of all intervals.
        answer: What tells answers apart: 'boxed', 'text', or 'none'.
        run: All of the run.
        windows: Consecutive parts of the logged steps.
        trends: First window against last.
        prompts: Every prompt, by falling tail-miss estimate at the first rare fraction.
        bands: Bands of empirical success rates, of active groups.
        what_if: Per gamma, 0 first.
        logged_weights: Or None where the run logged none.
        notes: What was noted while reading.
        warnings: What looks wrong with the run.
    """

    path: str
    layout: Layout
    group_size: int
    group_sizes: tuple[tuple[int, int], ...]
    level: float
    confidence: float
    answer: str
    run: Part
    windows: tuple[Part, ...]
    trends: tuple[Trend, ...]
    prompts: tuple[PromptHistory, ...]
    bands: tuple[Band, ...]
    what_if: tuple[WhatIf, ...]
    logged_weights: LoggedWeights | None
    notes: tuple[Note, ...]
    warnings: tuple[Note, ...]

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as dicts, lists, texts and numbers for JSON: None for numbers that are undefined."""
        numbers: dict[str, Any] = plain(asdict(self))
        return numbers
