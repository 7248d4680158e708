"""The tree of commands. Each noun is a file; only the noun that is called for is imported."""

import sys
from importlib import import_module
from typing import Annotated

import typer

# Name -> (module, help). A module's `register` adds a verb; its `app` is a noun with verbs of its own.
_COMMANDS = {
    "start": ("start", "Start a node."),
    "topic": ("topic", "Create, show, change and delete topics."),
    "produce": ("produce", "Write records to a topic."),
    "consume": ("consume", "Read records from topics."),
    "group": ("group", "Show, seek and delete consumer groups."),
    "txn": ("txn", "Show transactions; find and end hanging ones."),
    "pipeline": ("pipeline", "Run Spark pipelines with exactly-once delivery."),
    "demo": ("demo", "Show exactly-once processing while driver and broker are killed."),
    "cluster": ("cluster", "Show the cluster, configure its brokers."),
    "log": ("log", "Read log files without a broker."),
    "prove": ("prove", "Check that a pipeline processed its input exactly once."),
    "why": ("why", "Explain why readers are stuck."),
    "sim": ("sim", "Simulate a cluster under faults."),
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
        module = import_module(f"odradek.cli.commands.{module_name}")
        if hasattr(module, "register"):
            module.register(app, started_s)
        else:
            app.add_typer(module.app, name=name, help=help_text, no_args_is_help=True)
    return app
