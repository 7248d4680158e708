"""FetchedPartition: what a fetcher knows of one partition. Pure: it reads positions from the follower's log.

fetcher.py moves it from state to state.
"""

from enum import Enum

from odradek.core.types import TopicPartition
from odradek.replication.fetching.responses import PartitionKey
from odradek.replication.follower import PartitionFollower

NOT_ASKED = -1


class FetchState(Enum):
    """FETCHING: part of every fetch. LATEST, EARLIEST: the leader does not have its fetch offset; it waits
    for the leader's log end, then for its log start. DELAYED: after an error, until a time. STOPPED: until
    the metadata has another leader epoch."""

    FETCHING = "fetching"
    LATEST = "latest"
    EARLIEST = "earliest"
    DELAYED = "delayed"
    STOPPED = "stopped"


class FetchedPartition:
    """A partition and its follower. `asked_offset` is the fetch offset of the last request that named it."""

    __slots__ = ("asked_offset", "asked_start", "delayed_until_ms", "follower", "key", "retries", "state")

    def __init__(self, key: PartitionKey, follower: PartitionFollower) -> None:
        self.key = key
        self.follower = follower
        self.state = FetchState.FETCHING
        self.asked_offset = NOT_ASKED
        self.asked_start = NOT_ASKED
        self.delayed_until_ms = 0
        self.retries = 0

    @property
    def topic_partition(self) -> TopicPartition:
        return self.follower.log.topic_partition
