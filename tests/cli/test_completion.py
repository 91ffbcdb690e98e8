"""Completion in the shell: commands, sub-commands and options are offered."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("fgrpo do", {"doctor"}), ("fgrpo sweep r", {"run", "readings"}), ("fgrpo cite --he", {"--help"})],
)
def test_bash(typed: str, offered: set[str]) -> None:
    typed_so_far = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    environment = {**os.environ, **typed_so_far, "_FGRPO_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", "import sys; from fgrpo.cli import main; sys.exit(main([]))"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split()) == offered
