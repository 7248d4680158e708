"""Replicated partitions of a controller without a log: brokers that go in every way, leaders that propose."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from odradek.metadata.image import PartitionRegistration
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness

SESSION_MS = 9000
PREFERRED, UNCLEAN = 0, 1


def disk(broker_id: int, number: int) -> UUID:
    """Every broker has two."""
    return UUID(int=(broker_id << 32) + 2000 + number)


def brokers(
    count: int,
    settings: Mapping[str, str] | None = None,
    *,
    elr: bool = True,
    topic: str = "t",
    **fields: Any,
) -> Harness:
    """A cluster with a topic: its one partition is on all brokers, on the first disk of each."""
    h = Harness(settings, elr=elr)
    ids = list(range(1, count + 1))
    for broker_id in ids:
        h.register(broker_id, log_dirs=[disk(broker_id, 0), disk(broker_id, 1)])
        h.heartbeat(broker_id)
    h.create(topic, -1, -1, assignments={0: ids}, **fields)
    for broker_id in ids:
        assign(h, broker_id, disk(broker_id, 0))
    return h


def assign(h: Harness, broker_id: int, directory: UUID, topic: str = "t") -> None:
    types = request_types(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
    found = h.image.topics_by_name[topic]
    rows = [types.PartitionData(partition_index=index) for index in found.partitions]
    data = types.DirectoryData(id_=directory, topics=[types.TopicData(topic_id=found.id, partitions=rows)])
    h.call(
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        types.AssignReplicasToDirsRequest(
            broker_id=broker_id, broker_epoch=h.image.brokers[broker_id].epoch, directories=[data]
        ),
    )


def partition(h: Harness, topic: str = "t", index: int = 0) -> PartitionRegistration:
    return h.image.topics_by_name[topic].partitions[index]


# --- ways to go ---------------------------------------------------------------------------------------


def fence(h: Harness, broker_id: int) -> None:
    h.heartbeat(broker_id, want_fence=True)


def shut_down(h: Harness, broker_id: int) -> None:
    h.heartbeat(broker_id, want_shut_down=True)


def lose_disk(h: Harness, broker_id: int) -> None:
    h.heartbeat(broker_id, offline_log_dirs=[disk(broker_id, 0)])


def crash(h: Harness, broker_id: int) -> None:
    """Its session ends; it starts again and has no epoch of a clean stop."""
    h.now_ms += SESSION_MS - 1
    for other in h.image.brokers:
        if other != broker_id and h.image.brokers[other].is_active:
            h.heartbeat(other)
    h.now_ms += 1
    assert h.expire() == broker_id
    process = h.image.brokers[broker_id].epoch + 100
    h.register(broker_id, process, log_dirs=[disk(broker_id, 0), disk(broker_id, 1)])


# --- requests -----------------------------------------------------------------------------------------


def alter(h: Harness, isr: Sequence[int], topic: str = "t", **changes: Any) -> Any:
    """The leader proposes an ISR: the answer for the partition."""
    types = request_types(ApiKey.ALTER_PARTITION)
    found = h.image.topics_by_name[topic]
    current = found.partitions[0]
    members = [types.BrokerState(broker_id=n, broker_epoch=h.image.brokers[n].epoch) for n in isr]
    row = types.PartitionData(
        **{
            "partition_index": 0,
            "leader_epoch": current.leader_epoch,
            "partition_epoch": current.partition_epoch,
            "new_isr_with_epochs": members,
            **changes,
        }
    )
    request = types.AlterPartitionRequest(
        broker_id=current.leader,
        broker_epoch=h.image.brokers[current.leader].epoch,
        topics=[types.TopicData(topic_id=found.id, partitions=[row])],
    )
    return h.call(ApiKey.ALTER_PARTITION, request).topics[0].partitions[0]


def elect(h: Harness, kind: int = PREFERRED, topic: str = "t") -> int:
    """The code for the partition."""
    types = request_types(ApiKey.ELECT_LEADERS)
    rows = [types.TopicPartitions(topic=topic, partitions=[0])]
    answer = h.call(
        ApiKey.ELECT_LEADERS, types.ElectLeadersRequest(election_type=kind, topic_partitions=rows)
    )
    code: int = answer.replica_election_results[0].partition_result[0].error_code
    return code


def configure(h: Harness, resource_type: int, name: str, **configs: str) -> None:
    types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    rows = [
        types.AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
        for key, value in configs.items()
    ]
    resource = types.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=rows)
    answer = h.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, types.IncrementalAlterConfigsRequest(resources=[resource])
    )
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message
