"""What the replicas of a partition have, for tests of several nodes in this process."""

import time
from collections.abc import Callable

from odradek.broker.node import Node
from odradek.core.types import TopicPartition
from odradek.log.log import Isolation
from odradek.testing.cluster import Cluster

WAIT_SECONDS = 30.0


def wait_for(condition: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


def committed_bytes(node: Node, tp: TopicPartition) -> bytes:
    """The batches below the high watermark, as they are on the disk of a node."""
    log = node.replicas.partition(tp).log
    found, offset = b"", log.log_start_offset
    while offset < log.high_watermark:
        info = log.read(offset, 1 << 20, Isolation.HIGH_WATERMARK)
        assert info.slice is not None
        data = info.slice.read()
        found += data
        offset = log.log_end_offset if not data else next_offset(data)
    return found


def next_offset(data: bytes) -> int:
    from odradek.records.batch import iter_batches

    return list(iter_batches(data))[-1].last_offset + 1


def high_watermarks(cluster: Cluster, tp: TopicPartition) -> dict[int, int]:
    """Of all replicas on brokers that run."""
    return {
        broker_id: broker.look(lambda node: node.replicas.partition(tp).log.high_watermark)
        for broker_id, broker in cluster.brokers.items()
        if broker.node is not None
    }


def wait_until_equal(cluster: Cluster, tp: TopicPartition, high_watermark: int) -> bytes:
    """Wait until all running replicas have this high watermark. Their bytes are the same; returns them."""
    wait_for(lambda: set(high_watermarks(cluster, tp).values()) == {high_watermark})
    found = {
        broker_id: broker.look(lambda node: committed_bytes(node, tp))
        for broker_id, broker in cluster.brokers.items()
        if broker.node is not None
    }
    assert len(set(found.values())) == 1, {n: len(data) for n, data in found.items()}
    return next(iter(found.values()))
