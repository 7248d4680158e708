"""ModernGroup: a share or streams group. This node does not serve these protocols, and keeps the records as
they are.

Its members cannot be alive, so the group counts as empty. Its offsets are served. It is listed, deleted and
expired. A streams group becomes a classic group when a classic member joins.
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
        """Always empty."""
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
        """Members first, then the group, as Kafka does."""
        return [(key, None) for key in sorted(self.records, key=lambda k: -k.record_type)]
