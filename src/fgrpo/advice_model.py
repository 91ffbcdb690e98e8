"""The numbers of an advice: frozen dataclasses. Words are put to them in `advice_text`."""

from dataclasses import asdict, dataclass
from typing import Any

from fgrpo.words import plain

REGIMES = ("inactive", "miss-prone", "covered")
"""Names that `fgrpo.theory.risk.tail_miss_regime` gives, from small group sizes to large ones."""


@dataclass(frozen=True)
class PromptRisk:
    """Tail misses of one prompt with known success rate and assumed rare mass.

    Attributes:
        success_rate: mu.
        rare_mass: tau, the user's assumption.
        regime: 'inactive', 'miss-prone' or 'covered', as `tail_miss_regime` at the advice's level.
        active_probability: Pr(A_N).
        tail_miss_probability: Pr(B_tau).
        peak_group_size: N of the largest Pr(B_tau); inf at tau = 0 < mu < 1, nan where no N has a tail miss.
        peak_probability: Pr(B_tau) there; 1 at tau = 0 < mu < 1 (the limit), 0 where no N has a tail miss.
        coverage_group_size: Smallest N from which on Pr(B_tau) stays at or below the level; may be inf.
        risky_from: First N with Pr(B_tau) >= level; nan if there is none.
        risky_to: Last such N; inf at tau = 0 < mu < 1, nan if there is none.
        misses_before_first_hit: Expected tail-miss groups before the first group with a rare rollout; may be inf.
    """

    success_rate: float
    rare_mass: float
    regime: str
    active_probability: float
    tail_miss_probability: float
    peak_group_size: float
    peak_probability: float
    coverage_group_size: float
    risky_from: float
    risky_to: float
    misses_before_first_hit: float


@dataclass(frozen=True)
class ExposedPrompt:
    """One prompt of a count file: its counts and the estimates made of them (see the module's text)."""

    prompt: str
    samples: int
    correct: int
    success_rate: float
    tail_miss_probability: float
    regime: str


@dataclass(frozen=True)
class PromptsRisk:
    """Tail misses over the prompts of a count file; all but the first three attributes are estimates.

    Attributes:
        prompts: Number of prompts.
        samples: Number of samples of all prompts.
        rare_fraction: rho = tau / mu, the user's assumption for every prompt.
        success_rate: Mean shrunk success rate.
        regimes: Number of prompts in each of `REGIMES`, at the shrunk rate.
        all_wrong: Expected share of groups without a correct rollout.
        all_right: Expected share of groups without a wrong rollout.
        active_probability: Expected share of active groups: what the two leave.
        tail_miss_probability: Expected share of tail-miss groups.
        most_exposed: The prompts with the largest tail-miss probability, the largest first.
    """

    prompts: int
    samples: int
    rare_fraction: float
    success_rate: float
    regimes: dict[str, int]
    all_wrong: float
    all_right: float
    active_probability: float
    tail_miss_probability: float
    most_exposed: tuple[ExposedPrompt, ...]


@dataclass(frozen=True)
class BudgetRow:
    """What a step of a fixed number of rollouts holds at one group size, averaged over the prompts."""

    group_size: int
    prompts_per_step: int
    active_probability: float
    tail_miss_probability: float
    tail_misses_per_step: float
    tail_miss_per_rollout: float


@dataclass(frozen=True)
class WeightRow:
    """What the focal weight does to prompts of one success rate, at the advice's group size.

    Attributes:
        success_rate: mu.
        mean_weight_given_active: Mean weight of an active group; nan at N = 1.
        step_length: Factor on the expected update, advantages r - mean r; nan at N = 1.
        step_length_std: The same for advantages (r - mean r) / std.
    """

    success_rate: float
    mean_weight_given_active: float
    step_length: float
    step_length_std: float


@dataclass(frozen=True)
class WeightBand:
    """Prompts of a count file whose shrunk success rate lies in a band, and their share of a step's active groups."""

    low: float
    high: float
    prompts: int
    share_of_active_groups: float
    share_of_weight: float


@dataclass(frozen=True)
class Focal:
    """The focal weight (1 - X/N)^gamma at the advice's group size; over all prompts if there are several.

    Attributes:
        gamma: Focal exponent.
        true_weight: (1 - mu)^gamma, which the weight estimates.
        mean_weight: Its mean over all groups.
        mean_weight_given_active: Its mean over active groups; nan where there are none.
        spread: Its standard deviation between groups of one prompt, which X/N's noise makes.
        spread_given_active: The same between active groups of one prompt; nan where there are none.
        smallest_active_weight: N^-gamma, at one wrong rollout; nan at N = 1.
        largest_active_weight: (1 - 1/N)^gamma, at one correct rollout; nan at N = 1.
        update_share: Share of the update strength (X/N) (1 - X/N) that tail-miss groups have without the weight.
        weighted_update_share: The same with the weight. Both nan where nothing has strength.
        matched_learning_rate: Factor on the learning rate of the control without the weight.
        rows: The weight at .1, .3, .5, .7, .9 and, for one prompt, at its own success rate, in rising order.
        bands: Of a count file, how the weight moves attention between easy and hard prompts; else empty.
    """

    gamma: float
    true_weight: float
    mean_weight: float
    mean_weight_given_active: float
    spread: float
    spread_given_active: float
    smallest_active_weight: float
    largest_active_weight: float
    update_share: float
    weighted_update_share: float
    matched_learning_rate: float
    rows: tuple[WeightRow, ...]
    bands: tuple[WeightBand, ...]


@dataclass(frozen=True)
class Advice:
    """Answer of `advise`; `fgrpo.advice_text.advice_text` puts it in words.

    Attributes:
        group_size: N.
        level: Tail-miss probability from which on a group size counts as miss-prone.
        prompt: The one prompt, or None.
        prompts: The prompts of a count file, or None; one of the two is there.
        rollouts_per_step: R, or None if not asked.
        budget: With R: this group size, and its half, quarter, double and fourfold where they divide R.
        focal: What the focal weight does, or None if not asked.
    """

    group_size: int
    level: float
    prompt: PromptRisk | None
    prompts: PromptsRisk | None
    rollouts_per_step: int | None
    budget: tuple[BudgetRow, ...]
    focal: Focal | None

    def to_dict(self) -> dict[str, Any]:
        """The advice as dicts, lists, texts and numbers for JSON: None for numbers that are infinite or undefined."""
        numbers: dict[str, Any] = plain(asdict(self))
        return numbers
