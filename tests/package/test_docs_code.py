"""Every code block of README and docs runs or is parsed, and so is the example in every command's help.

Blocks of a page share a namespace and an empty folder. `python` is executed, `pycon` and `console` are compared with
what they show ('...' stands for anything), `bash` is parsed by bash, and its fgrpo commands by fgrpo. A comment
`<!-- compiled only: REASON -->` above a python block says that it needs what tests do not have.
"""

import doctest
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from fgrpo.cli import app, main
from fgrpo.llm.settings import read_settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?:^<!-- compiled only: (?P<reason>.+) -->\n)?^(?P<indent> *)```(?P<language>.*)\n", flags=re.M)
SHELL_OPERATORS = {"|", ">", "&&", "||", ";"}


class Block(NamedTuple):
    """A fenced block of a page: where it stands, its language and text, and whether it is only compiled."""

    place: str
    language: str
    text: str
    compiled_only: bool


def blocks(text: str, name: str) -> Iterator[Block]:
    position = 0
    while fence := FENCE.search(text, position):
        end = text.index(f"\n{fence['indent']}```", fence.end() - 1)
        place = f"{name}:{text.count(chr(10), 0, fence.end())}"
        yield Block(place, fence["language"], text[fence.end() : end + 1], fence["reason"] is not None)
        position = end + len(fence["indent"]) + 4


def parse(words: list[str]) -> Any:
    """The context of a command line that fgrpo would take, without running it."""
    command = get_command(app)
    context = command.make_context("fgrpo", list(words))
    while isinstance(command, TyperGroup):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context


def commands_in(script: str) -> Iterator[list[str]]:
    """The arguments of each fgrpo command in a script of bash."""
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if "fgrpo" in words and "install" not in words:
            rest = words[words.index("fgrpo") + 1 :]
            end = next((at for at, word in enumerate(rest) if word in SHELL_OPERATORS), len(rest))
            yield rest[:end]


def run(block: Block, namespace: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    match block.language:
        case "python":
            code = compile(block.text, block.place, "exec")
            if not block.compiled_only:
                exec(code, namespace)
        case "pycon":
            example = doctest.DocTestParser().get_doctest(block.text, namespace, block.place, block.place, 0)
            report: list[str] = []
            outcome = doctest.DocTestRunner().run(example, out=report.append, clear_globs=False)
            assert outcome.attempted > 0
            assert outcome.failed == 0, "".join(report)
        case "console":
            steps = re.split(r"^\$ ", block.text, flags=re.M)
            assert steps[0] == "", f"{block.place} must begin with a command"
            for step in steps[1:]:
                command, _, expected = step.partition("\n")
                program, *arguments = shlex.split(command)
                assert program == "fgrpo"
                capsys.readouterr()
                assert main(arguments) == 0, f"{block.place}: {command}"
                shown = capsys.readouterr().out
                alike = doctest.OutputChecker().check_output(expected, shown, doctest.ELLIPSIS)
                assert alike, f"{block.place}: {command}\n{shown}"
        case "bash":
            subprocess.run(["bash", "-n"], input=block.text, check=True, text=True)
            for words in commands_in(block.text):
                context = parse(words)
                if context.info_name == "train" and not context.params["config"].startswith("my_"):
                    read_settings(context.params["config"], context.params["model"], context.args)  # TRL's own keys
        case other:
            assert other == "text", f"{block.place}: a block must say what it is"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_of_a_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fgrpo.simulate.batches.available_cores", lambda: 1)  # no processes to start
    text = page.read_text(encoding="utf-8")
    found = list(blocks(text, page.name))
    assert len(re.findall(r"^ *```", text, flags=re.M)) == 2 * len(found)
    assert len(re.findall(r"^<!-- compiled only", text, flags=re.M)) == sum(block.compiled_only for block in found)
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in found:
        run(block, namespace, capsys)


def test_the_tour_is_short() -> None:
    [tour] = re.findall(r"^## Tour$.*?^## ", (ROOT / "README.md").read_text(), flags=re.M | re.S)
    shown = [block for block in blocks(tour, "README.md") if block.language in ("console", "pycon")]
    assert [block.language for block in shown] == ["console", "pycon"]
    assert all(len(block.text.splitlines()) <= 20 for block in shown)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("```python\n1 / 0\n```\n", "division by zero"),
        ("<!-- compiled only: slow -->\n```python\n1 +\n```\n", "invalid syntax"),
        ("```pycon\n>>> 1 + 1\n3\n```\n", "assert 1 == 0|Expected"),
        ("```console\n$ fgrpo cite nothing\n```\n", "cite nothing"),
        ("```console\n$ fgrpo --version\nfgrpo 0.0\n```\n", "fgrpo --version"),
        ("```bash\nfgrpo tail-miss --success-rates .3\n```\n", "No such option"),
        ("```bash\nfgrpo train --config grpo --num_generation 8\n```\n", "num_generation"),
        ("```bash\nmake it; fgrpo sweep walk\n```\n", "No such command"),
        ("```bash\nif fgrpo\n```\n", "non-zero exit"),
        ("```\nanything\n```\n", "must say what it is"),
    ],
)
def test_what_is_wrong_is_noticed(page: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    [block] = blocks(page, "page")
    with pytest.raises(Exception, match=words):
        run(block, {}, capsys)


def test_the_same_put_right_passes(capsys: pytest.CaptureFixture[str]) -> None:
    page = "```pycon\n>>> 1 + 1\n2\n```\n\n```console\n$ fgrpo --version\nfgrpo ...\n```\n\n```bash\nfgrpo cite\n```\n"
    for block in blocks(page, "page"):
        run(block, {}, capsys)


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(command, TyperGroup):
        for key, sub in command.commands.items():
            yield from leaves(sub, f"{name} {key}")
    else:
        yield name, command


COMMANDS = dict(leaves(get_command(app), "fgrpo"))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_that_parses(name: str) -> None:
    help_text = COMMANDS[name].help
    examples = [" ".join(part.split()) for part in re.findall(r"Example: (.*?)(?:\n\n|\Z)", help_text, flags=re.S)]
    assert len(examples) == 1
    for line in re.split(r",? then ", examples[0]):
        program, *words = shlex.split(line)
        assert program == "fgrpo"
        parse(words)
    assert name in examples[0]
