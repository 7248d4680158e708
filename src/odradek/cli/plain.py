"""Reads command lines that need no help: known options with good values, arguments that fit.

Everything else is None, and typer's: help, completion, mistakes, `-n5`, `--`. Pure: words in, values out.
"""

from collections.abc import Sequence
from typing import Any

from odradek.cli.declaring import REQUIRED, Argument, Option, Parameter


def read(parameters: Sequence[Parameter], words: Sequence[str]) -> dict[str, Any] | None:
    """The values of a command's parameters by name."""
    if not all(word and _is_text(word) for word in words):
        return None
    flags = _flags(parameters)
    given: dict[str, list[Any]] = {}
    plain: list[str] = []
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "-" or not word.startswith("-"):
            plain.append(word)
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        parameter, meant = flags.get(flag, (None, None))
        if parameter is None:
            return None
        if parameter.is_flag:
            if equals:
                return None
        elif equals:
            meant = _convert(parameter, value)
        else:
            meant = _convert(parameter, rest.pop()) if rest else None
        if meant is None:
            return None
        given.setdefault(parameter.name, []).append(meant)
    return _filled(parameters, given) if _place(parameters, plain, given) else None


def _is_text(word: str) -> bool:
    """Bytes that are not UTF-8 come as surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _flags(parameters: Sequence[Parameter]) -> dict[str, tuple[Parameter, bool | None]]:
    """Every flag, and what it means by itself."""
    found: dict[str, tuple[Parameter, bool | None]] = {}
    for parameter in parameters:
        if isinstance(parameter.declared, Option):
            for flag in parameter.declared.flags:
                on, _, off = flag.partition("/")
                found[on] = parameter, True if parameter.is_flag else None
                if off:
                    found[off] = parameter, False
    return found


def _place(parameters: Sequence[Parameter], plain: list[str], given: dict[str, list[Any]]) -> bool:
    """Whether words without a flag fit the arguments: one each, all that are left for a list."""
    for parameter in parameters:
        if isinstance(parameter.declared, Argument) and plain:
            count = len(plain) if parameter.is_list else 1
            values = [_convert(parameter, word) for word in plain[:count]]
            if None in values:
                return False
            given[parameter.name] = values
            plain = plain[count:]
    return not plain


def _filled(parameters: Sequence[Parameter], given: dict[str, list[Any]]) -> dict[str, Any] | None:
    values = {}
    for parameter in parameters:
        found = given.get(parameter.name)
        if found is None:
            if parameter.default is REQUIRED:
                return None
            values[parameter.name] = parameter.default
        else:
            values[parameter.name] = found if parameter.is_list else found[-1]
    return values


def _convert(parameter: Parameter, text: str) -> Any:
    """The value; None for one to be complained about."""
    if parameter.type is int:
        digits = text[1:] if text.startswith("-") else text
        if not (digits.isascii() and digits.isdigit()):
            return None
        number = int(text)
        least = parameter.declared.min if isinstance(parameter.declared, Option) else None
        return None if least is not None and number < least else number
    if parameter.type is float:
        whole, _, part = text.partition(".")
        return float(text) if whole.isascii() and whole.isdigit() and (part or "0").isdigit() else None
    return parameter.type(text) if text else None
