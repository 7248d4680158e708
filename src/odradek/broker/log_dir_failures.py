"""Handles the failure of a log directory at run time: takes its partitions offline and reports it."""

import logging

from odradek.broker.coordinator_roles import CoordinatorRoles
from odradek.broker.lifecycle import BrokerLifecycle
from odradek.core.errors import StorageError
from odradek.log.manager import LogManager
from odradek.replication.manager import ReplicaManager
from odradek.runtime.reply import Reply
from odradek.runtime.slices import Slices

_log = logging.getLogger(__name__)


class LogDirFailures:
    """The LogManager calls `on_offline` once for each failed directory."""

    def __init__(
        self,
        logs: LogManager,
        replicas: ReplicaManager,
        roles: CoordinatorRoles,
        lifecycle: BrokerLifecycle,
        slices: Slices,
    ) -> None:
        self._logs = logs
        self._replicas = replicas
        self._roles = roles
        self._lifecycle = lifecycle
        self._slices = slices

    def on_offline(self, path: str, failure: StorageError) -> None:
        leaving = self._replicas.take_offline(path, failure.message or "", self._roles.resigned)
        self._slices.run(leaving, own=True).when_ready(_report)
        if all(directory.failure is not None for directory in self._logs.directories):
            return  # no directory is left
        for directory in self._logs.directories:
            if directory.path == path and directory.meta is not None:
                self._lifecycle.directory_failed(directory.meta.directory_id)


def _report(reply: Reply[None]) -> None:
    if reply.error is not None:
        _log.error("Cannot take partitions offline", exc_info=reply.error)
