"""Commands as this package declares them: nouns, verbs, arguments and options, without typer.

typer and what it imports take longer than most commands. So plain.py reads a correct command line from these
declarations; app.py makes typer's out of them for everything else: help, completion, mistakes.
"""

import inspect
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin

Complete = Callable[[str], list[str]]


class Option(NamedTuple):
    """`flags` is what a user writes: `-n`, `--count`; `--on/--off` sets True or False."""

    flags: tuple[str, ...]
    help: str
    metavar: str | None = None
    show_default: bool = True
    min: int | None = None
    autocompletion: Complete | None = None


class Argument(NamedTuple):
    """A value without a flag."""

    metavar: str
    help: str
    show_default: bool = True
    autocompletion: Complete | None = None


def option(*flags: str, help: str, **details: Any) -> Option:
    return Option(flags, help, **details)


class Parameter(NamedTuple):
    """One argument or option of a command. `type` is that of one value; `default` is REQUIRED without one."""

    name: str
    type: type
    is_list: bool
    default: Any
    declared: Option | Argument

    @property
    def is_flag(self) -> bool:
        return self.type is bool


REQUIRED = inspect.Parameter.empty


class Command(NamedTuple):
    """What runs under a name: a function that takes its parameters by keyword. Its docstring is the help."""

    name: str
    function: Callable[..., None]
    parameters: tuple[Parameter, ...]
    aliases: tuple[str, ...] = ()


class Noun:
    """Commands that share their first word."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def add(self, command: Command) -> None:
        assert self.find(command.name) is None, command.name
        self.commands.append(command)

    def find(self, name: str) -> Command | None:
        return next((c for c in self.commands if name == c.name or name in c.aliases), None)


def parameters_of(function: Callable[..., None]) -> tuple[Parameter, ...]:
    """The parameters of a function that declare an option or argument."""
    found = inspect.signature(function, eval_str=True).parameters.values()
    return tuple(
        parameter(p.name, p.annotation, p.default) for p in found if get_origin(p.annotation) is Annotated
    )


def parameter(name: str, annotation: Any, default: Any) -> Parameter:
    """`name: Annotated[list[int] | None, option(...)] = None`, taken apart."""
    kind, declared = get_args(annotation)
    if isinstance(kind, UnionType):
        (kind,) = (choice for choice in get_args(kind) if choice is not type(None))
    is_list = get_origin(kind) is list
    if is_list:
        (kind,) = get_args(kind)
    assert isinstance(kind, type), name
    assert isinstance(declared, Option | Argument), name
    return Parameter(name, kind, is_list, default, declared)
