"""The bibliography and the docstrings that rest on it: every key cited is there, every entry is used."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("theory", "simulate", "figures", "llm", "src")
KEY = re.compile(r"\[([a-z]+\d{4}[a-z]+)\]")


def entries(text: str) -> dict[str, dict[str, str]]:
    """Fields of every entry of a BibTeX file by its key."""
    found = {}
    for block in re.split(r"^@", text, flags=re.M)[1:]:
        head, *fields = block.splitlines()
        key = head.partition("{")[2].rstrip(",")
        pairs = (re.fullmatch(r"\s*(\w+)\s*=\s*\{(.*)\},?", line) for line in fields)
        assert key not in found, f"{key} stands twice"
        found[key] = {pair[1]: pair[2] for pair in pairs if pair}
    return found


@cache
def docstrings() -> dict[str, str]:
    """All docstrings of each module of the package, by its path."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return {
        path.relative_to(ROOT).as_posix(): "\n".join(
            ast.get_docstring(node) or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)
        )
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }


def is_used(key: str, fields: dict[str, str], text: str) -> bool:
    """By its key, by its title (CITATION.cff), or in words: a first author followed closely by the year."""
    author = fields["author"].partition(",")[0]
    in_words = re.search(rf"{author}\b[^.]{{0,60}}(et al\. )?\(?{fields['year']}", text)
    return f"[{key}]" in text or fields["title"].replace("{", "").replace("}", "") in text or in_words is not None


BIBLIOGRAPHY = entries((ROOT / "src" / "fgrpo" / "data" / "references.bib").read_text())


def test_entries_are_complete() -> None:
    assert len(BIBLIOGRAPHY) > 10
    for key, fields in BIBLIOGRAPHY.items():
        assert {"title", "author", "year"} <= fields.keys(), key
        assert re.fullmatch(r"[a-z]+\d{4}[a-z]+", key), key
        assert fields["year"] in key, key


def test_every_key_cited_is_there() -> None:
    cited = {key: path for path, text in docstrings().items() for key in KEY.findall(text)}
    assert "holm1979stepdown" in cited  # the pattern finds something
    assert {key: path for key, path in cited.items() if key not in BIBLIOGRAPHY} == {}


@pytest.mark.parametrize("key", BIBLIOGRAPHY)
def test_every_entry_is_used(key: str) -> None:
    documents = [ROOT / "README.md", ROOT / "CITATION.cff", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join([*docstrings().values(), *(path.read_text() for path in documents)])
    assert is_used(key, BIBLIOGRAPHY[key], text)


def test_unused_and_unknown_would_be_noticed() -> None:
    fields = {"author": "Nobody, N.", "year": "1901", "title": "{Nothing}"}
    assert not is_used("nobody1901nothing", fields, "Nobody knew. In 1901, nothing")
    assert is_used("nobody1901nothing", fields, "see Nobody and Sons 1901, Algorithm 1")
    assert KEY.findall("shape [A], [..., A] and [1900a]; see [nobody1901nothing]") == ["nobody1901nothing"]
