"""The end offset of a partition whose leader was just elected."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.metrics import TopicMetrics
from odradek.metadata.image import PartitionRegistration
from odradek.replication.partition import Partition
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.admin_node import AdminNode, types_of
from tests.unit.log.support import LogRuntime, batch, open_log
from tests.unit.replication.support import Surroundings

LATEST, EARLIEST = -1, -2


@pytest.mark.parametrize(
    ("version", "refusal"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (11, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_a_new_leader_tells_no_end_before_it_knows_what_is_committed(
    tmp_path: Path, version: int, refusal: ErrorCode
) -> None:
    """Its high watermark came with a follower's fetch, and may be behind what was acknowledged (KIP-207)."""
    log = open_log(LogRuntime(), tmp_path)
    log.append_as_leader([batch(5)], 0)
    log.advance_high_watermark(3)
    partition = Partition(log, 1, TopicMetrics(), Surroundings().context)
    node = AdminNode()
    node.replicas = SimpleNamespace(partition=lambda _: partition)
    types = types_of(ApiKey.LIST_OFFSETS)

    def ask(timestamp: int) -> tuple[int, int]:
        entry = types.ListOffsetsPartition(partition_index=0, current_leader_epoch=4, timestamp=timestamp)
        topic = types.ListOffsetsTopic(name="t", partitions=[entry])
        request = types.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[topic])
        (answer,) = node.ask(ApiKey.LIST_OFFSETS, request, version).topics[0].partitions
        return answer.error_code, answer.offset

    partition.apply(PartitionRegistration((1, 2), (1, 2), leader=1, leader_epoch=4, partition_epoch=9))
    assert ask(LATEST)[0] == refusal
    assert ask(EARLIEST) == (0, 0)
    partition.record_fetch(2, 5)
    assert ask(LATEST) == (0, 5)
    partition.append_as_leader([batch(2)], acks_all=False)
    assert ask(LATEST) == (0, 5), "its own records are not committed yet, and nobody was told that they are"


def test_a_tool_that_debugs_gets_the_log_end_of_a_follower(tmp_path: Path) -> None:
    """As in Apache, with replica id -2: the lag of a replica can be seen from outside."""
    log = open_log(LogRuntime(), tmp_path)
    log.append_as_leader([batch(5)], 0)
    log.advance_high_watermark(3)
    partition = Partition(log, 1, TopicMetrics(), Surroundings().context)
    partition.apply(PartitionRegistration((1, 2), (1, 2), leader=2, leader_epoch=4, partition_epoch=9))
    node = AdminNode()
    node.replicas = SimpleNamespace(partition=lambda _: partition)
    types = types_of(ApiKey.LIST_OFFSETS)

    def ask(replica_id: int) -> tuple[int, int]:
        entry = types.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        topic = types.ListOffsetsTopic(name="t", partitions=[entry])
        request = types.ListOffsetsRequest(replica_id=replica_id, topics=[topic])
        (answer,) = node.ask(ApiKey.LIST_OFFSETS, request, 11).topics[0].partitions
        return answer.error_code, answer.offset

    assert ask(-2) == (0, 5)
    assert ask(-1)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
