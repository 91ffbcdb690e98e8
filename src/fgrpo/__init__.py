"""F-GRPO toolkit: theory, exact simulation and language-model training for group-relative RL with verifiable rewards.

The public names of `fgrpo.theory` and `fgrpo.simulate` are also available here. Sub-packages and names are imported
when first used (PEP 562), so that `import fgrpo` costs nothing.
"""

import importlib
import importlib.util
from typing import Any

_SUBPACKAGES = ("figures", "llm", "simulate", "theory")
_WITH_NAMES_HERE = ("theory", "simulate")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("fgrpo")
    if not name.startswith("_"):
        # first, so that `from fgrpo import counts` does not import theory and simulate in search of such a name
        if importlib.util.find_spec(f"fgrpo.{name}") is not None:
            return importlib.import_module(f"fgrpo.{name}")
        for subpackage in _WITH_NAMES_HERE:
            module = importlib.import_module(f"fgrpo.{subpackage}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'fgrpo' has no attribute {name!r}")


def __dir__() -> list[str]:
    public = (importlib.import_module(f"fgrpo.{subpackage}").__all__ for subpackage in _WITH_NAMES_HERE)
    return sorted({"__version__", *_SUBPACKAGES, *(name for names in public for name in names)})
