"""Complaints in the words of the command line: options by the names that were typed, and a way out of every misuse."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from typer.exceptions import TyperException

_KINDS = {"number": "a number", "integer": "a whole number"}
_DECIMAL_COMMA = re.compile(r"([+-]?\d*),(\d+)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?,?")


def as_typed(message: str, command: Any, arguments: Sequence[str]) -> str:
    """A message of the library with the options of a command in place of the arguments that they stand for.

    Names of several words, such as group_size, are options wherever they stand, unless quoted or part of a path; single
    words, such as gamma, only where the rule is about them ("gamma must be"). With a file of settings only what was
    typed beside it is an option.

    Args:
        message: One line.
        command: The root of the command line, as typer builds it.
        arguments: What was typed behind the name of the program.
    """
    words = iter(arguments)
    while hasattr(command, "commands"):
        command = command.commands.get(next(words, ""))
    given = {word.partition("=")[0] for word in arguments}
    for option in (name for parameter in getattr(command, "params", ()) for name in parameter.opts):
        if not option.startswith("--") or ("--config" in given and option not in given):
            continue
        name = option.removeprefix("--").replace("-", "_")
        place = rf"(?<![\w'\"./-]){name}(?!['\"/\w]|\.\w)" if "_" in name else rf"(^|(?<=: )){name}(?= must )"
        message = re.sub(place, option, message)
    return message


def misuse(error: TyperException, arguments: Sequence[str]) -> str:
    """What typer refuses, on one line that ends with a way out."""
    message = error.format_message().rstrip(".").replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    help_page = f"try `{'fgrpo' if context is None else context.command_path} --help`"
    if wrong_value := re.match(r"Invalid value for '(--[\w-]+)': Input should be a valid (number|integer)", message):
        option, kind = wrong_value.groups()
        from fgrpo.theory._validation import shown

        value = _value_of(option, arguments)
        comma = _DECIMAL_COMMA.fullmatch(value)
        way_out = f"write a decimal point, {comma[1]}.{comma[2]}" if comma and kind == "number" else help_page
        return f"{option} must be {_KINDS[kind]}, got {shown(value)}: {way_out}"
    further = re.match(r"Got unexpected extra argument.*\((.*)\)$", message)
    if further and all(map(_NUMBER.fullmatch, words := further[1].split())):
        listed = ",".join(word.rstrip(",") for word in words)
        return f"{message}: lists are separated by commas without spaces, such as --group-size 2,{listed}"
    return f"{message}: {help_page}"


def _value_of(option: str, arguments: Sequence[str]) -> str:
    """The value of an option as it was typed, the last one if there are several."""
    values = [value for word, value in pairwise(arguments) if word == option]
    values += [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]
    return values[-1] if values else ""
