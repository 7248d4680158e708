"""The tree of commands: which noun is in which file, and the tree as typer wants it.

Only the noun that is called for is imported, and typer only for what plain.py leaves to it.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from odradek.cli.declaring import Command, Noun, Option, Parameter
from odradek.cli.plain import read

if TYPE_CHECKING:
    import typer

# Name -> help. A module's `app` is a noun with verbs of its own; `root` holds verbs that stand alone.
_COMMANDS = {
    "start": "Start a node.",
    "up": "Start a cluster on this machine.",
    "topic": "Create, show, change and delete topics.",
    "produce": "Write records to a topic.",
    "consume": "Read records from topics.",
    "group": "Show, seek and delete consumer groups.",
    "txn": "Show transactions; find and end hanging ones.",
    "pipeline": "Run Spark pipelines with exactly-once delivery.",
    "demo": "Show exactly-once processing while driver and broker are killed.",
    "cluster": "Show the cluster, configure its brokers.",
    "log": "Read log files without a broker.",
    "prove": "Check that a pipeline processed its input exactly once.",
    "why": "Explain why readers are stuck.",
    "sim": "Simulate a cluster under faults.",
}


def run_plain(words: Sequence[str], started_s: float) -> bool:
    """Run the command of a plain command line; False for any other line."""
    if not words or words[0] not in _COMMANDS:
        return False
    noun, is_root = _load(words[0], started_s)
    verb = words if is_root else words[1:]
    command = noun.find(verb[0]) if verb else None
    values = None if command is None else read(command.parameters, verb[1:])
    if command is None or values is None:
        return False
    command.function(**values)
    return True


def _load(name: str, started_s: float) -> tuple[Noun, bool]:
    """The commands of a module, and whether they stand without a noun."""
    module: Any = import_module(f"odradek.cli.commands.{name}")
    if name == "start":
        noun = Noun()
        noun.add(module.command(started_s))
        return noun, True
    return (module.root, True) if hasattr(module, "root") else (module.app, False)


def make_app(started_s: float = 0.0) -> "typer.Typer":
    """The whole command, with all nouns, or only the one that the command line names."""
    import typer

    app = typer.Typer(
        name="odradek",
        help="A Kafka-compatible distributed log. Start a node with: odradek start",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        version: Annotated[bool, typer.Option("-V", "--version", help="Print the version.")] = False,
    ) -> None:
        if version:
            from odradek import __version__

            typer.echo(f"odradek {__version__}")
            raise typer.Exit

    named = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] in _COMMANDS else None
    for name in [named] if named else _COMMANDS:
        noun, is_root = _load(name, started_s)
        place = app if is_root else typer.Typer()
        for command in noun.commands:
            _add(place, command)
        if not is_root:
            place.callback()(lambda: None)
            app.add_typer(place, name=name, help=_COMMANDS[name], no_args_is_help=True)
    return app


def _add(place: "typer.Typer", command: Command) -> None:
    """The command as typer knows it."""
    import inspect

    def run(**values: Any) -> None:
        command.function(**values)

    run.__doc__ = command.function.__doc__
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                p.name, inspect.Parameter.KEYWORD_ONLY, default=p.default, annotation=_annotation(p)
            )
            for p in command.parameters
        ]
    )
    run.__annotations__ = {}
    place.command(command.name)(run)
    for alias in command.aliases:
        place.command(alias, hidden=True)(run)


def _annotation(parameter: Parameter) -> Any:
    import typer

    kind: Any = list[parameter.type] if parameter.is_list else parameter.type  # type: ignore[name-defined]
    if parameter.default is None:
        kind = kind | None
    declared = parameter.declared
    if isinstance(declared, Option):
        details = declared._asdict()
        return Annotated[kind, typer.Option(*details.pop("flags"), **details)]
    return Annotated[kind, typer.Argument(**declared._asdict())]
