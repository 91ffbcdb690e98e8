"""The site builds without a warning and has what its objects have; README's links, picture and numbers are right."""

import html
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from PIL import Image
from typer.core import TyperGroup
from typer.main import get_command

from fgrpo.citation import bibliography
from fgrpo.cli import app
from fgrpo.llm.diagnostics import COLUMNS, SUCCESS_KEYS, WEIGHT_KEYS
from fgrpo.theory.proofs import PROOFS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out


def text_of(page: Path) -> str:
    """What a reader of the page sees, with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))).split())


def test_pages_have_what_their_objects_have(site: Path) -> None:
    proofs = text_of(site / "proofs.html")
    for proof in PROOFS.values():
        said = (proof.statement, *proof.assumptions, *(step.text for step in proof.steps), proof.wrong.counterexample)
        for sentence in (*said, *(step.lemma for step in proof.steps)):
            assert " ".join(sentence.replace("`", "").split()) in proofs, proof.name  # Markdown has eaten no sign
    keys = text_of(site / "training-keys.html")
    for name, meaning in {**SUCCESS_KEYS, **WEIGHT_KEYS, **COLUMNS}.items():
        shown = meaning.replace("`", "")
        assert f"{name} {shown}" in keys or name + shown in keys, name
    sources = text_of(site / "sources.html")
    assert all(f"{{{key}," in sources for key in bibliography())


@pytest.mark.parametrize("package", ["theory", "simulate", "figures", "llm", "llm.rewards"])
def test_every_public_name_is_in_the_reference(site: Path, package: str) -> None:
    module = importlib.import_module(f"fgrpo.{package}")
    page = (site / "api" / f"{package.partition('.')[0]}.html").read_text(encoding="utf-8")
    documented = {identifier.rpartition(".")[2] for identifier in re.findall(r'id="(fgrpo\.[\w.]+)"', page)}
    named_by_verl = {"focal_grpo", "compute_score"} if package == "llm" else set()
    assert {*module.__all__, *named_by_verl} <= documented


def test_every_command_is_on_its_page(site: Path) -> None:
    page = text_of(site / "commands.html")
    commands = [("fgrpo", get_command(app))]
    for name, command in commands:  # which grows while it is read
        assert f"Usage: {name} " in page
        if isinstance(command, TyperGroup):
            commands += [(f"{name} {key}", sub) for key, sub in command.commands.items()]
    assert len(commands) > 15


def test_every_page_is_in_the_navigation() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    listed = set(re.findall(r"[\w/-]+\.md", str(navigation)))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not page.startswith("experiments/")} <= listed  # docs/hooks.py lists those


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", (ROOT / name).read_text(encoding="utf-8"))
    here = [link for link in links if not link.startswith("https://")]
    assert all((ROOT / link).exists() for link in here), here


def test_files_that_contributing_names_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:docs|figures|llm|simulate|src|tests|theory)/[\w/.-]+)`", text)) - {"docs/log.md"}
    assert len(named) > 15
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_make_target_is_in_the_help_and_in_contributing() -> None:
    makefile, contributing = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "CONTRIBUTING.md"))
    parts_of_test = {"lint", "types", "unit"}
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()) - {"help", *parts_of_test}
    [said] = re.findall(r"^\t@echo \"CONTRIBUTING.md has the others: (.*)\"$", makefile, re.MULTILINE)
    assert targets == {"reproduce", "test", *said.split(", ")}
    assert targets == set(re.findall(r"^\| `make (\w+)` \|", contributing, re.MULTILINE))


def test_the_picture_says_what_it_shows() -> None:
    [(alternative_text, path)] = re.findall(r"!\[(.+)\]\((.+)\)", README)
    with Image.open(ROOT / path) as image:
        assert image.info["Description"] == alternative_text
        assert image.convert("RGBA").getextrema()[3] == (255, 255)  # opaque: legible on a dark page as well
    assert (ROOT / path).stat().st_size < 150_000


def test_numbers_of_the_readme_are_those_of_the_reports() -> None:
    claims = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    counts = re.findall(r"^\| \*\*[\w ]+\*\* \| .+ \| (\d+) \|$", claims, flags=re.M)
    assert len(counts) == 5
    [found] = re.findall(r"Of the paper's.*?decided here", README, flags=re.S)
    assert re.findall(r"\d+", found) == [str(sum(map(int, counts))), *counts]
    log = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")
    intervals = re.findall(r"[+-]\.\d+ ± \.\d+", README)
    assert len(intervals) >= 3
    assert [interval for interval in intervals if interval not in log] == []
