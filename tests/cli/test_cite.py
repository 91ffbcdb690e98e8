"""`fgrpo cite`: BibTeX of this project and the paper, or of the keys asked for."""

import re
from pathlib import Path

import pytest
import yaml

import fgrpo
from fgrpo.citation import bibliography
from fgrpo.cli import main

ROOT = Path(__file__).parents[2]


def test_this_project_and_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite"]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^@(\w+)\{(\w+),$", printed, flags=re.M) == [
        ("software", "fgrpo2026toolkit"),
        ("article", "plyusov2026fgrpo"),
    ]
    assert printed.count("{") == printed.count("}")
    # the same as CITATION.cff, which GitHub reads
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    fields = dict(re.findall(r"^  (\w+) *= \{(.*)\},?$", printed.partition("\n\n")[0], flags=re.M))
    assert fields["title"] == cff["title"]
    assert fields["version"] == str(cff["version"]) == fgrpo.__version__
    assert fields["author"] == "{" + cff["authors"][0]["name"] + "}"
    paper = dict(re.findall(r"^  (\w+) *= \{(.*)\},?$", printed.partition("\n\n")[2], flags=re.M))
    [reference] = cff["references"]
    assert paper["title"].replace("{", "").replace("}", "") == reference["title"]
    assert paper["author"].split(" and ") == [
        f"{author['family-names']}, {author['given-names']}" for author in reference["authors"]
    ]
    assert reference["identifiers"][0]["value"] in paper["journal"]


def test_every_key_gives_its_own_entry(capsys: pytest.CaptureFixture[str]) -> None:
    keys = list(bibliography())
    assert len(keys) > 10
    assert main(["cite", *reversed(keys)]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^@\w+\{(\w+),$", printed, flags=re.M) == keys[::-1]
    shipped = (ROOT / "src" / "fgrpo" / "data" / "references.bib").read_text()
    assert sorted(printed.split()) == sorted(shipped.split())  # nothing is lost


def test_a_wrong_key_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite", "holm1979"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("got 'holm1979': did you mean 'holm1979stepdown'?\n")
    assert captured.err.count("\n") == 1
