"""What `fgrpo.figures` exports: every function that gives data, draws, or says what is drawn."""

import importlib
import inspect
import pkgutil
from types import ModuleType

from fgrpo import figures

OURS = ("figure_", "plot_")
ENDS = ("_data", "_alt_text", "_diagram", "_style")


def test_exports_are_all_there_is() -> None:
    public = {name for name in vars(figures) if not name.startswith("_")}
    assert {name for name in public if not isinstance(getattr(figures, name), ModuleType)} == set(figures.__all__)


def test_every_figure_and_panel_is_public() -> None:
    made = {
        name
        for module in pkgutil.iter_modules(figures.__path__, "fgrpo.figures.")
        for name, value in vars(importlib.import_module(module.name)).items()
        if inspect.isfunction(value) and value.__module__ == module.name
        if name.startswith(OURS) or name.endswith(ENDS)
    }
    assert len(made) > 40
    assert made - {"page_style"} <= set(figures.__all__)  # page_style serves the report of a diagnosis
