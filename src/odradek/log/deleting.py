"""Logs on their way out: their directories renamed at once, their files removed after file.delete.delay.ms.

What only lacks descriptors or memory is tried again, and nothing is begun in its place before it is done.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from odradek.core.errors import ExhaustedError, KafkaError, StorageError
from odradek.core.types import TopicPartition
from odradek.log import names
from odradek.log.files import remove_tree
from odradek.log.log import Log
from odradek.log.log_dir import LogDir
from odradek.log.persisting import PersistedLogs
from odradek.runtime.api import Runtime
from odradek.runtime.reply import Reply
from odradek.runtime.slices import FEW, Paced, Slices

_log = logging.getLogger(__name__)

_DELETED: Final = 400  # calls: what takes long is the disk's


class DeletableLogs(PersistedLogs):
    def __init__(self, runtime: Runtime, log_dirs: Sequence[str], slices: Slices | None = None) -> None:
        super().__init__(runtime, log_dirs, slices)
        self._deleted: list[tuple[int, Log]] = []
        # Where a log was begun that could not be opened: in no other directory may there be one beside it.
        self._begun: dict[TopicPartition, LogDir] = {}
        # What is left of deleted logs where the next of their names would stand, and how it is removed.
        self._in_the_way: dict[TopicPartition, Callable[[], None]] = {}

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take a log out of sight now, or what there is of one; its files go after file.delete.delay.ms.

        Where it cannot be set aside its directory is offline, and the next start finds that it is a stray.
        """
        log, begun = self.logs.pop(topic_partition, None), self._begun.pop(topic_partition, None)
        if log is not None:
            self._in_the_way[topic_partition] = partial(self._delete_soon, log)
        elif begun is not None:
            self._in_the_way[topic_partition] = partial(self._remove_begun, begun, topic_partition)
        try:
            self._clear_way(topic_partition)
        except ExhaustedError as e:
            _log.warning("Cannot delete %s yet: %s", topic_partition, e.message)

    def _clear_way(self, topic_partition: TopicPartition) -> None:
        """See to it that nothing stands where a log is to be begun. Raises ExhaustedError."""
        remove = self._in_the_way.get(topic_partition)
        if remove is not None:
            try:
                remove()
            except StorageError as e:
                _log.error("Cannot delete %s: %s", topic_partition, e.message)
            del self._in_the_way[topic_partition]

    def _delete_soon(self, log: Log) -> None:
        """A log that was given up alone goes as any other: only its directory has to work."""
        if self._directory_of(log).failure is None:
            self._set_aside(log, names.DELETE_DIR_SUFFIX)
            self._delete_later(log)

    def _remove_begun(self, directory: LogDir, topic_partition: TopicPartition) -> None:
        path = f"{directory.path}/{topic_partition}"
        if directory.failure is None:
            try:
                remove_tree(self._disk, path)
            except OSError as e:
                raise self._failed_in(directory, f"Error while deleting {path}: {e}", e) from e

    def _delete_later(self, log: Log) -> None:
        self._deleted.append((self._runtime.clock.now_ms() + log.config.file_delete_delay_ms, log))

    def _set_aside(self, log: Log, suffix: str) -> None:
        unique = uuid.UUID(bytes=self._runtime.rng.randbytes(16), version=4).hex
        log.move(f"{log.directory}/{names.set_aside_dir(log.topic_partition, unique, suffix)}")

    def tick_deletes(self) -> Reply[None]:
        """Remove the files of deleted logs and segments whose delay has passed."""
        return self.slices.run(self._delete_due(), own=True)

    def _delete_due(self) -> Paced[None]:
        for topic_partition in list(self._in_the_way):
            yield _DELETED
            try:
                self._clear_way(topic_partition)
            except ExhaustedError:
                continue
        now_ms = self._runtime.clock.now_ms()
        for entry in [entry for entry in self._deleted if entry[0] <= now_ms]:
            log = entry[1]
            try:
                if self._directory_of(log).failure is None:
                    log.delete()
            except ExhaustedError:
                continue
            except KafkaError as e:
                _log.error("%s", e)
            self._deleted.remove(entry)
            yield _DELETED
        for log in list(self.logs.values()):
            yield 2 * FEW
            if self._is_here(log):
                try:
                    log.purge_deleted(now_ms)
                except OSError as e:
                    log.fail(e, "deleting files of")
