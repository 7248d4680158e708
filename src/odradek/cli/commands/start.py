"""`odradek start`: its options, and the configuration they make. serve.py runs the node."""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odradek.cli.declaring import Command, Parameter, option
from odradek.cli.errors import Usage, usage
from odradek.cli.properties import parse_pairs

if TYPE_CHECKING:
    from odradek.core.configs import NodeConfig

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_HTTP_PORT = 8080


def _option(flag: str, metavar: str, help_text: str, *, is_list: bool = False) -> Parameter:
    declared = option(flag, metavar=metavar, help=help_text, show_default=False)
    return Parameter(flag.lstrip("-").replace("-", "_"), str, is_list, None, declared)


OPTIONS = (
    _option("--data-dir", "DIR", "Directory of the data. [default: ./odradek-data]"),
    _option("--host", "HOST", f"Address to listen on. [default: {DEFAULT_HOST}]"),
    _option("--port", "PORT", f"Port to listen on; 0 picks a free one. [default: {DEFAULT_PORT}]"),
    _option("--http", "PORT|off", f"Port of /metrics and /healthz. [default: {DEFAULT_HTTP_PORT} if free]"),
    _option("--config", "FILE", "A server.properties file."),
    _option("--set", "KEY=VALUE", "A setting of server.properties; overrides the file.", is_list=True),
    _option("--log-format", "text|json", "Format of the log lines on stderr. [default: text]"),
)


def command(started_s: float) -> Command:
    """The command, as all others are declared."""

    def run(**values: Any) -> None:
        start(started_s, values)

    run.__doc__ = start.__doc__
    return Command("start", run, OPTIONS)


def start(started_s: float, values: Mapping[str, Any]) -> None:
    """Start a node.

    Runs broker and controller in one process until SIGTERM or SIGINT. Prints a line on stdout when ready.
    """
    log_format = values["log_format"] or "text"
    if log_format not in ("text", "json"):
        raise Usage(f"--log-format {log_format}: one of text, json")
    http = values["http"] or str(DEFAULT_HTTP_PORT)
    http_port = None if http == "off" else _port("--http", http)
    with usage():
        overrides = parse_pairs("--set", values["set"] or ())
    file = _read_properties(values["config"]) if values["config"] else {}
    port = None if values["port"] is None else _port("--port", values["port"])
    config, warnings = _configure(file, overrides, values["data_dir"], values["host"], port)

    from odradek.cli.node.log_lines import set_up_logging
    from odradek.cli.node.serve import serve

    limit = set_up_logging(log_format, sys.stderr)
    serve(
        config,
        warnings,
        http_port,
        started_s,
        limit,
        http_is_optional=values["http"] is None,
        ready_as_json=log_format == "json",
    )


def _port(flag: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise Usage(f"{flag} {text}: not a port" + (" or off" if flag == "--http" else ""))
    return int(text)


def config_of_file(path: str) -> "NodeConfig":
    """The configuration with which `odradek start --config FILE` would run."""
    return _configure(_read_properties(path), {}, None, None, None)[0]


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
    """The node's configuration: options win over the file, and so does --set."""
    from odradek.core.configs import ConfigError, NodeConfig, node_defaults

    given = dict(overrides)
    if data_dir is not None:
        doubled = next((name for name in ("log.dirs", "log.dir") if name in overrides), None)
        if doubled is not None:
            raise Usage(f"--data-dir and --set {doubled} cannot be combined")
        given["log.dirs"] = data_dir
    listeners = overrides.get("listeners", file.get("listeners"))
    if listeners is None:
        defaults = node_defaults(host=host or DEFAULT_HOST, port=DEFAULT_PORT if port is None else port)
        given["listeners"] = defaults["listeners"]
    elif host is not None or port is not None:
        raise Usage("--host and --port cannot be combined with a configuration that sets listeners")
    try:
        config, warnings = NodeConfig.from_sources(file, given)
        # Clients elsewhere need a host name; a path must not depend on the working directory.
        advertised = (*config.advertised_listeners, *config.advertised_controller_listeners)
        if not all(listener.host for listener in advertised):
            given["advertised.listeners"] = _with_this_host(config)
        given["log.dirs"] = ",".join(os.path.abspath(path) for path in config.log_dirs)
        if metadata_dir := config.string("metadata.log.dir"):
            given["metadata.log.dir"] = os.path.abspath(metadata_dir)
        config, warnings = NodeConfig.from_sources(file, given)
    except ConfigError as e:
        hint = None
        if e.key == "advertised.listeners":
            hint = "next: odradek start --set advertised.listeners=PLAINTEXT://HOST:PORT"
        raise Usage(str(e), hint) from e
    return config, list(warnings)


def _with_this_host(config: "NodeConfig") -> str:
    """A listener without a host is bound to every address. Clients and nodes get this machine's name."""
    from socket import getfqdn

    here = getfqdn()
    advertised = (*config.advertised_listeners, *config.advertised_controller_listeners)
    return ",".join(str(found._replace(host=found.host or here)) for found in advertised)
