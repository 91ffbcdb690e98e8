"""What `fgrpo.simulate` exports: all that it imports, and the types that its functions return."""

import typing
from types import ModuleType
from typing import Any

from fgrpo import simulate


def test_exports_are_all_there_is() -> None:
    public = {name for name in vars(simulate) if not name.startswith("_")}
    assert {name for name in public if not isinstance(getattr(simulate, name), ModuleType)} == set(simulate.__all__)


def test_types_that_functions_return_and_take_are_public() -> None:
    import pandas as pd

    hints: list[Any] = []
    for name in simulate.__all__:
        value = getattr(simulate, name)
        if callable(value) and not isinstance(value, type):
            hints += typing.get_type_hints(value, localns={"pd": pd}).values()
    ours = {
        part.__name__
        for hint in hints
        for part in (hint, *typing.get_args(hint))
        if getattr(part, "__module__", "").startswith("fgrpo.")
    }
    assert {"Arm", "RunConfig", "SweepStatus"} <= ours <= set(simulate.__all__)
