"""What is shipped: the folder map, the wheel, an empty environment, and what an import costs."""

import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import fgrpo

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = {"fgrpo": "src/fgrpo", **{f"fgrpo.{name}": name for name in ("figures", "llm", "simulate", "theory")}}


def shipped_files() -> dict[str, Path]:
    """Every file in the package folders that a user needs, by its place in the wheel."""
    return {
        f"{package.replace('.', '/')}/{path.relative_to(ROOT / folder).as_posix()}": path
        for package, folder in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    # from a copy of what git would give: a stale build/ in the tree would ship deleted modules
    source = out / "source"
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    for target, path in shipped_files().items():
        package = next(p for p in sorted(FOLDERS, reverse=True) if target.startswith(p.replace(".", "/") + "/"))
        copy = source / FOLDERS[package] / path.relative_to(ROOT / FOLDERS[package])
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("*.whl"))


def test_every_subpackage_is_listed() -> None:
    found = {
        ".".join([package, *path.parent.relative_to(ROOT / folder).parts])
        for package, folder in FOLDERS.items()
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert set(SETTINGS["tool"]["setuptools"]["packages"]) == found


def test_every_module_and_data_file_is_in_the_wheel(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == set(shipped_files())


def test_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints, str(wheel)]
    subprocess.run(install, check=True, capture_output=True, cwd=tmp_path)
    code = (
        "import sys, fgrpo, fgrpo.figures, fgrpo.llm, fgrpo.cli\n"
        "assert 'env' in fgrpo.theory.__file__\n"
        "figure = fgrpo.figures.figure_2()\n"
        "assert 'torch' not in sys.modules and 'trl' not in sys.modules\n"
        "assert fgrpo.cli.main(['cite']) == 0 and fgrpo.cli.main(['doctor']) == 0\n"
        "print(fgrpo.tail_miss_probability(0.5, 0.25, 2))"
    )
    done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *before, last = done.stdout.splitlines()
    assert float(last) == 0.25
    assert "@article{plyusov2026fgrpo," in before  # the bibliography is in the wheel
    assert any(
        line.startswith("no   fgrpo train ") and "pip install -c constraints.txt -e '.[llm]'" in line for line in before
    )


def test_public_names_are_those_of_the_subpackages() -> None:
    names = {*fgrpo.theory.__all__, *fgrpo.simulate.__all__}
    assert len(names) == len(fgrpo.theory.__all__) + len(fgrpo.simulate.__all__)
    assert names | {"__version__", "figures", "llm", "simulate", "theory"} == set(dir(fgrpo))
    for name in dir(fgrpo):
        assert getattr(fgrpo, name) is not None
    modules = {path.stem for path in (ROOT / "src" / "fgrpo").iterdir()}
    assert not names & modules  # a module would hide a name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fgrpo.nothing  # noqa: B018


def modules_after(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter has loaded after a statement, which may print."""
    code = f"import sys\n{statement}\nprint('\\n', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.rsplit("\n", 2)[-2].split())


HEAVY = {"torch", "trl", "transformers", "sympy", "matplotlib", "pandas", "pyarrow", "numba", "llvmlite"}
TAIL_MISS = ["tail-miss", "--success-rate", "0.3", "--rare-mass", "0.03"]


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import fgrpo", {*HEAVY, "scipy"}),
        ("from fgrpo.cli import main; main(['--help'])", {*HEAVY, "scipy"}),
        (f"from fgrpo.cli import main; assert main({TAIL_MISS}) == 0", HEAVY),
        ("from fgrpo.cli import main; assert main(['cite']) == 0", HEAVY),
        ("from fgrpo.cli import main; main(['doctor', '--help'])", {*HEAVY, "scipy"}),
        ("from fgrpo.cli import main; main(['claims', '--help'])", {*HEAVY, "scipy"}),
        ("import fgrpo.llm", {*HEAVY, "scipy"}),
        ("import fgrpo.simulate", HEAVY),
        ("import fgrpo.theory", HEAVY),
        ("from fgrpo import counts", {"fgrpo.theory", "fgrpo.simulate"}),
        ("import fgrpo; fgrpo.counts.read_counts", {"fgrpo.theory", "fgrpo.simulate"}),
    ],
)
def test_imports_stay_light(statement: str, unwanted: set[str]) -> None:
    loaded = modules_after(statement)
    assert "fgrpo" in loaded
    assert not unwanted & loaded


def test_imports_between_folders_go_one_way() -> None:
    allowed = {
        "theory": {"theory"},
        "simulate": {"simulate", "theory"},
        "figures": {"figures", "simulate", "theory"},
        "llm": {"llm", "theory"},
    }
    for folder, may_import in allowed.items():
        for path in (ROOT / folder).rglob("*.py"):
            for imported in re.findall(r"^\s*(?:from|import) fgrpo(?:\.(\w+))?", path.read_text(), flags=re.M):
                assert imported in may_import, f"{path.relative_to(ROOT)} imports fgrpo.{imported}"


def test_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "fgrpo", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"fgrpo {fgrpo.__version__}\n"


def test_tracked_text_names_no_machine() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    home = str(Path.home()) + "/"
    for name in (name for name in tracked.split("\0") if (ROOT / name).is_file()):  # not those just deleted
        text = (ROOT / name).read_bytes()
        assert str(ROOT).encode() not in text, name
        assert home.encode() not in text, name
