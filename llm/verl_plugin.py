"""What verl loads through the entry point group `verl.plugins`: importing this module registers `focal_grpo`.

verl (0.9.1) imports it in every process that imports verl, and swallows whatever it raises: a failure shows only when
the estimator is looked up. Without verl the import does nothing.
"""

import importlib.util

from fgrpo.llm.verl_focal import focal_grpo

NAME = "focal_grpo"
"""The estimator's name in verl: `algorithm.adv_estimator=focal_grpo`."""


def register() -> bool:
    """Register the estimator with verl, if verl is installed; registering again changes nothing.

    Returns:
        Whether verl is there.
    """
    if importlib.util.find_spec("verl") is None:
        return False
    from verl.trainer.ppo.core_algos import register_adv_est

    register_adv_est(NAME)(focal_grpo)
    return True


register()
