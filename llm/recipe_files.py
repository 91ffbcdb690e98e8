"""Recipes as files: the YAML in `recipes/` is written from the presets, and read as `trl grpo` reads its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from fgrpo.llm.presets import METHODS, Preset, preset, tiny_preset
from fgrpo.theory import _validation as check

FOLDER = Path(__file__).parent / "recipes"
RECIPES = ("tiny", *METHODS)
"""Names of complete recipes."""
ADDITIONS = ("vllm_colocate", "vllm_server")
"""Names of files that complete a recipe: `--config focal_grpo,vllm_colocate`."""
LAUNCHES = ("fsdp2", "zero3")
"""Names of the configurations for `accelerate launch`."""


@dataclass(frozen=True)
class Layers:
    """What `--config` names, in the order in which later keys win.

    Attributes:
        recipe: Name of the recipe at the bottom, or None.
        values: Keys of the files above it.
        environment: Their `env` blocks.
    """

    recipe: str | None
    values: Mapping[str, Any]
    environment: Mapping[str, str]


def read_layers(config: str) -> Layers:
    """Read what `--config` names: a recipe or YAML files, separated by commas; the last one wins.

    Args:
        config: Names of recipes or paths, such as `focal_grpo`, `mine.yaml` or `focal_grpo,vllm_colocate`.

    Returns:
        The layers; `env` blocks are taken apart from the keys.

    Raises:
        ValueError: If a name is unknown, a recipe does not come first, or a file is not a YAML mapping.

    Source: the convention of TRL's TrlParser, with several files.
    """
    recipe: str | None = None
    values: dict[str, Any] = {}
    environment: dict[str, str] = {}
    for place, name in enumerate(config.split(",")):
        if name in RECIPES:
            if place:
                raise ValueError(f"a recipe must come first in --config, got {config}: put {name} in front")
            recipe = name
        else:
            content = read_yaml(FOLDER / f"{name}.yaml" if name in ADDITIONS else _file(name))
            environment |= _environment(content.pop("env", None), name)
            values |= content
    return Layers(recipe, values, environment)


def _file(name: str) -> Path:
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise ValueError(f"--config must be a file that exists, got {name!r}: check the path")
        return path
    valid = (*RECIPES, *ADDITIONS)
    check.one_of("--config", name, valid)
    raise AssertionError("unreachable: read_layers knows the valid names")


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        ValueError: If the file is no YAML mapping with text keys.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(path)!r} must be YAML, got damage ({error}): write one key: value a line") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ValueError(
            f"{str(path)!r} must be a YAML mapping, got {check.shown(content)}: write one key: value a line"
        )
    return content


def _environment(block: Any, name: str) -> dict[str, str]:
    if block is None:
        return {}
    if not isinstance(block, dict):
        raise ValueError(f"env in {name} must be a mapping, got {check.shown(block)}: write NAME: value below env:")
    return {str(key): str(value) for key, value in block.items()}


def recipe_text(recipe: Preset) -> str:
    """A recipe as YAML, with its notes as comments."""
    command = f"fgrpo train --config {recipe.name}"
    head = [*_comment(f"{recipe.summary}."), *_comment(f"Written from fgrpo.llm.presets. Run: {command}")]
    if recipe.name != "tiny":
        head += _comment(
            "By its name this recipe fits its batch to the number of processes, --model and --num_generations; as a "
            "file it is taken as it stands."
        )
    lines = [*head, ""]
    for key, value in recipe.keys.items():
        lines += _comment(recipe.notes[key]) if key in recipe.notes else []
        lines.append(yaml_line(key, value))
    return "\n".join(lines) + "\n"


def yaml_line(key: str, value: Any) -> str:
    """A key and its value on one line of YAML."""
    import yaml

    text = str(yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False))
    return f"{key}: " + text.rstrip().removesuffix("...").rstrip()  # the document's end


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in wrap(text, 110)]


def recipe_texts() -> dict[str, str]:
    """Every recipe file that is written from a preset, by its name in `recipes/`."""
    presets = [tiny_preset(), *(preset(method) for method in METHODS)]
    return {f"{recipe.name}.yaml": recipe_text(recipe) for recipe in presets}


if __name__ == "__main__":
    for file_name, text in recipe_texts().items():
        (FOLDER / file_name).write_text(text, encoding="utf-8")
