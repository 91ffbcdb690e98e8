"""Grids of runs: every combination of lists of values, given in Python, as text, or in a YAML file."""

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from fgrpo.simulate._checks import whole_number
from fgrpo.simulate.config import RunConfig, UpdateConfig
from fgrpo.simulate.policy_config import PolicyConfig
from fgrpo.theory._validation import one_of, shown

LARGEST_SWEEP = 10**6
NESTED: dict[str, type] = {"policy": PolicyConfig, "update": UpdateConfig}
# one value of these is a list
_LISTS = ("betas", "classes")


def _ordered_fields() -> tuple[str, ...]:
    """What a sweep may vary, in the order of its runs: the last one varies fastest."""
    own = [one.name for one in fields(RunConfig)]
    nested = [one.name for kind in NESTED.values() for one in fields(kind)]
    first, last = ["preset", "group_size", "gamma"], ["seed"]
    return (*first, *(name for name in own + nested if name not in first + last), *last)


FIELDS = _ordered_fields()


def sweep_grid(**values: Any) -> list[RunConfig]:
    """One run for each combination of the values.

    Args:
        values: By field of RunConfig, PolicyConfig or UpdateConfig: one value, or a list of them; `policy` and `update`
            may hold those of their own fields in a dictionary. A value of `betas` is a pair, one of `classes` a list of
            classes. Further `preset`, the update rule that the other fields change (see RunConfig.preset; the default
            is "figure_matching"), and `seeds`, a count K for the seeds 0 to K - 1.

    Returns:
        The runs, in an order that depends on the values alone: by preset, group size, gamma, the other fields, seed.

    Raises:
        ValueError: If a field is unknown or given twice, a list is empty, a value is invalid, `group_size` is missing,
            or there are more than a million combinations.
    """
    given = flat_fields(values)
    if "seeds" in given:
        if "seed" in given:
            raise ValueError("seeds must be given as a count or as themselves, got both: leave out seed or seeds")
        way_out = "pass how many seeds, or seed for one of your choice"
        given["seed"] = range(whole_number("seeds", given.pop("seeds"), way_out, minimum=1, maximum=LARGEST_SWEEP))
    axes = {name: _axis(name, given[name]) for name in FIELDS if name in given}
    runs = math.prod(map(len, axes.values()))
    if runs > LARGEST_SWEEP:
        raise ValueError(f"a sweep must have at most {LARGEST_SWEEP} runs, got {runs}: pass shorter lists")
    presets = axes.pop("preset", ["figure_matching"])
    return [
        RunConfig.preset(preset, **dict(zip(axes, combination, strict=True)))
        for preset in presets
        for combination in product(*axes.values())
    ]


def flat_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `sweep_grid`, those within `policy` and `update` beside the others.

    Raises:
        ValueError: If a field is unknown or given twice.
    """
    flat: dict[str, Any] = {}
    for key, value in values.items():
        name = one_of("a field of a sweep", key, [*FIELDS, "seeds"])
        within = value if name in NESTED and isinstance(value, Mapping) else {name: value}
        for inner, one in within.items():
            if name in NESTED and within is value:
                one_of(f"a field of {name}", inner, [field.name for field in fields(NESTED[name])])
            if inner in flat:
                raise ValueError(f"each field must be given once, got {inner} twice: leave one of them out")
            flat[inner] = one
    return flat


def _axis(name: str, value: Any) -> list[Any]:
    """The values along one field."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        return [value]
    items = list(value)
    if not items:
        raise ValueError(f"{name} must be one value or a list of them, got none: pass at least one, or leave it out")
    of_lists = all(isinstance(one, list | tuple) or one is None for one in items)
    return items if name not in _LISTS or of_lists else [value]


def listed_values(option: str, text: str) -> list[Any]:
    """Values separated by commas, each written as in YAML: 2,8 or [0.9,0.999],[0.8,0.99].

    Raises:
        ValueError: If the text is nothing of that kind.
    """
    rule = f"{option} must be values separated by commas, got {shown(text)}: write for example 2,8,32"
    values = _load(f"[{text}]", rule)
    if not isinstance(values, list):
        raise ValueError(rule)
    return values


def read_grid(path: str | os.PathLike[str], others: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of `sweep_grid` in a YAML file, flat, and what it says under the `others` of the names.

    Raises:
        ValueError: If the file is no YAML mapping, or a name is unknown or given twice.
        OSError: If it cannot be read.
    """
    rule = (
        f"a sweep file must be YAML with a value or a list for each name, got {path}: write for example gamma: [0, 1]"
    )
    content = _load(Path(path).read_bytes(), rule)
    if not isinstance(content, dict):
        raise ValueError(rule)
    others = tuple(others)
    for key in content:
        one_of(f"a name in {path}", key, [*FIELDS, "seeds", *others])
    return (
        flat_fields({key: value for key, value in content.items() if key not in others}),
        {key: value for key, value in content.items() if key in others},
    )


class _Loader(yaml.SafeLoader):
    """Knows 1e-3 as a number, which YAML 1.1 takes for a text, and refuses a name that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        if len(set(map(str, names))) < len(names):
            raise yaml.constructor.ConstructorError(problem="a name given twice", problem_mark=node.start_mark)
        return dict(super().construct_mapping(node, deep))


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _load(text: str | bytes, rule: str) -> Any:
    try:
        return yaml.load(text, _Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        place = f" (line {error.problem_mark.line + 1}: {error.problem})" if error.problem_mark else ""
        raise ValueError(f"{rule}{place}") from None
    except (yaml.YAMLError, ValueError, RecursionError):  # yaml lets errors of its constructors through
        raise ValueError(rule) from None
