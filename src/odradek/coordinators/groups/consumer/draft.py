"""GroupDraft: a decision about a consumer group, on a copy of it. Collects the records, and applies them to
the copy.

The group itself changes only when the records are in the log and replayed. If the request is refused before
that, nothing has changed.
"""

from collections.abc import Iterable

from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL
from odradek.coordinators.shard import Record
from odradek.runtime.slices import STEP, Paced


class GroupDraft:
    __slots__ = ("_is_copy", "group", "records")

    def __init__(self, group: ConsumerGroup, *, is_new: bool = False) -> None:
        self.group = group
        self.records: list[Record] = []
        self._is_copy = is_new

    def add(self, *records: Record) -> Paced[None]:
        yield from self.extend(records)

    def extend(self, records: Iterable[Record]) -> Paced[None]:
        if not self._is_copy:
            self.group = self.group.copy()
            self._is_copy = True
            yield STEP + len(self.group.members) // ENTRIES_PER_CALL
        for key, value in records:
            self.records.append((key, value))
            yield from self.group.apply(key, value)
