"""Questions to three nodes, asked again until they are answered as expected."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from three_nodes import HOST

from odradek.client.connection import BrokerConnection
from odradek.core.errors import KafkaError, ProtocolError
from odradek.runtime.real import RealRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

CREATE_TOPICS, METADATA, LIST_OFFSETS, DESCRIBE_QUORUM = 7, 12, 6, 2
LATEST = -1
WITHIN_S = 120
PAUSE_S = 0.01
EXISTS = 36


class Asking:
    """One connection to any of the brokers. When it breaks, the next question opens another."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._tries = 0
        self._connection: BrokerConnection | None = None

    async def ask(self, api_key: ApiKey, version: int, request: Any, is_answer: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            try:
                if self._connection is None:
                    port = self._ports[self._tries % len(self._ports)]
                    self._tries += 1
                    self._connection = await BrokerConnection.open(
                        RealRuntime(), HOST, port, client_id="bench"
                    )
                answer = await self._connection.send(api_key, request, version)
            except (OSError, ProtocolError, KafkaError):
                self.close()
            else:
                if is_answer(answer):
                    return answer
            await asyncio.sleep(PAUSE_S)
        raise RuntimeError(f"{api_key.name} is not answered")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


async def create(ports: Sequence[int], names: Sequence[str], partitions: int, replicas: int = 1) -> None:
    """One request after another."""
    types = request_types(ApiKey.CREATE_TOPICS)
    topics = [
        types.CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
        for name in names
    ]
    await _create_topics(ports, topics)


async def create_at(ports: Sequence[int], name: str, replicas: Sequence[int], count: int = 1) -> None:
    """Partitions of these nodes, led by the first, that take acks=all with two of them in sync."""
    types = request_types(ApiKey.CREATE_TOPICS)
    topic = types.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            types.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index in range(count)
        ],
        configs=[types.CreatableTopicConfig(name="min.insync.replicas", value="2")],
    )
    await _create_topics(ports, [topic])


async def _create_topics(ports: Sequence[int], topics: Sequence[Any]) -> None:
    """A topic that is there was created by a request whose answer was lost."""
    types = request_types(ApiKey.CREATE_TOPICS)
    asking = Asking(ports)
    for topic in topics:
        request = types.CreateTopicsRequest(topics=[topic], timeout=30_000, validate_only=False)
        await asking.ask(
            ApiKey.CREATE_TOPICS, CREATE_TOPICS, request, lambda a: a.topics[0].error_code in (0, EXISTS)
        )
    asking.close()


async def metadata(port: int, topics: list[str], is_answer: Callable[[Any], bool]) -> Any:
    types = request_types(ApiKey.METADATA)
    request = types.MetadataRequest(
        topics=[types.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
    )
    asking = Asking([port])
    answer = await asking.ask(ApiKey.METADATA, METADATA, request, is_answer)
    asking.close()
    return answer


async def until_brokers(port: int, count: int) -> None:
    await metadata(port, [], lambda answer: len(answer.brokers) == count)


async def until_in_sync(port: int, topic: str, replicas: int) -> None:
    """All replicas of all partitions are in the ISR."""

    def is_full(answer: Any) -> bool:
        found = answer.topics[0].partitions
        return bool(found) and all(len(p.isr_nodes) == replicas for p in found)

    await metadata(port, [topic], is_full)


async def until_led_by_others(ports: Sequence[int], topic: str, killed: int, partitions: int) -> None:
    await metadata(
        ports[0],
        [topic],
        lambda answer: all(p.leader_id not in (-1, killed) for p in answer.topics[0].partitions),
    )
    await until_led(ports, topic, partitions)


async def longest_answer_ms(port: int, work: Callable[[], Awaitable[None]]) -> float:
    """The longest time that a node took to answer a short request while the work was done."""
    types = request_types(ApiKey.API_VERSIONS)
    connection = await BrokerConnection.open(RealRuntime(), HOST, port, client_id="bench")
    working = asyncio.ensure_future(work())
    longest = 0.0
    while not working.done():
        began = time.monotonic()
        await connection.send(ApiKey.API_VERSIONS, types.ApiVersionsRequest(), 0)
        longest = max(longest, time.monotonic() - began)
        await asyncio.sleep(PAUSE_S / 2)
    connection.close()
    await working
    return longest * 1000


async def until_led(ports: Sequence[int], topic: str, partitions: int) -> None:
    """Every leader serves its partitions: metadata name it before it has opened their logs."""

    def is_known(answer: Any) -> bool:
        found = answer.topics[0].partitions
        return len(found) == partitions and all(p.error_code == 0 and p.leader_id >= 0 for p in found)

    answer = await metadata(ports[0], [topic], is_known)
    port_of = {broker.node_id: broker.port for broker in answer.brokers}
    leads: dict[int, list[int]] = {}
    for partition in answer.topics[0].partitions:
        leads.setdefault(port_of[partition.leader_id], []).append(partition.partition_index)
    await asyncio.gather(*(_until_served(port, topic, led) for port, led in leads.items()))


async def _until_served(port: int, topic: str, partitions: list[int]) -> None:
    types = request_types(ApiKey.LIST_OFFSETS)
    rows = [types.ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in partitions]
    request = types.ListOffsetsRequest(
        replica_id=-1, topics=[types.ListOffsetsTopic(name=topic, partitions=rows)]
    )
    asking = Asking([port])
    await asking.ask(
        ApiKey.LIST_OFFSETS,
        LIST_OFFSETS,
        request,
        lambda answer: not any(row.error_code for row in answer.topics[0].partitions),
    )
    asking.close()


async def active_controller(port: int) -> int:
    types = request_types(ApiKey.DESCRIBE_QUORUM)
    partition = types.PartitionData(partition_index=0)
    request = types.DescribeQuorumRequest(
        topics=[types.TopicData(topic_name="__cluster_metadata", partitions=[partition])]
    )
    asking = Asking([port])
    found = await asking.ask(
        ApiKey.DESCRIBE_QUORUM,
        DESCRIBE_QUORUM,
        request,
        lambda answer: answer.error_code == 0 and answer.topics[0].partitions[0].leader_id > 0,
    )
    asking.close()
    leader: int = found.topics[0].partitions[0].leader_id
    return leader
