"""What is on a broker at one moment, to tell a test's own topics and groups from others. Pure."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID


class Contents(NamedTuple):
    """Topics by id, without internal ones: a topic that was created again under an old name is another
    one."""

    topics: Mapping[UUID, str]
    groups: tuple[str, ...]

    def since(self, earlier: "Contents") -> "Contents":
        """What has come since."""
        return Contents(
            {topic_id: name for topic_id, name in self.topics.items() if topic_id not in earlier.topics},
            tuple(name for name in self.groups if name not in earlier.groups),
        )
