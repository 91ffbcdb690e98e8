"""What `fgrpo.theory` exports: names that can be told from its modules."""

import importlib
import pkgutil
from types import ModuleType

from fgrpo import theory


def test_no_public_name_hides_a_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(theory.__path__)}
    assert {"tail_miss", "baseline", "pass_estimates", "utilities"} <= modules
    assert not modules & set(theory.__all__)
    for name in modules:
        assert isinstance(importlib.import_module(f"fgrpo.theory.{name}"), ModuleType)
        assert isinstance(getattr(theory, name), ModuleType)


def test_exports_are_all_there_is() -> None:
    assert len(set(theory.__all__)) == len(theory.__all__)
    public = {name for name, value in vars(theory).items() if not name.startswith("_")}
    assert {name for name in public if not isinstance(getattr(theory, name), ModuleType)} == set(theory.__all__)


def test_every_function_of_a_registry_is_public() -> None:
    assert {weight.__name__ for weight in theory.WEIGHTS.values()} <= set(theory.__all__)
