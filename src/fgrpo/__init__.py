"""F-GRPO toolkit: theory, exact simulation and language-model training for group-relative RL with verifiable rewards.

The public names of `fgrpo.theory` and `fgrpo.simulate` are available here; they are imported when first used (PEP 562).
"""

import importlib
from typing import Any

_EXPORTS = {
    "fgrpo.theory": (
        "active_probability",
        "coverage_group_size",
        "focal_weight",
        "peak_group_size",
        "tail_miss_probability",
    ),
    "fgrpo.simulate": (
        "PolicyConfig",
        "RunConfig",
        "Trajectory",
        "UpdateConfig",
        "load_results",
        "paper_sweep",
        "run_sweep",
        "simulate",
    ),
}
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}
_SUBPACKAGES = ("figures", "llm", "simulate", "theory")

__all__ = ["__version__", *sorted(_HOME), *_SUBPACKAGES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("fgrpo")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _SUBPACKAGES:
        return importlib.import_module(f"fgrpo.{name}")
    raise AttributeError(f"module 'fgrpo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
