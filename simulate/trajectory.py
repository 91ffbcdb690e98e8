"""What a run returns: its measures over the recorded steps, and their table."""

import json
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.config import RunConfig
from fgrpo.theory._validation import FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One run's measures, each an array over the recorded steps, shape [R].

    Attributes:
        config: The run.
        engine: Name of the engine that computed it.
        step: Recorded steps: 0, each multiple of record_every, and the last step.
        correct_mass: Q_pos, total probability of the correct actions.
        retained_mass: M_ret, Eq 26 (v1 and v2).
        entropy: Of the policy, in nats.
        correct_entropy: Of the policy given a correct action, in nats.
        correct_overlap: 1 - total variation to the start, both given a correct action.
        share_improved: Share of correct actions more probable than at the start.
        worst_drop: Largest loss of probability of a correct action since the start.
        anchor_mass: Probability of the anchor.
        active_share: Share of active groups since the previous record; NaN at step 0.
        mean_weight: Mean weight of the active groups since the previous record; NaN where there were none.
        distinct_correct: Mean number of different correct actions per group since the previous record; NaN at step 0.
        leaf_tail_miss: Share of the leaves that this step's group, if active, missed; NaN at step 0.
        leaf_tail_miss_probability: Its expectation before the draw; NaN at step 0.
        unsampled_correct_mass: Mass of the correct actions not in this step's group, before its update; NaN at step 0.
        unsampled_correct_mass_change: Its change by this step's update; NaN at step 0.
        device: What the engine ran on.
        start: "policy", or "logits" for a start that was passed to the engine and that `config` does not know.
        snapshots: Probabilities after the steps asked for, shape [snapshots, actions]; None if none was.

    fgrpo.simulate.metrics has the definitions.
    """

    config: RunConfig
    engine: str
    step: NDArray[np.int64]
    correct_mass: FloatArray
    retained_mass: FloatArray
    entropy: FloatArray
    correct_entropy: FloatArray
    correct_overlap: FloatArray
    share_improved: FloatArray
    worst_drop: FloatArray
    anchor_mass: FloatArray
    active_share: FloatArray
    mean_weight: FloatArray
    distinct_correct: FloatArray
    leaf_tail_miss: FloatArray
    leaf_tail_miss_probability: FloatArray
    unsampled_correct_mass: FloatArray
    unsampled_correct_mass_change: FloatArray
    device: str = "cpu"
    start: str = "policy"
    snapshots: FloatArray | None = None

    def to_frame(self) -> "pd.DataFrame":
        """Tidy table: one row per recorded step; run_id, reading, the flattened config, engine, versions, measures.

        `classes` is their JSON text, empty for the three of the paper; `leaf_class` is the index that was taken.
        """
        import pandas as pd

        config = self.config
        constant: dict[str, Any] = {"run_id": config.run_id, "reading": config.reading}
        constant |= {one.name: getattr(config, one.name) for one in fields(config)}
        constant |= asdict(constant.pop("policy")) | asdict(constant.pop("update"))
        constant["beta1"], constant["beta2"] = constant.pop("betas")
        constant["classes"] = json.dumps(constant["classes"]) if constant["classes"] else ""
        constant["leaf_class"] = config.policy.leaf_class_index
        constant |= {"engine": self.engine, "device": self.device, "start": self.start, **versions()}
        measures = {name: getattr(self, name) for name in ("step", *MEASURES)}
        return pd.DataFrame(constant | measures)


# the columns over the recorded steps, in their order
MEASURES = tuple(one.name for one in fields(Trajectory) if one.type == FloatArray)


def versions() -> dict[str, str]:
    """Versions that a result depends on, by column name."""
    return {"fgrpo_version": version("fgrpo"), "numpy_version": np.__version__}
