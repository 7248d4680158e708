"""What a consumer group's metadata hash is made of: its topics as they are, so that any change shows.

    topic: XXH3 of  int8 0, int64 and int64 id, string name, int32 partition count,
                    per partition: int32 index, per rack of its replicas, sorted: int32 length, string rack
    group: XXH3 of  int64 hash of each topic that exists, by name
All little-endian; a string is its UTF-16 units and their number as int32.
"""

import struct
from collections.abc import Iterable, Set

from odradek.coordinators.groups.xxh3 import xxh3_64
from odradek.metadata.image import MetadataImage, TopicImage

_INT = struct.Struct("<i")
_HEAD = struct.Struct("<bQQ")


class TopicHashes:
    """Remembers the hash of each topic for as long as the topic stays the same."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, int]] = {}

    def of_group(self, names: Iterable[str], image: MetadataImage) -> int:
        """0 for a group without topics, as for one whose topics do not exist."""
        topics = image.topics_by_name
        hashes = [self._of_topic(topics[name], image) for name in sorted(names) if name in topics]
        return signed(xxh3_64(struct.pack(f"<{len(hashes)}Q", *hashes))) if hashes else 0

    def _of_topic(self, topic: TopicImage, image: MetadataImage) -> int:
        known = self._known.get(topic.name)
        if known is None or known[0] is not topic:
            known = self._known[topic.name] = topic, topic_hash(topic, image)
        return known[1]

    def forget(self, names: Set[str]) -> None:
        for name in self._known.keys() & names:
            del self._known[name]


def topic_hash(topic: TopicImage, image: MetadataImage) -> int:
    data = bytearray(_HEAD.pack(0, topic.id.int >> 64, topic.id.int & (1 << 64) - 1))
    _put_text(data, topic.name)
    data += _INT.pack(len(topic.partitions))
    for index in range(len(topic.partitions)):
        data += _INT.pack(index)
        for rack in _racks(topic, index, image):
            data += _INT.pack(len(rack.encode("utf-16-le")) // 2)
            _put_text(data, rack)
    return xxh3_64(bytes(data))


def _racks(topic: TopicImage, index: int, image: MetadataImage) -> list[str]:
    brokers = [image.brokers.get(replica) for replica in topic.partitions[index].replicas]
    return sorted(broker.rack for broker in brokers if broker is not None and broker.rack is not None)


def _put_text(data: bytearray, text: str) -> None:
    units = text.encode("utf-16-le")
    data += units
    data += _INT.pack(len(units) // 2)


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
