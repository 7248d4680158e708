"""Which partition a record goes to: by its key as Java clients do (murmur2), without a key in turn. Pure."""

from collections.abc import Sequence
from random import Random

from odradek.core.errors import ErrorCode, KafkaError
from odradek.records.kernel import murmur2


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The place in the list of all partitions, leaderless ones included, so that a key stays where it is."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class Placement:
    """Remembers, topic by topic, whose turn it is among the partitions for records without a key."""

    __slots__ = ("_batch_bytes", "_rng", "_turns")

    def __init__(self, rng: Random, batch_bytes: int) -> None:
        self._rng = rng
        self._batch_bytes = batch_bytes
        self._turns: dict[str, _Turn] = {}

    def place(
        self, topic: str, partitions: Sequence[int], key: bytes | None, partition: int | None, size: int
    ) -> int:
        if partition is not None:
            if partition not in partitions:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition}"
                )
            return partition
        if key is not None:
            return partitions[partition_of_key(key, len(partitions))]
        # Stay with one partition for a batch, then go on to the next. Where it begins is random: many
        # producers of a few records each must not all choose the same partition.
        turn = self._turns.get(topic)
        if turn is None:
            turn = self._turns[topic] = _Turn(self._rng.randrange(len(partitions)))
        if turn.bytes >= self._batch_bytes:
            turn.index, turn.bytes = turn.index + 1, 0
        turn.bytes += size
        return partitions[turn.index % len(partitions)]


class _Turn:
    """Whose turn it is among the partitions of a topic, and how much it has got."""

    __slots__ = ("bytes", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.bytes = 0
