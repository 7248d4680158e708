"""The metadata hash of a consumer group: it changes with any change of the group's topics.

    topic: XXH3 of  int8 0, int64 and int64 id, string name, int32 partition count,
                    per partition: int32 index, per rack of its replicas, sorted: int32 length, string rack
    group: XXH3 of  int64 hash of each topic that exists, by name
All little-endian; a string is its UTF-16 units and their number as int32.

A topic may have thousands of partitions and a group thousands of topics, so hashing is paced work.
"""

import struct
from collections.abc import Iterable, Set

from odradek.libraries.xxh3 import xxh3_64
from odradek.metadata.image import MetadataImage, TopicImage
from odradek.runtime.slices import FEW, STEP, Paced

_INT = struct.Struct("<i")
_HEAD = struct.Struct("<bQQ")
_PARTITIONS_PER_STEP = 16


class TopicHashes:
    """Caches the hash of each topic until the topic changes."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, int]] = {}

    def of_group(self, names: Iterable[str], image: MetadataImage) -> Paced[int]:
        """The hash of a group; 0 if none of its topics exists."""
        topics = image.topics_by_name
        hashes = []
        for name in sorted(names):
            topic = topics.get(name)
            if topic is not None:
                hashes.append((yield from self._of_topic(topic, image)))
            yield 2 * FEW
        if not hashes:
            return 0
        return signed((yield from xxh3_64(struct.pack(f"<{len(hashes)}Q", *hashes))))

    def _of_topic(self, topic: TopicImage, image: MetadataImage) -> Paced[int]:
        known = self._known.get(topic.name)
        if known is None or known[0] is not topic:
            known = self._known[topic.name] = topic, (yield from topic_hash(topic, image))
        return known[1]

    def forget(self, names: Set[str]) -> None:
        for name in self._known.keys() & names:
            del self._known[name]


def topic_hash(topic: TopicImage, image: MetadataImage) -> Paced[int]:
    data = bytearray(_HEAD.pack(0, topic.id.int >> 64, topic.id.int & (1 << 64) - 1))
    _put_text(data, topic.name)
    count = len(topic.partitions)
    data += _INT.pack(count)
    racks = {id_: broker.rack for id_, broker in image.brokers.items() if broker.rack is not None}
    yield STEP
    if racks:
        yield from _put_partitions(data, topic, racks)
    else:
        data += struct.pack(f"<{count}i", *range(count))
    return (yield from xxh3_64(bytes(data)))


def _put_partitions(data: bytearray, topic: TopicImage, racks: dict[int, str]) -> Paced[None]:
    for index in range(len(topic.partitions)):
        data += _INT.pack(index)
        replicas = topic.partitions[index].replicas
        for rack in sorted([racks[replica] for replica in replicas if replica in racks]):
            data += _INT.pack(len(rack.encode("utf-16-le")) // 2)
            _put_text(data, rack)
        if not (index + 1) % _PARTITIONS_PER_STEP:
            yield _PARTITIONS_PER_STEP * (FEW + FEW * len(replicas))


def _put_text(data: bytearray, text: str) -> None:
    units = text.encode("utf-16-le")
    data += units
    data += _INT.pack(len(units) // 2)


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
