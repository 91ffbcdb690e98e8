"""Executes the notebooks and writes them with their outputs, without what changes from one time or machine to the next.

    python notebooks/refresh.py                 all of them, at full size (minutes)
    python notebooks/refresh.py 1_tail_miss     one of them; FGRPO_FAST=1 for the small sizes that the tests use

The text files (NAME.py, jupytext's percent format) are the source; NAME.ipynb is made from them.
"""

import os
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parent
_WIDGET = "application/vnd.jupyter.widget-view+json"


def names() -> list[str]:
    """The notebooks, in their order."""
    return sorted(path.stem for path in FOLDER.glob("[0-9]*.py"))


def read_text(name: str) -> NotebookNode:
    """The notebook of a text file, without outputs."""
    return jupytext.read(FOLDER / f"{name}.py")


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Execute all cells in a fresh kernel that runs in `folder`; a cell that fails raises CellExecutionError."""
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute()


def clean(notebook: NotebookNode) -> NotebookNode:
    """The notebook with nothing in it that tells when, where and with which versions it was executed.

    Streams of one kind that follow one another are joined, for how they are cut is a matter of timing. Widgets are
    left out: they are nothing without their kernel.
    """
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata.pop("execution", None)
        outputs: list[NotebookNode] = []
        for output in cell.get("outputs", []):
            last = outputs[-1] if outputs else None
            if last is not None and output.output_type == "stream" and last.get("name") == output.name:
                last.text += output.text
            elif _WIDGET not in output.get("data", {}):
                outputs.append(output)
        if cell.cell_type == "code":
            cell.outputs = outputs
    notebook.metadata = NotebookNode(
        jupytext={"formats": "ipynb,py:percent"},
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    return notebook


def main() -> None:
    """Refresh the notebooks that the command line names, or all."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from fgrpo.llm.tiny_world.pretraining import base_model_folder

    base_model_folder()  # made before, so that no output speaks of the folder where it is kept
    for name in sys.argv[1:] or names():
        print(name, flush=True)
        notebook = clean(execute(read_text(name), FOLDER))
        nbformat.write(notebook, FOLDER / f"{name}.ipynb")


if __name__ == "__main__":
    main()
