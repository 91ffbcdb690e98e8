"""Language models: TRL's GRPO trainer with the focal weight of theory and simulation, and what it needs around it.

Names are imported when first used (PEP 562): torch, transformers and TRL are heavy, and come with the extra `llm`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fgrpo.llm.config import FocalGRPOConfig as FocalGRPOConfig
    from fgrpo.llm.summary import FocalSummaryCallback as FocalSummaryCallback
    from fgrpo.llm.trainer import FocalGRPOTrainer as FocalGRPOTrainer
    from fgrpo.llm.trainer import FocalWeightMixin as FocalWeightMixin

_MODULES = {
    "FocalGRPOConfig": "config",
    "FocalGRPOTrainer": "trainer",
    "FocalSummaryCallback": "summary",
    "FocalWeightMixin": "trainer",
}

__all__ = ["FocalGRPOConfig", "FocalGRPOTrainer", "FocalSummaryCallback", "FocalWeightMixin"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"fgrpo.llm.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'fgrpo.llm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
