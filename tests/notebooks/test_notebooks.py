"""Notebooks: text and ipynb are one thing, every cell runs, and the stored outputs are those of these cells."""

import importlib.util
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest
from filelock import FileLock
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
LARGEST = 1_000_000  # bytes


def _refresh() -> ModuleType:
    spec = importlib.util.spec_from_file_location("refresh", NOTEBOOKS / "refresh.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


refresh = _refresh()
each = pytest.mark.parametrize("name", refresh.names())


def stored(name: str) -> NotebookNode:
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def sources(notebook: NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def kinds(cell: NotebookNode) -> list[Any]:
    """What a cell put out: names of streams, and types of content."""
    return [output.get("name") or sorted(output.data) for output in cell.get("outputs", [])]


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


@pytest.fixture
def run(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[[NotebookNode], NotebookNode]:
    """Execute at the small sizes, one kernel at a time in one folder, with a base model of little training."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "of-all-notebooks"
    folder = shared / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    for variable, value in {
        "FGRPO_FAST": "1",
        "HF_HUB_OFFLINE": "1",
        "IPYTHONDIR": str(shared / "ipython"),
        "OMP_NUM_THREADS": "1",
        "XDG_CACHE_HOME": str(shared / "cache"),
    }.items():
        monkeypatch.setenv(variable, value)

    def call(notebook: NotebookNode) -> NotebookNode:
        with FileLock(shared / "kernel.lock"):
            if "train" in str(notebook):
                _little_training(shared / "cache" / "fgrpo")
            executed: NotebookNode = refresh.clean(refresh.execute(notebook, folder))
            return executed

    return call


def _little_training(cache: Path) -> None:
    """The base model of 60 steps where the notebooks look for that of 400."""
    from fgrpo.llm.tiny_world.pretraining import base_model_folder

    if not any(cache.glob("tiny-0-400-*/config.json")):
        made = base_model_folder(steps=60, cache=cache)
        made.rename(cache / made.name.replace("-60-", "-400-"))


def test_there_are_seven_notebooks() -> None:
    assert [name[:2] for name in refresh.names()] == [f"{number}_" for number in range(1, 8)]
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(refresh.names())


@each
def test_text_and_notebook_are_in_sync(name: str) -> None:
    text, notebook = refresh.read_text(name), stored(name)
    assert sources(text) == sources(notebook), "run python notebooks/refresh.py, or jupytext --sync"
    assert notebook.metadata.jupytext.formats == text.metadata.jupytext.formats == "ipynb,py:percent"


@each
def test_a_notebook_says_what_the_reader_can_do_after_it(name: str) -> None:
    first = stored(name).cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith(f"# {name[0]}. ")
    assert "After this page you can\n" in first.source
    for target in re.findall(r"\]\((\w+\.ipynb)\)", (NOTEBOOKS / f"{name}.py").read_text()):
        assert (NOTEBOOKS / target).is_file()


@each
def test_stored_outputs_tell_nothing_of_the_run(name: str) -> None:
    notebook = stored(name)
    assert json.dumps(notebook) == json.dumps(refresh.clean(stored(name)))
    assert (NOTEBOOKS / f"{name}.ipynb").stat().st_size < LARGEST
    for output in outputs(notebook):
        output.get("data", {}).pop("image/png", None)  # its letters may spell anything
    text = json.dumps(notebook)
    assert not re.search(r"/(tmp|home|Users|root)/|iopub|T\d\d:\d\d:\d\d", text)
    for output in outputs(notebook):
        assert output.output_type != "error"
        assert output.get("name") != "stderr", output.text


@each
def test_pictures_have_an_alternative_text_and_a_caption(name: str) -> None:
    cells = stored(name).cells
    for number, cell in enumerate(cells):
        pictures = [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
        for picture in pictures:
            alt = picture.metadata["image/png"]["alt"]
            assert len(alt) > 30
            assert picture.data["text/plain"] == alt
        if pictures:
            [words, *_] = [after.source for after in cells[number + 1 :] if after.cell_type == "markdown"]
            assert words.startswith("*"), words


@each
def test_every_cell_runs(name: str, run: Callable[[NotebookNode], NotebookNode]) -> None:
    executed = run(refresh.read_text(name))
    for cell, kept in zip(executed.cells, stored(name).cells, strict=True):
        assert kinds(cell) == kinds(kept), cell.source


def test_diagrams_are_static_without_ipywidgets(run: Callable[[NotebookNode], NotebookNode]) -> None:
    notebook = refresh.read_text("4_regime_diagrams")
    [place] = [number for number, cell in enumerate(notebook.cells) if "from ipywidgets" in cell.source]
    absent = nbformat.v4.new_code_cell("import sys\nsys.modules['ipywidgets'] = None")
    notebook.cells = [absent, *notebook.cells[: place + 1]]
    assert kinds(run(notebook).cells[-1]) == [["image/png", "text/plain"]]


def test_a_failing_cell_fails(run: Callable[[NotebookNode], NotebookNode]) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2")])
    with pytest.raises(CellExecutionError, match="1 == 2"):
        run(notebook)
