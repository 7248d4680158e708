"""The tree of commands. Each noun is a file; only the noun that is called for is imported."""

import sys
from importlib import import_module
from typing import Annotated

import typer

# Name -> (module, help). A module's `register` adds a verb; its `app` is a noun with verbs of its own.
_COMMANDS = {
    "start": ("start", "Start a node."),
    "topic": ("topic", "Topics: list, create, describe, alter, delete, add-partitions, trim."),
    "produce": ("produce", "Write records to a topic."),
    "consume": ("consume", "Read records from topics."),
    "group": ("group", "Consumer groups: list, describe, lag, members, seek, delete."),
    "cluster": ("cluster", "The cluster: info, features, config, logdirs."),
    "log": ("log", "Files of a log directory, read without a broker: dump."),
    "sim": ("sim", "Simulated clusters: run, replay."),
}


def make_app(started_s: float = 0.0) -> typer.Typer:
    """The whole command, with all nouns, or only the one that the command line names."""
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
        module_name, help_text = _COMMANDS[name]
        module = import_module(f"odradek.cli.{module_name}")
        if hasattr(module, "register"):
            module.register(app, started_s)
        else:
            app.add_typer(module.app, name=name, help=help_text, no_args_is_help=True)
    return app
