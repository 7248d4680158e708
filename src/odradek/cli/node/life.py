"""What a node says about its start and stop: log lines on stderr, one line on stdout when it is ready."""

import json
import logging
import os
import platform
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from odradek import __version__
from odradek.core.config.keys import broker_key
from odradek.core.configs import NodeConfig
from odradek.log.opening.starting import Recovery

_log = logging.getLogger(__name__)

# The line before has them already.
_TOLD: Final = frozenset(
    {"node.id", "broker.id", "process.roles", "listeners", "controller.listener.names", "log.dirs", "log.dir"}
)


def tell_start(config: NodeConfig) -> None:
    """Before anything is opened: what is about to run, and what was set for it."""
    _log.info(
        "Starting odradek %s as node %d (%s): listeners %s, directories %s, Python %s, process %d",
        __version__,
        config.node_id,
        ", ".join(config.process_roles),
        ", ".join(str(listener) for listener in config.listeners),
        ", ".join(config.log_dirs),
        platform.python_version(),
        os.getpid(),
    )
    settings = [f"{name}={text}" for name, text in sorted(changed_settings(config))]
    if settings:
        _log.info("Settings that differ from their defaults: %s", ", ".join(settings))


def tell_recovery(recovery: Recovery) -> None:
    """After a stop that was not clean: what had to be recovered."""
    if recovery.logs:
        _log.info("The last stop was not clean: %s", recovery)


def changed_settings(config: NodeConfig) -> Iterator[tuple[str, str]]:
    """What the file and the command line set to other values than the defaults. Secrets are hidden."""
    for name, text in config.raw.items():
        key = broker_key(name)
        if key is None or name in _TOLD:
            continue
        default = config.default(name)
        if default is None or key.parse(text) != key.parse(default):
            yield name, "[hidden]" if key.sensitive else text


class Ready(NamedTuple):
    """The line that says that a node can be used."""

    address: str
    cluster_id: str
    log_dirs: tuple[str, ...]
    http: str | None
    elapsed_ms: int

    def text(self) -> str:
        facts = [self.address, f"cluster {self.cluster_id}", "data " + ", ".join(self.log_dirs)]
        if self.http is not None:
            facts.append(f"http {self.http}")
        return f"odradek {__version__} ready: {', '.join(facts)}, {self.elapsed_ms} ms"

    def json(self) -> str:
        moment = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
        line = {
            "@timestamp": moment.replace("+00:00", "Z"),
            "log.level": "INFO",
            "message": self.text(),
            "ecs.version": "8.11.0",
            "log.logger": __name__,
            "service.name": "odradek",
            "service.version": __version__,
            "process.pid": os.getpid(),
            "odradek.address": self.address,
            "odradek.cluster_id": self.cluster_id,
            "odradek.log_dirs": self.log_dirs,
            "odradek.http": self.http,
            "odradek.start_ms": self.elapsed_ms,
        }
        return json.dumps(line, ensure_ascii=False)
