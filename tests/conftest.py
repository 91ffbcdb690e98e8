"""Hypothesis: few, repeatable examples for every change; `make acceptance` sets FGRPO_HYPOTHESIS_EXAMPLES to many."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fgrpo",
    max_examples=int(os.environ.get("FGRPO_HYPOTHESIS_EXAMPLES", "100")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fgrpo")
