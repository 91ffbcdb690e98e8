"""Hypothesis: few, repeatable examples for every change; FGRPO_HYPOTHESIS_EXAMPLES sets how many `make acceptance` runs."""

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
