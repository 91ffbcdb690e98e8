"""What a run of the simulator is: policy, update rule and sizes, checked, hashable, with a JSON round trip."""

import hashlib
import json
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, Self, TypeVar

from fgrpo.simulate._checks import assign, number, whole_number
from fgrpo.simulate.policy_config import PolicyClass, PolicyConfig
from fgrpo.simulate.updates import ADVANTAGE_SCALES, OPTIMIZERS, SUCCESS_ESTIMATES, SURROGATES, WEIGHTS
from fgrpo.theory._validation import FloatArray, finite, non_negative, one_of, positive, probability, shown

__all__ = ["CONFIG_SCHEMA", "PRESETS", "PolicyClass", "PolicyConfig", "RunConfig", "UpdateConfig"]

# Part of every run id. Ids and random streams are digests of the fields that differ from their defaults, so a field
# that is added later changes nothing for runs that leave it at its default. Raise the schema when the same
# configuration starts to mean another computation: when a default changes, or what a name stands for.
CONFIG_SCHEMA = 2

# bounds that keep every product of an update a double
LARGEST_REWARD = 1e100
LARGEST_WEIGHT = 1e30
LARGEST_LEARNING_RATE = 1e3
LARGEST_EPS = 1e3
SMALLEST_SCALE_EPS = 1e-100

Kind = TypeVar("Kind", "PolicyConfig", "UpdateConfig")


def _instance(name: str, value: Any, kind: type[Kind]) -> Kind:
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be of type {kind.__name__}, got {shown(value)}: pass {kind.__name__}(...)")
    return value


def _betas(value: Any) -> tuple[float, float]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"betas must be two numbers, got {shown(value)}: pass a pair such as (0.9, 0.999)")
    first, second = (number("betas", beta, non_negative, "pass decays in [0, 1)") for beta in value)
    if max(first, second) >= 1:
        raise ValueError(f"betas must be below 1, got {shown(value)}: pass decays such as (0.9, 0.999)")
    return first, second


@dataclass(frozen=True)
class UpdateConfig:
    """How a group changes the logits.

    Attributes:
        surrogate: Objective that is ascended, see SURROGATES in fgrpo.simulate.updates.
        optimizer: See OPTIMIZERS.
        learning_rate: eta, above 0 and at most 1000.
        betas: Decay of the first and of the second moment, each in [0, 1).
        eps: Added to the root of the second moment, above 0 and at most 1000.
        weight_decay: Decoupled decay, at least 0; logits shrink by the factor 1 - learning_rate * weight_decay a step,
            which is above 0.
        advantage_scale: What the centred rewards are divided by, see ADVANTAGE_SCALES.
        reward_correct: R_c, between -1e100 and 1e100.
        reward_wrong: R_w, likewise, below `reward_correct`.
        scale_eps: Added to the standard deviation of the rewards where `advantage_scale` is "std", from 1e-100 to 1000.

    Raises:
        ValueError: If a value is outside its range, a name is unknown, or raw rewards (surrogate "linear_distinct") are
            to be scaled.

    Source: Appendix J (v1 and v2) leaves surrogate, betas, eps and decay open; the defaults are the reading that draws
    its figure.
    """

    surrogate: str = "importance_ratio"
    optimizer: str = "adam"
    learning_rate: float = 1e-2
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    advantage_scale: str = "none"
    reward_correct: float = 1.0
    reward_wrong: float = -1.0
    scale_eps: float = 1e-4

    def __post_init__(self) -> None:
        """Checks and normalises the values."""
        one_of("surrogate", self.surrogate, SURROGATES)
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        one_of("advantage_scale", self.advantage_scale, ADVANTAGE_SCALES)
        assign(
            self,
            learning_rate=number(
                "learning_rate",
                self.learning_rate,
                positive,
                "pass a step size such as 0.01",
                largest=LARGEST_LEARNING_RATE,
            ),
            betas=_betas(self.betas),
            eps=number("eps", self.eps, positive, "pass a small positive number such as 1e-8", largest=LARGEST_EPS),
            weight_decay=number("weight_decay", self.weight_decay, non_negative, "pass 0 for no decay"),
            scale_eps=number(
                "scale_eps", self.scale_eps, positive, "pass a small positive number such as 1e-4", largest=LARGEST_EPS
            ),
        )
        for name in ("reward_correct", "reward_wrong"):
            reward = number(name, getattr(self, name), finite, "pass a reward such as 1 or 0", largest=LARGEST_REWARD)
            assign(self, **{name: reward})
        if self.learning_rate * self.weight_decay >= 1:
            raise ValueError(
                "learning_rate * weight_decay must be below 1, got "
                f"{self.learning_rate!r} * {self.weight_decay!r}: a step would turn the logits round or erase them"
            )
        if self.scale_eps < SMALLEST_SCALE_EPS:
            raise ValueError(
                f"scale_eps must be at least {SMALLEST_SCALE_EPS:g}, got {self.scale_eps!r}: "
                "pass a small positive number such as 1e-4"
            )
        if self.surrogate == "linear_distinct" and self.advantage_scale != "none":
            raise ValueError(
                "advantage_scale must be 'none' for the surrogate 'linear_distinct', which takes raw rewards, got "
                f"{self.advantage_scale!r}: leave it out, or choose a surrogate with advantages"
            )
        if self.reward_correct <= self.reward_wrong:
            raise ValueError(
                f"reward_correct must be above reward_wrong, got {self.reward_correct} <= {self.reward_wrong}: "
                "pass the reward of a correct rollout as reward_correct"
            )


PRESETS: dict[str, UpdateConfig] = {
    # the reading that draws the paper's figure
    "figure_matching": UpdateConfig(),
    # Appendix J word for word, with the optimizer of the setup that it adopts
    "appendix_j_literal": UpdateConfig(surrogate="linear", weight_decay=0.01),
    # [hu2025brorl], section 4.1
    "hu2025": UpdateConfig(surrogate="linear", weight_decay=0.01, learning_rate=1e-3),
}
"""Named readings of the update rule, see `RunConfig.preset`."""


@dataclass(frozen=True)
class RunConfig:
    """One run: everything that determines its trajectory.

    Attributes:
        group_size: N, rollouts drawn in each step, a whole number of at least 1.
        gamma: Focal exponent, finite, at least 0.
        seed: Whole number of at least 0.
        steps: Number of updates, at least 1.
        record_every: Steps between two records, at least 1; step 0 and the last step are always recorded.
        weight: How the success estimate weights the advantages, see WEIGHTS in fgrpo.simulate.updates.
        success_estimate: Success rate that the weight sees, see SUCCESS_ESTIMATES.
        policy: The start.
        update: The update rule.
        weight_scale: The weight, if `weight` is "constant": from 0 to 1e30; 1 leaves the update as it is.
        weight_alpha: Extra weight of a prompt that is never solved, if `weight` is "hard_upweight": from 0 to
            1e30.
        weight_threshold: Success estimate up to which the weight is 1, if `weight` is "step": in [0, 1].
        weight_low: Weight above that threshold, from 0 to 1e30.
        prior_correct: Pseudo-count of correct rollouts, if `success_estimate` is "shrunk": above 0.
        prior_wrong: Pseudo-count of wrong rollouts, above 0.
        ema_rate: Share of the newest group, if `success_estimate` is "ema": in (0, 1].

    Raises:
        ValueError: If a value is outside its range or a name is unknown.
    """

    group_size: int
    gamma: float = 0.0
    seed: int = 0
    steps: int = 1000
    record_every: int = 10
    weight: str = "focal"
    success_estimate: str = "empirical"
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    update: UpdateConfig = field(default_factory=UpdateConfig)
    weight_scale: float = 1.0
    weight_alpha: float = 1.0
    weight_threshold: float = 0.5
    weight_low: float = 0.0
    prior_correct: float = 1.0
    prior_wrong: float = 1.0
    ema_rate: float = 0.2

    def __post_init__(self) -> None:
        """Checks and normalises the values."""
        one_of("weight", self.weight, WEIGHTS)
        one_of("success_estimate", self.success_estimate, SUCCESS_ESTIMATES)
        assign(
            self,
            group_size=whole_number("group_size", self.group_size, "pass the number of rollouts per prompt", minimum=1),
            gamma=number("gamma", self.gamma, non_negative, "pass a focal exponent such as 0, 0.5 or 1"),
            seed=whole_number("seed", self.seed, "pass one seed such as 0", minimum=0, maximum=None),
            steps=whole_number("steps", self.steps, "pass the number of updates", minimum=1),
            record_every=whole_number("record_every", self.record_every, "pass 1 to record each step", minimum=1),
        )
        _instance("policy", self.policy, PolicyConfig)
        _instance("update", self.update, UpdateConfig)
        for name in ("weight_scale", "weight_alpha", "weight_low"):
            weight = number(
                name, getattr(self, name), non_negative, "pass a weight such as 0.5 or 1", largest=LARGEST_WEIGHT
            )
            assign(self, **{name: weight})
        for name in ("prior_correct", "prior_wrong"):
            assign(self, **{name: number(name, getattr(self, name), positive, "1 and 1 is the uniform prior")})
        for name in ("weight_threshold", "ema_rate"):
            assign(self, **{name: number(name, getattr(self, name), _share, "pass a share such as 0.5")})
        if self.ema_rate == 0:
            raise ValueError("ema_rate must be above 0, got 0.0: pass the share of the newest group, 1 for no history")

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """A run with a named update rule.

        Args:
            name: "figure_matching", "appendix_j_literal" or "hu2025".
            changes: Fields of RunConfig (group_size is required), PolicyConfig or UpdateConfig, by their own names.

        Raises:
            ValueError: If the preset or a field is unknown, or a value is invalid.
        """
        one_of("preset", name, PRESETS)
        own, of_policy, of_update = (_field_names(kind) for kind in (cls, PolicyConfig, UpdateConfig))
        for key in changes:
            one_of("a changed field", key, own + of_policy + of_update)
        base_policy = _instance("policy", changes.pop("policy", PolicyConfig()), PolicyConfig)
        base_update = _instance("update", changes.pop("update", PRESETS[name]), UpdateConfig)
        policy = replace(base_policy, **_take(changes, of_policy))
        update = replace(base_update, **_take(changes, of_update))
        return cls.from_dict({**changes, "policy": policy, "update": update})

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values, policy and update as nested dictionaries."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The configuration with these fields; missing ones take their defaults.

        Raises:
            ValueError: If group_size is missing, a field is unknown, or a value is invalid.
        """
        if not isinstance(values, dict):
            raise ValueError(f"a run must be a dictionary of fields, got {shown(values)}: pass what to_dict returned")
        _refuse_unknown_fields(cls, values)
        if "group_size" not in values:
            raise ValueError("group_size must be given, got none: pass the number of rollouts per prompt")
        nested = {"policy": PolicyConfig, "update": UpdateConfig}
        arguments = dict(values)
        for name, kind in nested.items():
            if isinstance(values.get(name), dict):
                _refuse_unknown_fields(kind, values[name])
                arguments[name] = kind(**values[name])
        return cls(**arguments)

    def to_json(self) -> str:
        """Canonical JSON: equal configurations give equal text."""
        return _canonical_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The configuration that `to_json` wrote.

        Raises:
            ValueError: If the text is no JSON, a field is unknown, or a value is invalid.
        """
        try:
            values = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            raise ValueError(f"a run must be JSON, got {shown(text)}: pass what to_json returned") from None
        return cls.from_dict(values)

    @property
    def run_id(self) -> str:
        """16 hexadecimal digits: equal for equal configurations, different for different ones (64 bits of SHA-256)."""
        return _digest({"schema": CONFIG_SCHEMA, "config": _differing(self)})[:16]

    @property
    def stream_key(self) -> int:
        """Seed of the random stream, 256 bits: a function of all fields but `steps`, `record_every` and `leaf_class`.

        So a longer run repeats the first steps of a shorter one exactly, and recording more changes nothing.
        """
        differing = _differing(replace(self, policy=replace(self.policy, leaf_class=None)))
        return int(_digest({name: differing[name] for name in differing if name not in ("steps", "record_every")}), 16)

    @property
    def recorded_steps(self) -> list[int]:
        """Steps after which the policy is recorded: 0, each multiple of `record_every`, and the last."""
        return [*range(0, self.steps, self.record_every), self.steps]

    @property
    def reading(self) -> str:
        """Name of the preset that has this update rule, or "custom"."""
        return next((name for name, update in PRESETS.items() if update == self.update), "custom")


def _field_names(kind: type) -> list[str]:
    return [one.name for one in fields(kind)]


def _take(changes: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: changes.pop(name) for name in names if name in changes}


def _refuse_unknown_fields(kind: type, values: dict[str, Any]) -> None:
    for key in values:
        one_of(f"a field of {kind.__name__}", key, _field_names(kind))


def _share(name: str, value: Any, way_out: str) -> FloatArray:
    return probability(name, value)


def _differing(config: Any) -> dict[str, Any]:
    """The fields that differ from their defaults as plain values, likewise within the dataclasses that they hold."""
    differing: dict[str, Any] = {}
    for one in fields(config):
        value = getattr(config, one.name)
        if is_dataclass(value):
            within = _differing(value)
            differing |= {one.name: within} if within else {}
        elif one.default is MISSING or value != one.default:
            holds_classes = isinstance(value, tuple) and all(map(is_dataclass, value))
            differing[one.name] = [_differing(part) for part in value] if holds_classes else value
    return differing


def _canonical_json(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(values: dict[str, Any]) -> str:
    return hashlib.sha256(_canonical_json(values).encode()).hexdigest()
