"""The page of a diagnosis: what it holds, and that a browser shows it, light and dark, without network or error."""

import json
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from fgrpo.diagnosis.diagnose import diagnose
from fgrpo.diagnosis.page import page, write_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: apt-get install chromium")
HEADINGS = ["Warnings", "Success and activity", "Tail misses", "Prompts", "What a focal weight would have done"]
HEADINGS += ["In words and numbers"]


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    generator = random.Random(1)
    rows = [
        {"prompt": f"<b>{p} & co</b>", "step": step, "reward": float(generator.random() < (p + 1) / 8 + step / 20)}
        for step in range(12)
        for p in range(6)
        for _ in range(8)
    ]
    (folder / "<run>.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_page(diagnose(folder / "<run>.jsonl", windows=4), folder / "page.html")
    return folder / "page.html"


class Elements(HTMLParser):
    """Tags with their attributes, and the text of headings."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self.tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.tag = tag

    def handle_endtag(self, tag: str) -> None:
        self.tag = ""

    def handle_data(self, data: str) -> None:
        if self.tag == "h2":
            self.headings.append(data)


def test_what_the_page_holds(html: Path) -> None:
    text = html.read_text()
    elements = Elements()
    elements.feed(text)
    assert elements.headings == HEADINGS
    tags = [tag for tag, _ in elements.found]
    assert tags.count("svg") == 4
    assert not {"script", "img", "image", "iframe", "b"} & set(tags)  # prompts are escaped
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert targets <= set(ids)
    addresses = {
        a for _, attributes in elements.found for n, a in attributes.items() if n in ("src", "href", "xlink:href")
    }
    assert all(a is not None and (a.startswith("#") or a == "data:,") for a in addresses)
    assert "default-src 'none'" in text
    assert "Tail-miss estimate at 0.05: " in text


def test_drawings_have_alternative_text_and_the_colour_of_the_page(html: Path) -> None:
    for drawing in re.findall(r"<svg.*?</svg>", html.read_text(), flags=re.DOTALL):
        root = ElementTree.fromstring(drawing)
        assert root.get("role") == "img"
        named = (root.get("aria-labelledby") or "").split()
        texts = {one.get("id"): one.text for one in root.iter() if one.get("id") in named}
        assert set(texts) == set(named)
        assert all(len(text or "") > 20 for text in texts.values())
        assert "currentColor" in drawing
        assert "#010203" not in drawing
        sizes = [float(size) for size in re.findall(r"font(?:-size)?: ?([\d.]+)px", drawing)]
        assert sizes
        assert min(sizes) >= 7  # of 504: 12 px on a page of 900


def test_one_window_and_no_active_group(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("prompt_id,step,reward\n" + "a,0,1\n" * 4)
    text = page(diagnose(path))
    assert text.count("<svg") == 3  # no strength to draw
    assert "one window" in text
    assert page(diagnose(path, rare_fractions=[])).count("<svg") == 2


def browse(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Chromium on the page, with no host reachable by name or proxy."""
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    command += [
        f"--user-data-dir={folder / 'profile'}",
        "--proxy-server=127.0.0.1:9",
        "--disable-background-networking",
    ]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120, check=True)


@needs_chromium
def test_a_browser_shows_it_without_an_error(html: Path, tmp_path: Path) -> None:
    done = browse(tmp_path, "--enable-logging=stderr", "--dump-dom", html.as_uri())
    assert done.stdout.count("<svg role") == 4
    assert done.stdout.count("<figcaption>") == 4
    assert "CONSOLE" not in done.stderr
    broken = tmp_path / "broken.html"  # the check would see what the policy forbids
    broken.write_text(html.read_text().replace("</body>", '<img src="https://nowhere.invalid/a.png"></body>'))
    assert "CONSOLE" in browse(tmp_path, "--enable-logging=stderr", "--dump-dom", broken.as_uri()).stderr


@needs_chromium
@pytest.mark.parametrize(("scheme", "ground_is_light"), [(1, True), (0, False)])
def test_it_is_legible_on_light_and_dark_ground(html: Path, tmp_path: Path, scheme: int, ground_is_light: bool) -> None:
    shot = tmp_path / "shot.png"
    options = ["--window-size=1000,1600", f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={shot}"]
    browse(tmp_path, *options, html.as_uri())
    light = imread(shot)[..., :3].mean(axis=-1)
    ground = float(np.median(light))
    assert (ground > 0.9) if ground_is_light else (ground < 0.15)
    ink = light < 0.2 if ground_is_light else light > 0.8
    assert 0.005 < ink.mean() < 0.2
    rows = ink[400:].any(axis=1)  # below the facts: headings, axes and words of the plots
    assert rows.mean() > 0.3
