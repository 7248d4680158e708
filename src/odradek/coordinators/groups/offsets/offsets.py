"""OffsetStore: committed offsets, and offsets that wait for the end of a transaction. Only replay changes
it."""

import uuid
from collections.abc import Iterator
from typing import NamedTuple

from odradek.core.errors import ErrorCode
from odradek.core.types import NO_PRODUCER_ID, ZERO_UUID

NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    """The first fields are those of the OffsetFetch response, whose encoder uses the object directly."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY
    topic_id: uuid.UUID = ZERO_UUID
    record_offset: int = -1
    """Its offset in the log. Of a transactional commit and a plain one, the later record wins."""

    @property
    def offset(self) -> int:
        return self.committed_offset

    @property
    def error_code(self) -> int:
        return ErrorCode.NONE


Topics = dict[str, dict[int, CommittedOffset]]
"""Topic, partition, offset."""


class OffsetStore:
    __slots__ = ("_groups", "_open", "_pending")

    def __init__(self) -> None:
        self._groups: dict[str, Topics] = {}
        self._pending: dict[int, dict[str, Topics]] = {}
        """By producer id: the offsets of its open transaction."""
        self._open: dict[str, dict[int, None]] = {}
        """By group: the producers whose open transactions have offsets of it."""

    def of_group(self, group_id: str) -> Topics:
        """The group's offsets, for reading only."""
        return self._groups.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has a new offset for this partition."""
        return any(
            partition in self._pending[producer_id][group_id].get(topic, {})
            for producer_id in self._open.get(group_id, ())
        )

    def has_open_transactions(self, group_id: str) -> bool:
        return group_id in self._open

    def keys(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Every (topic, partition) of the group, committed or pending, each once."""
        seen = {(t, p) for t, partitions in self.of_group(group_id).items() for p in partitions}
        for topic, partitions in self.of_group(group_id).items():
            for partition in partitions:
                yield topic, partition
        for producer_id in self._open.get(group_id, ()):
            for topic, partitions in self._pending[producer_id][group_id].items():
                for partition in partitions:
                    if (topic, partition) not in seen:
                        seen.add((topic, partition))
                        yield topic, partition

    def group_ids(self) -> Iterator[str]:
        """Groups with an offset, committed or pending."""
        yield from self._groups
        yield from (group_id for group_id in self._open if group_id not in self._groups)

    # --- replay ---------------------------------------------------------------------------------------

    def put(
        self, producer_id: int, group_id: str, topic: str, partition: int, value: CommittedOffset
    ) -> None:
        if producer_id == NO_PRODUCER_ID:
            groups = self._groups
        else:
            groups = self._pending.setdefault(producer_id, {})
            self._open.setdefault(group_id, {})[producer_id] = None
        groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = value

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """A tombstone removes both the committed and the pending offset."""
        _remove(self._groups, group_id, topic, partition)
        for producer_id in self._open.get(group_id, ()):
            self._pending[producer_id][group_id].get(topic, {}).pop(partition, None)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        for group_id, topics in self._pending.pop(producer_id, {}).items():
            holders = self._open[group_id]
            del holders[producer_id]
            if not holders:
                del self._open[group_id]
            if not committed:
                continue
            for topic, partitions in topics.items():
                for partition, value in partitions.items():
                    existing = self.get(group_id, topic, partition)
                    if existing is None or value.record_offset > existing.record_offset:
                        self.put(NO_PRODUCER_ID, group_id, topic, partition, value)


def _remove(groups: dict[str, Topics], group_id: str, topic: str, partition: int) -> None:
    topics = groups.get(group_id)
    if topics is None or topic not in topics:
        return
    topics[topic].pop(partition, None)
    if not topics[topic]:
        del topics[topic]
    if not topics:
        del groups[group_id]
