"""`fgrpo doctor`: what it says follows from what is installed, and from the folder and the devices that it finds."""

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from fgrpo import doctor
from fgrpo.cli import main

ABILITIES = {
    "core": "theory, proofs, figures, claims, sweeps, diagnosis",
    "llm": "fgrpo train",
    "distributed": "sweeps on a dask scheduler",
}


def pretend(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str | None], gpus: tuple[str, ...] = ()) -> None:
    """Has the doctor find these versions (None: not there) in place of the real ones, and these GPUs."""

    def found(name: str) -> str:
        there = versions.get(name, "9999" if name != "trl" else "1.16.0")
        if there is None:
            raise PackageNotFoundError(name)
        return there

    monkeypatch.setattr(doctor, "version", found)
    monkeypatch.setattr(doctor, "_gpus", lambda: gpus)


def ability(health: doctor.Health, name: str) -> doctor.Ability:
    [found] = [one for one in health.abilities if one.name == name]
    return found


def test_here(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--out", str(tmp_path / "new"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["python"] == platform.python_version()
    assert found["versions"]["numpy"] == version("numpy")
    assert found["missing"]["core"] == []
    assert found["cores"] >= 1
    assert found["free_gb"] > 0
    assert not (tmp_path / "new").exists()  # it only looks
    assert main(["doctor", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"numpy {version('numpy')}" in lines[3]
    assert {line[:5] for line in lines[5:]} <= {"yes  ", "no   "}
    assert len(lines[5:]) == len(found["abilities"])


def test_extras_are_those_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {})
    health = doctor.examine()
    assert {"numpy", "numba", "trl", "torch", "distributed", "jupytext", "verl", "vllm"} <= health.versions.keys()
    assert not {"ruff", "mkdocs-material"} & health.versions.keys()  # for maintainers
    assert health.missing == dict.fromkeys(("core", *doctor.FOR_USERS), ())
    assert [one.name for one in health.abilities if not one.works] == ["sweeps on a GPU"]


@pytest.mark.parametrize(
    ("package", "there", "part", "words"),
    [
        ("trl", None, "llm", "lacks trl<1.17,>=1.14: pip install -c constraints.txt -e '.[llm]' in the checkout"),
        (
            "trl",
            "1.13",
            "llm",
            "lacks trl<1.17,>=1.14 (found 1.13): pip install -c constraints.txt -e '.[llm]'",
        ),
        ("trl", "1.17.0", "llm", "(found 1.17.0)"),
        ("distributed", None, "distributed", "pip install -c constraints.txt -e '.[distributed]' in the checkout"),
        ("scipy", "1.14", "core", "(found 1.14): pip install -c constraints.txt -e '.' in the checkout"),
    ],
)
def test_what_is_missing_is_said(
    monkeypatch: pytest.MonkeyPatch, package: str, there: str | None, part: str, words: str
) -> None:
    pretend(monkeypatch, {package: there})
    health = doctor.examine()
    one = ability(health, ABILITIES[part])
    assert not one.works
    assert words in one.note
    assert health.works == (part != "core")
    others = [found for name, found in ABILITIES.items() if name != part]
    assert all(ability(health, name).works for name in others)


def test_a_broken_core_has_an_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(monkeypatch, {"numpy": "1.26"})
    assert main(["doctor"]) == 1
    assert "numpy>=2.0 (found 1.26)" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    assert main(["doctor", "--out", str(file)]) == 1
    assert f"{file} cannot be written" in capsys.readouterr().out
    assert file.read_text() == "kept"


def test_a_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"vllm": "0.20", "verl": None}, ("Imagined (139 GB)",))
    health = doctor.examine()
    assert "Imagined (139 GB)" in doctor.health_text(health).splitlines()[1]
    assert ability(health, "sweeps on a GPU").works
    assert ability(health, "fgrpo train").note == "on the GPU"
    assert ability(health, "fgrpo train with vLLM").note == "vllm 0.20"
    assert not ability(health, "focal weights in verl").works
