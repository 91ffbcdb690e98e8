"""What the focal weight relies on in TRL, checked when a trainer is built: private methods change without notice."""

import inspect
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

from packaging.specifiers import SpecifierSet
from trl import GRPOTrainer

SUPPORTED_TRL = ">=1.14,<1.17"
"""Releases of TRL that the tests ran with: the newest in `make test`, the oldest in `make acceptance`."""

PARAMETERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "_calculate_rewards": ("self", "inputs", "prompts", "completions", "completion_ids_list"),
        "_generate_and_score_completions": ("self", "inputs"),
        "_log_completion_extra": ("self", "column", "values"),
    }
)
"""The methods of TRL's trainer that are overridden or called, with their parameters."""

ATTRIBUTES = (
    "_logs",
    "_metrics",
    "_pending_extra_logs",
    "_step",
    "environments",
    "num_generations",
    "num_generations_eval",
    "reward_func_names",
)
"""The attributes of TRL's trainer that are read or written."""


def check_class(trainer_class: type) -> None:
    """Refuse a trainer class whose base does not have the methods that the focal weight hangs on.

    Warns:
        UserWarning: If the installed TRL is outside `SUPPORTED_TRL`, though its methods look as expected.

    Raises:
        ValueError: If the class is not built on `GRPOTrainer` (the asynchronous trainer makes its advantages in another
            process), or a method is missing or takes other parameters.
    """
    if not issubclass(trainer_class, GRPOTrainer):
        bases = ", ".join(base.__name__ for base in trainer_class.__bases__)
        raise ValueError(
            f"focal weights need a subclass of GRPOTrainer, got {trainer_class.__name__}({bases}): trainers with their "
            "own pipeline, the asynchronous one among them, make advantages where the weight cannot reach them"
        )
    for name, expected in PARAMETERS.items():
        method = getattr(GRPOTrainer, name, None)
        found = None if method is None else tuple(inspect.signature(method).parameters)
        if found != expected:
            shown = "no such method" if found is None else f"({', '.join(found)})"
            raise ValueError(f"GRPOTrainer.{name} must take ({', '.join(expected)}), got {shown}: {_way_out()}")
    if version("trl") not in SpecifierSet(SUPPORTED_TRL, prereleases=True):
        warnings.warn(f"trl {version('trl')} is not among the tested releases {SUPPORTED_TRL}", stacklevel=3)


def check_trainer(trainer: Any) -> None:
    """Refuse a trainer, as TRL built it, that lacks an attribute that is read or written here.

    Raises:
        ValueError: If one is missing.
    """
    for name in ATTRIBUTES:
        if not hasattr(trainer, name):
            raise ValueError(f"a GRPOTrainer must have the attribute {name}, got none: {_way_out()}")


def changed(what: str, received: str) -> ValueError:
    """The error for behaviour of TRL that is not as expected: `what` should be, `received` is."""
    return ValueError(f"{what}, got {received}: {_way_out()}")


def _way_out() -> str:
    return f"trl {version('trl')} works otherwise than expected, install trl{SUPPORTED_TRL}"
