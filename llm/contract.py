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


def check_class(trainer_class: type, mixin: type) -> None:
    """Refuse a trainer class whose bases do not have the methods that the focal weight hangs on.

    Every class behind `mixin` that defines one of them is looked at, not `GRPOTrainer` alone.

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
    behind = trainer_class.__mro__[trainer_class.__mro__.index(mixin) + 1 :]
    for name, expected in PARAMETERS.items():
        rule = f"{name} must take ({', '.join(expected)})"
        definitions = [base for base in behind if name in vars(base)]
        if not definitions:
            raise ValueError(f"{behind[0].__name__}.{rule}, got no such method: {_way_out()}")
        for base in definitions:
            parameters = inspect.signature(vars(base)[name]).parameters
            hands_on = any(one.kind is one.VAR_POSITIONAL for one in parameters.values())
            if tuple(parameters) != expected and not hands_on:
                raise ValueError(f"{base.__name__}.{rule}, got ({', '.join(parameters)}): {_way_out()}")
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
