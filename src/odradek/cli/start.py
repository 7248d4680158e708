"""`odradek start`: one node in this process, from configuration to a clean stop. The node is broker/'s."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from odradek.cli.errors import Failure, Usage
from odradek.cli.properties import parse_pairs
from odradek.cli.session import usage

if TYPE_CHECKING:
    from odradek.core.configs import NodeConfig

DEFAULT_DATA_DIR = "./odradek-data"
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_HTTP = "8080"


def register(app: typer.Typer, started_s: float) -> None:
    @app.command("start")
    def start(
        data_dir: Annotated[
            str | None,
            typer.Option(
                "--data-dir", metavar="DIR", help=f"Where records are kept. [default: {DEFAULT_DATA_DIR}]"
            ),
        ] = None,
        host: Annotated[
            str | None, typer.Option("--host", help=f"Address to listen on. [default: {DEFAULT_HOST}]")
        ] = None,
        port: Annotated[
            int | None,
            typer.Option(
                "--port", min=0, max=65535, help=f"Port to listen on, 0 for any. [default: {DEFAULT_PORT}]"
            ),
        ] = None,
        http: Annotated[
            str, typer.Option("--http", metavar="PORT|off", help="Port of /metrics and /healthz, or off.")
        ] = DEFAULT_HTTP,
        config: Annotated[
            str | None,
            typer.Option("--config", metavar="FILE", help="A server.properties file.", show_default=False),
        ] = None,
        settings: Annotated[
            list[str] | None,
            typer.Option(
                "--set", metavar="KEY=VALUE", help="One setting of server.properties; wins over the file."
            ),
        ] = None,
        log_format: Annotated[
            str, typer.Option("--log-format", metavar="text|json", help="Shape of the log lines on stderr.")
        ] = "text",
    ) -> None:
        """Start a node.

        Broker and controller in one process, until SIGTERM or SIGINT. A line on stdout says when it is ready.
        """
        from odradek.cli.logs import set_up_logging

        if log_format not in ("text", "json"):
            raise Usage(f"--log-format {log_format}: one of text, json")
        http_port = _http_port(http)
        with usage():
            overrides = parse_pairs("--set", settings or ())
        file = _read_properties(config) if config else {}
        node_config, warnings = _configure(file, overrides, data_dir, host, port)
        set_up_logging(log_format, sys.stderr)
        _serve(node_config, warnings, http_port, started_s)


def _http_port(text: str) -> int | None:
    if text == "off":
        return None
    if not text.isdigit() or int(text) > 65535:
        raise Usage(f"--http {text}: a port, or off")
    return int(text)


def _read_properties(path: str) -> dict[str, str]:
    from odradek.core.configs import parse_properties
    from odradek.log.files import read_file
    from odradek.runtime.real import RealDisk

    try:
        # Java reads properties as Latin-1; anything else comes as \uXXXX escapes.
        return parse_properties(read_file(RealDisk(), path).decode("latin-1"))
    except OSError as e:
        raise Usage(f"--config {path}: {e.strerror}") from e
    except ValueError as e:
        raise Usage(f"--config {path}: {e}") from e


def _configure(
    file: Mapping[str, str],
    overrides: Mapping[str, str],
    data_dir: str | None,
    host: str | None,
    port: int | None,
) -> "tuple[NodeConfig, list[str]]":
    """The node's configuration: options win over --set, --set over the file."""
    from odradek.core.configs import ConfigError, NodeConfig, node_defaults

    given = dict(overrides)
    if data_dir is not None:
        given["log.dirs"] = data_dir
    listeners = overrides.get("listeners", file.get("listeners"))
    if listeners is None:
        defaults = node_defaults(host=host or DEFAULT_HOST, port=DEFAULT_PORT if port is None else port)
        given["listeners"] = defaults["listeners"]
    elif host is not None or port is not None:
        raise Usage("--host and --port do not go with a configuration that sets listeners")
    try:
        config, warnings = NodeConfig.from_sources(file, given)
    except ConfigError as e:
        hint = None
        if e.key == "advertised.listeners":
            hint = "next: odradek start --set advertised.listeners=PLAINTEXT://HOST:PORT"
        raise Usage(str(e), hint) from e
    return config, list(warnings)


def _serve(config: "NodeConfig", warnings: list[str], http_port: int | None, started_s: float) -> None:
    """Run the node until a signal; what keeps it from starting is told in one line."""
    import asyncio
    import logging

    log = logging.getLogger("odradek.cli.start")
    for warning in warnings:
        log.warning(warning)
    _raise_descriptor_limit()
    try:
        asyncio.run(_run(config, http_port, started_s))
    except OSError as e:
        raise _start_failure(config, e) from e


async def _run(config: "NodeConfig", http_port: int | None, started_s: float) -> None:
    import asyncio
    import gc
    import signal
    import time

    from odradek import __version__
    from odradek.broker.node import Node
    from odradek.runtime.real import RealRuntime

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = Node(config, RealRuntime())
    await node.start()
    try:
        # What start-up made lives as long as the node: the collector need never look at it again.
        gc.collect()
        gc.freeze()
        host, port = node.address
        elapsed_ms = (time.monotonic() - started_s) * 1000
        print(
            f"odradek {__version__} ready: {host}:{port}, cluster {node.cluster_id}, "
            f"data {', '.join(config.log_dirs)}, {elapsed_ms:.0f} ms",
            flush=True,
        )
        await stop.wait()
    finally:
        await node.stop()


def _raise_descriptor_limit() -> None:
    """As many files and connections as the system allows this process, not as many as a shell starts with."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _start_failure(config: "NodeConfig", error: OSError) -> Failure:
    import errno

    listeners = ", ".join(str(listener) for listener in config.broker_listeners)
    if error.errno == errno.EADDRINUSE:
        return Failure(f"{listeners}: the port is taken", "next: odradek start --port 0")
    if error.errno in (errno.EADDRNOTAVAIL, errno.EACCES) and error.filename is None:
        return Failure(f"{listeners}: {error.strerror}", "next: odradek start --host 127.0.0.1 --port 9092")
    where = error.filename or ", ".join(config.log_dirs)
    return Failure(f"{where}: {error.strerror or error}", "next: odradek start --data-dir DIR")
