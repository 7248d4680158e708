"""A group of a protocol that this node does not serve, kept as the records it consists of.

Its members cannot be alive, so that the group counts as empty: its offsets are served, it is listed, deleted,
expired and, if it is a streams group, turned into a classic one when a classic member joins.
"""

from collections.abc import Mapping
from typing import Any

from odradek.coordinators.groups.log_format import GROUP_TYPES, ModernKey
from odradek.coordinators.shard import Record


class ModernGroup:
    __slots__ = ("group_id", "group_type", "records")

    def __init__(self, group_id: str, record_type: int) -> None:
        self.group_id = group_id
        self.group_type = GROUP_TYPES[record_type]
        self.records: dict[ModernKey, bytes] = {}

    @property
    def members(self) -> Mapping[str, Any]:
        """Nobody: see above."""
        return {}

    @property
    def converts_to_classic(self) -> bool:
        return self.group_type == "streams"

    def apply(self, key: ModernKey, value: bytes | None) -> None:
        if value is None:
            self.records.pop(key, None)
        else:
            self.records[key] = value

    def tombstones(self) -> list[Record]:
        """Members before the group: the order in which Kafka takes such a group down."""
        return [(key, None) for key in sorted(self.records, key=lambda k: -k.record_type)]
