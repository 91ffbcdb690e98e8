"""What a run returns: its measures over the recorded steps, and their table."""

from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fgrpo.simulate.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]


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

    def to_frame(self) -> "pd.DataFrame":
        """Tidy table: one row per recorded step; run_id, reading, the flattened config, engine, versions, measures."""
        import pandas as pd

        config = self.config
        constant: dict[str, Any] = {"run_id": config.run_id, "reading": config.reading}
        constant |= {one.name: getattr(config, one.name) for one in fields(config)}
        constant |= asdict(constant.pop("policy")) | asdict(constant.pop("update"))
        constant["beta1"], constant["beta2"] = constant.pop("betas")
        constant |= {"engine": self.engine, **versions()}
        measures = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("config", "engine")}
        return pd.DataFrame(constant | measures)


def versions() -> dict[str, str]:
    """Versions that a result depends on, by column name."""
    return {"fgrpo_version": version("fgrpo"), "numpy_version": np.__version__}
