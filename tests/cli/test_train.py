"""`fgrpo train` at the command line: what it says without starting anything, and that it stays light."""

import subprocess
import sys

import pytest

from fgrpo.cli import main
from fgrpo.llm.recipe_files import RECIPES


def test_help_needs_no_torch() -> None:
    code = (
        "import sys\nfrom fgrpo.cli import main\nmain(['train', '--help'])\n"
        "assert not {'torch', 'trl', 'transformers', 'datasets', 'yaml'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for option in ("--config", "--model", "--dry-run", "--recipes", "--overwrite", "--resume", "--quiet"):
        assert option in done.stdout


def test_recipes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--recipes"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(RECIPES)


def test_without_the_extra_it_says_which_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("fgrpo.llm.settings")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "trl", None)
    assert main(["train"]) == 2
    assert capsys.readouterr().err == (
        "fgrpo: fgrpo train needs the extra llm, got no module trl: pip install 'fgrpo[llm]'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "focal"], "fgrpo: --config must be one of tiny, grpo"),
        (["--config"], "fgrpo: Option '--config' requires an argument"),
        (
            ["--learning_rte", "1"],
            "fgrpo: every key must be one of TRL's or a focal one, got 'learning_rte': did you mean",
        ),
        (["--config", "focal_grpo", "--model"], "fgrpo: Option '--model' requires an argument"),
    ],
)
def test_bad_arguments_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["train", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1
