"""The arms of the experiment: each differs from GRPO at N = 8 in what its fields say, and in nothing else.

Losses and clips are those of the paper's recipes (`fgrpo.llm.presets.METHODS`). An update in the arms with one update
per generation is on-policy, so clipping cannot bind there; the DAPO and CISPO arms take four updates from a generation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgrpo.theory import matched_learning_rate
from fgrpo.theory._validation import FloatArray, one_of
from fgrpo.theory.weights import WEIGHTS

MATCHED_FACTOR = float(matched_learning_rate(1.0))
"""m_1 = 1/2: the mean advantage that gamma = 1 leaves, for success rates spread uniformly."""


@dataclass(frozen=True)
class Arm:
    """One way of training.

    Attributes:
        name: Its name on the command line and in tables.
        label: Its name in the report.
        baseline: The arm that it is compared with; None for GRPO at N = 8.
        group_size: N.
        weight: A name of `fgrpo.theory.weights.WEIGHTS`.
        parameters: The parameters of that weight after the success rate.
        easiest_half: Whether only the easiest half of the prompts (by base success rate) is weighted.
        method: A name of `fgrpo.llm.presets.METHODS`.
        updates_per_generation: Mini-batches of a generation; the prompts of an update fall by this factor.
        learning_rate_factor: Factor of the protocol's learning rate.
        optimizer: A name of an optimizer of transformers.
        hard_repeats: How often a prompt of the harder half stands in the data.
        settings: Further keys of the trainer.
    """

    name: str
    label: str
    baseline: str | None = "grpo_n8"
    group_size: int = 8
    weight: str = "constant"
    parameters: tuple[float, ...] = (1.0,)
    easiest_half: bool = False
    method: str = "grpo"
    updates_per_generation: int = 1
    learning_rate_factor: float = 1.0
    optimizer: str = "adamw_torch"
    hard_repeats: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def weights(self, success_rate_P: FloatArray, easy_P: NDArray[np.bool_]) -> FloatArray:
        """Weight of each group, from its empirical success rate and whether its prompt is of the easier half."""
        weight_P = np.asarray(WEIGHTS[self.weight](success_rate_P, *self.parameters), dtype=np.float64)
        return np.where(easy_P, weight_P, 1.0) if self.easiest_half else weight_P

    def training_settings(self) -> dict[str, Any]:
        """What decides a run, by name: words of the report are left out."""
        return {name: value for name, value in asdict(self).items() if name not in ("label", "baseline")}


def _focal(gamma: float, group_size: int = 8, **changes: Any) -> Arm:
    given = {
        "name": f"focal_g{gamma:g}_n{group_size}".replace("0.5", "05"),
        "label": f"F-GRPO gamma {gamma:g} (N = {group_size})",
        "baseline": f"grpo_n{group_size}",
        "group_size": group_size,
        "weight": "focal",
        "parameters": (gamma,),
    }
    return Arm(**{**given, **changes})


def _mini_batches(method: str, label: str, **changes: Any) -> Arm:
    return Arm(method, label, method=method, updates_per_generation=4, **changes)


_ARMS = (
    Arm("grpo_n8", "GRPO (N = 8)", None),
    Arm("grpo_n2", "GRPO (N = 2)", group_size=2),
    Arm("grpo_n32", "GRPO (N = 32)", group_size=32),
    _focal(0.5),
    _focal(1.0),
    Arm("low_lr", f"GRPO, learning rate x {MATCHED_FACTOR:g}", learning_rate_factor=MATCHED_FACTOR),
    Arm("constant_scale", f"GRPO, advantages x {MATCHED_FACTOR:g}", parameters=(MATCHED_FACTOR,)),
    _focal(2.0),
    _focal(0.5, 32),
    _focal(1.0, 32),
    _focal(2.0, 32),
    _mini_batches("dapo", "DAPO"),
    _mini_batches("focal_dapo", "F-DAPO gamma 1", baseline="dapo", weight="focal"),
    _mini_batches("cispo", "CISPO"),
    _mini_batches("focal_cispo", "F-CISPO gamma 1", baseline="cispo", weight="focal"),
    Arm("hard_upweight", "weight 1 + (1 - success rate)", weight="hard_upweight"),
    Arm("step", "weight 1 up to success rate .5, 0 above", weight="step", parameters=(0.5,)),
    _focal(1.0, name="focal_easiest_half", label="F-GRPO gamma 1 on the easiest half", easiest_half=True),
    Arm("hard_upsampled", "prompts of the harder half three times as often", hard_repeats=3),
    Arm("entropy", "entropy bonus .01", settings={"entropy_coef": 0.01}),
    Arm("kl", "KL term .05", settings={"beta": 0.05, "use_bias_correction_kl": False}),
    Arm("sgd", "SGD, GRPO", optimizer="sgd"),
    _focal(1.0, name="focal_sgd", label="SGD, F-GRPO gamma 1", baseline="sgd", optimizer="sgd"),
)

ARMS: Mapping[str, Arm] = MappingProxyType({arm.name: arm for arm in _ARMS})
"""All arms by name."""
CORE = tuple(arm.name for arm in _ARMS[:7])
"""GRPO at N = 2, 8, 32; F-GRPO at N = 8 with gamma .5 and 1; the two controls of step size."""


def select_arms(names: str) -> list[Arm]:
    """Arms from `core`, `all`, or names separated by commas; the baseline of each is added where it is missing.

    Raises:
        ValueError: If a name is unknown; with the nearest one.
    """
    chosen: Sequence[str] = {"core": CORE, "all": tuple(ARMS)}.get(names) or [one.strip() for one in names.split(",")]
    baselines = [ARMS[one_of("--arms, if neither core nor all,", name, ARMS)].baseline for name in chosen]
    wanted = {*chosen, "grpo_n8", *baselines}
    return [arm for name, arm in ARMS.items() if name in wanted]
