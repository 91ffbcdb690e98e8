"""Pages of the site that are written from the objects they describe: proofs, sources, commands, logged keys, API.

mkdocs calls `on_startup`, `on_config` and `on_files`; everything else is a function from objects to Markdown.
"""

import importlib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.main import get_command

from fgrpo.citation import bibliography
from fgrpo.cli import app
from fgrpo.llm.diagnostics import COLUMNS, SUCCESS_KEYS, WEIGHT_KEYS
from fgrpo.report import markdown_table
from fgrpo.theory.proofs import PROOFS, to_markdown

ROOT = Path(__file__).resolve().parents[1]

WIDTH = 84  # columns of a help text: what fits beside the two tables of contents

MODULES = {
    "api/llm.md": (
        "fgrpo.llm",
        "config trainer summary diagnostics settings presets data contract rewards rewards.math_reward "
        "rewards.matching rewards.completions verl_focal verl_score evaluation.sampling evaluation.models",
    ),
    "api/package.md": (
        "fgrpo",
        "advice counts diagnosis.diagnose diagnosis.model evaluation rare_probe reproduce drawing studies reported "
        "claims.ledger claims.model doctor citation",
    ),
}
"""What is shown of packages that do not list their public names: page, package, modules."""


def on_startup(command: str, dirty: bool) -> None:
    """Lays out the package as it is installed, by links, for mkdocstrings: it does not see through the folder map."""
    package = ROOT / "build" / "docs-source" / "fgrpo"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    folders = [*(ROOT / "src" / "fgrpo").iterdir(), *(ROOT / name for name in ("theory", "simulate", "figures", "llm"))]
    for path in folders:
        (package / path.name).symlink_to(path)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the reports of experiments, which commands write into docs/experiments, into the navigation."""
    [found] = [part["What was found"] for part in config.nav or [] if "What was found" in part]
    reports = sorted((ROOT / "docs" / "experiments").rglob("*.md"))
    found += [path.relative_to(ROOT / "docs").as_posix() for path in reports]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are written here."""
    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def pages() -> dict[str, str]:
    """Every written page, by its place in the site."""
    return {
        "proofs.md": proofs_page(),
        "sources.md": sources_page(),
        "commands.md": commands_page(),
        "training-keys.md": training_keys_page(),
        "api/theory.md": names_page("fgrpo.theory"),
        "api/simulate.md": names_page("fgrpo.simulate"),
        "api/figures.md": names_page("fgrpo.figures"),
        **{page: modules_page(package, modules.split()) for page, (package, modules) in MODULES.items()},
    }


def proofs_page() -> str:
    """All proofs: statement, assumptions, source, steps, and what must fail."""
    intro = (
        "# Proofs\n\nWritten from the objects in `fgrpo.theory.proofs`. `fgrpo prove` runs them: a step is checked by "
        "sympy for symbolic N, k and any number of actions, or it rests on a lemma that is named. Each proof has a "
        "false variant that its checks must refuse. Equations have their numbers in version 1 (v1) and version 2 (v2) "
        "of the paper.\n"
    )
    return "\n".join([intro, *map(to_markdown, PROOFS.values())])


def sources_page() -> str:
    """The bibliography, with the keys that docstrings use."""
    entries = (f"## {key}\n\n```bibtex\n{entry}\n```\n" for key, entry in bibliography().items())
    return "\n".join(
        ["# Sources\n\nDocstrings name sources by these keys; `fgrpo cite KEY` prints an entry.\n", *entries]
    )


def commands_page() -> str:
    """The help text of every command."""
    intro = "# Commands\n\nWhat `fgrpo COMMAND --help` prints; `fgrpo --install-completion` sets up completion.\n"
    return "\n".join([intro, *(f"## {name}\n\n```text\n{text}\n```\n" for name, text in help_texts())])


def help_texts() -> Iterator[tuple[str, str]]:
    """Full name and help text of the command line and of each of its commands."""
    yield from _help_texts(get_command(app), "fgrpo", None)


def _help_texts(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    context = command.context_class(
        command, info_name=name.split()[-1], parent=parent, terminal_width=WIDTH, **command.context_settings
    )
    yield name, command.get_help(context)
    for sub in getattr(command, "commands", {}).values():
        yield from _help_texts(sub, f"{name} {sub.name}", context)


def training_keys_page() -> str:
    """The table of what the trainer logs."""

    def table(rows: Mapping[str, str], header: str) -> str:
        return markdown_table([header, "meaning"], [[f"`{key}`", meaning] for key, meaning in rows.items()])

    return f"""# What a training run logs

Written from `fgrpo.llm.diagnostics`. `fgrpo train` and `FocalGRPOTrainer` log these beside TRL's own keys, to whatever
`report_to` names. Values are means over the generations since the last entry. In evaluation the keys of the first table
appear with `eval_` before them; weights are not applied there.

## Success rates
{table(SUCCESS_KEYS, "key")}

## Weights, in training only
{table(WEIGHT_KEYS, "key")}

## Columns of the tables of completions
With `log_completions`, beside TRL's own; the column `advantage` is the weighted one. `fgrpo diagnose` reads these.

{table(COLUMNS, "column")}
"""


def names_page(package: str) -> str:
    """The public names of a sub-package, by the module that defines them."""
    module = importlib.import_module(package)
    by_module: dict[str, list[str]] = {}
    for name in module.__all__:
        defined_in = getattr(getattr(module, name), "__module__", None) or package
        by_module.setdefault(defined_in, []).append(name)
    parts = [f"# {package}\n\n{module.__doc__}"]
    for defined_in, names in sorted(by_module.items()):
        parts.append(f"## {defined_in}\n" + "".join(f"\n::: {defined_in}.{name}\n" for name in names))
    return "\n".join(parts)


def modules_page(package: str, modules: Iterable[str]) -> str:
    """The public names of some modules of a package that lists none."""
    parts = [f"# {package}\n"]
    for name in modules:
        parts.append(f"::: {package}.{name}\n    options:\n      heading_level: 2\n      show_root_full_path: true\n")
    return "\n".join(parts)
