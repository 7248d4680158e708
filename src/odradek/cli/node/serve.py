"""Runs a node in this process until a signal ends it. broker/node.py puts the node together."""

import asyncio
import errno
import gc
import logging
import resource
import signal
import socket
import time

from odradek.broker.lifecycle import RegistrationError
from odradek.broker.node import Node
from odradek.cli.errors import Failure
from odradek.cli.node.data_dir import NEXT, check_data_dirs
from odradek.cli.node.heap import keep_frozen
from odradek.cli.node.life import Ready, tell_recovery, tell_start
from odradek.cli.node.log_limit import LogLimit
from odradek.cli.terminal.recovery_line import RecoveryLine
from odradek.core.configs import ConfigError, NodeConfig
from odradek.core.errors import KafkaError, StorageError
from odradek.http.app import App
from odradek.http.server import HttpServer
from odradek.log.checkpoints import CheckpointError
from odradek.log.managing.log_dir import DirectoryInUseError, DuplicateLogError
from odradek.metadata.formatting import FormatError
from odradek.raft.opening import QuorumError
from odradek.raft.quorum_state import QuorumStateError
from odradek.runtime.eager import new_event_loop
from odradek.runtime.real import RealRuntime
from odradek.runtime.scope import Scope

_log = logging.getLogger(__name__)

_TAKEN = "a node may already run here; for another one: odradek start --port 0 --data-dir DIR"


def serve(
    config: NodeConfig,
    warnings: list[str],
    http_port: int | None,
    started_s: float,
    limit: LogLimit,
    *,
    http_is_optional: bool,
    ready_as_json: bool,
) -> None:
    """Run the node until a signal. If it cannot start, print the reason in one line."""
    tell_start(config)
    for warning in [*warnings, *check_data_dirs(config.log_dirs)]:
        _log.warning(warning)
    _raise_descriptor_limit()
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_run(config, http_port, started_s, limit, http_is_optional, ready_as_json))
    except OSError as e:
        raise _start_failure(config, e) from e
    except DirectoryInUseError as e:
        raise Failure(str(e), "next: odradek start --port 0 --data-dir DIR") from e
    except (CheckpointError, ConfigError, DuplicateLogError, FormatError, QuorumStateError) as e:
        raise Failure(str(e), NEXT) from e
    except (QuorumError, RegistrationError) as e:
        raise Failure(str(e)) from e
    except StorageError as e:
        raise Failure(e.message or "", NEXT) from e
    except KafkaError as e:
        raise Failure(str(e)) from e


async def _run(
    config: NodeConfig,
    http_port: int | None,
    started_s: float,
    limit: LogLimit,
    http_is_optional: bool,
    ready_as_json: bool,
) -> None:
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[signal.Signals] = loop.create_future()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_by, stop, number)
    node = Node(config, RealRuntime())
    stop.add_done_callback(lambda _: node.patience.give_up())
    http = HttpServer(node.runtime, App(node), node.descriptors.health)
    http_address: str | None = None

    def serve_http() -> None:
        nonlocal http_address
        if http_port is not None:
            http_address = _listen(http, node.address[0], http_port, http_is_optional)

    gc.disable()
    try:
        with RecoveryLine(node.logs.recovery):
            await node.start(serve_http)
    except asyncio.CancelledError:
        await http.close()
        if not stop.done():
            raise
        _log.info("Stopping: %s, before the start was complete", stop.result().name)
        return
    except BaseException:
        await http.close()
        raise
    try:
        tell_recovery(node.logs.recovery)
        # What start-up made lives as long as the node: the collector need never look at it again.
        gc.collect()
        gc.freeze()
        gc.enable()
        ready = Ready(
            _address(node.address),
            node.cluster_id,
            config.log_dirs,
            http_address,
            round((time.monotonic() - started_s) * 1000),
        )
        print(ready.json() if ready_as_json else ready.text(), flush=True)
        async with Scope() as scope:
            scope.spawn(limit.run(), name="limit the log")
            scope.spawn(keep_frozen(lambda: node.logs.opened), name="keep the heap frozen")
            number = await stop
        stopping_s = time.monotonic()
        _log.info("Stopping: %s", number.name)
    finally:
        await http.close()
        await node.stop()
    _log.info("Stopped after %.0f ms", (time.monotonic() - stopping_s) * 1000)


def _stop_by(stop: "asyncio.Future[signal.Signals]", number: signal.Signals) -> None:
    if not stop.done():
        stop.set_result(number)


def _listen(http: HttpServer, host: str, port: int, is_optional: bool) -> str | None:
    """Where HTTP is served. A port that nobody asked for may be taken."""
    try:
        return _address(http.listen(host, port))
    except OSError as e:
        if e.errno != errno.EADDRINUSE:
            raise
        if not is_optional:
            raise Failure(f"--http {port}: the port is taken", "next: odradek start --http 0") from e
        _log.warning("No /metrics: port %d is taken (--http PORT chooses another)", port)
        return None


def _address(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _raise_descriptor_limit() -> None:
    """As many files and connections as the system allows this process, not as many as a shell starts with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _start_failure(config: NodeConfig, error: OSError) -> Failure:
    listeners = ", ".join(str(listener) for listener in config.broker_listeners)
    if error.errno == errno.EADDRINUSE:
        return Failure(f"{listeners}: the port is taken", _TAKEN)
    not_bound = error.errno in (errno.EADDRNOTAVAIL, errno.EACCES) and error.filename is None
    if not_bound or isinstance(error, socket.gaierror):
        return Failure(f"{listeners}: {error.strerror}", "next: odradek start --host 127.0.0.1 --port 9092")
    where = error.filename or ", ".join(config.log_dirs)
    return Failure(f"{where}: {error.strerror or error}", NEXT)
