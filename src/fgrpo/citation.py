"""How to cite: the bibliography that docstrings refer to by key, as BibTeX."""

import re
from collections.abc import Sequence
from importlib.resources import files

from fgrpo.theory._validation import one_of

THIS_PROJECT = "fgrpo2026toolkit"
PAPER = "plyusov2026fgrpo"


def bibliography() -> dict[str, str]:
    """Every entry as BibTeX, by its key, in the order of the file that the package carries."""
    text = files("fgrpo").joinpath("data", "references.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{(\w+),.*?^\}$", text, flags=re.M | re.S)
    blocks = re.split(r"\n\n(?=@)", text.strip())
    return dict(zip(entries, blocks, strict=True))


def cite(keys: Sequence[str] = ()) -> str:
    """BibTeX of some entries, a blank line between them.

    Args:
        keys: Keys as docstrings have them in brackets, such as 'holm1979stepdown'; none: this project and the paper.

    Raises:
        ValueError: If there is no such key.
    """
    entries = bibliography()
    return "\n\n".join(entries[one_of("key", key, tuple(entries))] for key in keys or (THIS_PROJECT, PAPER))
