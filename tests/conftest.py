"""Hypothesis profiles: few, repeatable examples for every change; FGRPO_HYPOTHESIS_PROFILE=acceptance for many."""

import os

from hypothesis import HealthCheck, settings

_common = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=100, **_common)
settings.register_profile("acceptance", max_examples=100_000, **_common)
settings.load_profile(os.environ.get("FGRPO_HYPOTHESIS_PROFILE", "default"))
