"""The options that commands share, declared once: the cluster, the output, confirmation.

A command is a function whose first parameter is a `Session`; `@command` adds the shared options to it.
"""

import functools
import os
from collections.abc import Callable
from datetime import UTC
from typing import Annotated, Any, NamedTuple, TypeAlias

from odradek.cli.complete import complete_groups, complete_topics
from odradek.cli.declaring import Argument, Command, Noun, option, parameter, parameters_of
from odradek.cli.errors import Usage, usage
from odradek.cli.session import Session
from odradek.cli.terminal.output import check_format

Bootstrap = Annotated[
    str | None,
    option(
        "-b",
        "--bootstrap-servers",
        metavar="HOST:PORT",
        help="Brokers to connect to first.",
        show_default=False,
    ),
]
Properties = Annotated[
    list[str] | None,
    option(
        "-X", "--property", metavar="KEY=VALUE", help="A client property, by its Java or librdkafka name."
    ),
]
Quiet = Annotated[bool, option("-q", "--quiet", help="Print only errors on stderr.")]
Raw = Annotated[
    bool,
    option("--raw", help="Do not escape control characters on a terminal; a pipe always gets raw bytes."),
]
TimeZone = Annotated[str, option("--tz", metavar="utc|local", help="Time zone of all times, in and out.")]

Yes: TypeAlias = Annotated[bool, option("-y", "--yes", help="Do not ask for confirmation.")]
DryRun: TypeAlias = Annotated[bool, option("--dry-run", help="Show what would change; change nothing.")]
Unset: TypeAlias = Annotated[
    list[str] | None, option("--unset", metavar="KEY", help="Return a configuration to its default.")
]
Watch: TypeAlias = Annotated[
    str | None,
    option("--watch", metavar="EVERY", help="Repeat at this interval, for example 2s.", show_default=False),
]
Topic: TypeAlias = Annotated[
    str, Argument(metavar="TOPIC", help="Name of the topic.", autocompletion=complete_topics)
]
Topics: TypeAlias = Annotated[
    list[str], Argument(metavar="TOPIC", help="Names of topics.", autocompletion=complete_topics)
]
Group: TypeAlias = Annotated[
    str, Argument(metavar="GROUP", help="Name of the group.", autocompletion=complete_groups)
]
Groups: TypeAlias = Annotated[
    list[str], Argument(metavar="GROUP", help="Names of groups.", autocompletion=complete_groups)
]
Partitions: TypeAlias = Annotated[
    str | None,
    option(
        "-p",
        "--partitions",
        metavar="LIST",
        help="Only these partitions, for example 0,2,5-7.",
        show_default=False,
    ),
]
OFFSET_FORMS = "start, end, N, +N, -N, A:B, @TIME, @TIME:TIME"


class Format(NamedTuple):
    """What `-f` takes: as the help says it, and the function that refuses everything else."""

    help: str
    check: Callable[[str], str]

    @property
    def annotation(self) -> Any:
        return Annotated[str, option("-f", "--format", metavar="FORMAT", help=self.help)]


LIST_FORMAT = Format("text, wide, json, jsonl, csv, or a template such as '{topic}'.", check_format)

_SHARED: dict[str, tuple[Any, object]] = {
    "bootstrap_servers": (Bootstrap, None),
    "properties": (Properties, None),
    "output_format": (None, "text"),
    "quiet": (Quiet, False),
    "raw": (Raw, False),
    "tz": (TimeZone, "utc"),
}
_OFFLINE = ("output_format", "quiet", "raw", "tz")


def command(
    noun: Noun, name: str, *aliases: str, connects: bool = True, output_format: Format = LIST_FORMAT
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command to a noun under a name and hidden aliases, with the shared options it needs."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        shared = {key: _SHARED[key] for key in (_SHARED if connects else _OFFLINE)}
        shared["output_format"] = (output_format.annotation, "text")
        parameters = [parameter(key, annotation, default) for key, (annotation, default) in shared.items()]

        @functools.wraps(function)
        def run(**arguments: Any) -> None:
            with usage():
                output_format.check(arguments["output_format"])
            session = make_session(**{key: arguments.pop(key) for key in shared})
            try:
                function(session, **arguments)
            finally:
                session.close()

        noun.add(Command(name, run, (*parameters_of(function), *parameters), aliases))
        return function

    return register


def make_session(
    *,
    output_format: str,
    quiet: bool,
    raw: bool,
    tz: str,
    bootstrap_servers: str | None = None,
    properties: list[str] | None = None,
) -> Session:
    """The session of a command line; raises Usage for options that cannot be taken."""
    if tz not in ("utc", "local"):
        raise Usage(f"--tz {tz}: one of utc, local")
    zone = UTC if tz == "utc" else None
    return Session(bootstrap_servers, properties or (), output_format, quiet, zone, os.environ, raw=raw)
