"""What a node that does not know its cluster asks the controllers: are you formatted, in which epoch are you?

Apache's controllers answer both questions. DescribeCluster, for controllers, names the cluster: a node that
is not formatted names none (empty). One that refuses the question is formatted: Apache's do so until their
first leader has committed. A Fetch in epoch 0 is refused by everyone, with the epoch that it is in.
DescribeConfigs of a broker says whether the node that answers has its id.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.core.types import METADATA_TOPIC, ZERO_UUID
from odradek.raft.asking import KRAFT_VERSION_FEATURE, Asker
from odradek.raft.first_start import FormatAnswer
from odradek.raft.messages import FetchAnswer, FetchRequest
from odradek.raft.peers import Endpoint
from odradek.raft.voters import ReplicaKey
from odradek.runtime.api import Runtime
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey

_log = logging.getLogger(__name__)

T = TypeVar("T")

_CONTROLLERS: Final = 2
_BROKER: Final = 4
_WITH_ENDPOINT_TYPE: Final = 1
"""The first version of DescribeCluster that can ask for controllers."""
_FIRST_FETCH: Final = FetchRequest(
    ReplicaKey(-1, ZERO_UUID), leader_epoch=0, fetch_offset=0, last_fetched_epoch=0, max_wait_ms=0
)


class Presence(NamedTuple):
    """Who answers at an address. `cluster_id` is empty where it has none, or does not say; `controllers` are
    the addresses of those that it knows; `static_voters` those of a leader, with kraft.version 0."""

    cluster_id: str
    has_same_id: bool
    controllers: Mapping[int, Endpoint]
    static_voters: Collection[int]


class FirstQuestions:
    """Each question has a connection of its own, and is asked anew each time: nothing is remembered."""

    def __init__(self, runtime: Runtime, node_id: int, timeout_ms: int, *, suffix: str = "") -> None:
        self._runtime = runtime
        self.client_id = f"raft-client-{node_id}{suffix}"
        self._timeout_ms = timeout_ms
        self._asker = Asker(None, "", max_fetch_bytes=1, max_snapshot_bytes=1)

    async def ask_all(self, endpoints: Mapping[int, Endpoint]) -> dict[int, FormatAnswer]:
        """The answers of those that answered in time."""
        answers = await asyncio.gather(
            *(self._asked(endpoint, self._format_answer) for endpoint in endpoints.values())
        )
        return {n: answer for n, answer in zip(endpoints, answers, strict=True) if answer is not None}

    async def cluster_id(self, endpoint: Endpoint) -> str | None:
        """None where it does not say, or does not know."""
        return await self._asked(endpoint, self._cluster_id) or None

    async def presence(self, endpoint: Endpoint, node_id: int) -> Presence | None:
        """None where nobody answers. `has_same_id`: it is a node with this id, maybe the one that asks."""
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                return await self._asked(endpoint, partial(self._presence, node_id))
        except TimeoutError:
            return None

    async def _presence(self, node_id: int, connection: BrokerConnection) -> Presence:
        described = await self._describe(connection)
        voters = await self._static_voters(connection)
        types = requests.describe_configs
        resource = types.DescribeConfigsResource(
            resource_type=_BROKER, resource_name=str(node_id), configuration_keys=["node.id"]
        )
        request = types.DescribeConfigsRequest(resources=[resource])
        response: Any = await connection.send(ApiKey.DESCRIBE_CONFIGS, request, timeout_ms=self._timeout_ms)
        has_same_id = all(result.error_code == ErrorCode.NONE for result in response.results)
        controllers = {} if described is None else {c.broker_id: (c.host, c.port) for c in described.brokers}
        cluster_id = "" if described is None else described.cluster_id
        return Presence(cluster_id, has_same_id, controllers, voters)

    async def _static_voters(self, connection: BrokerConnection) -> Collection[int]:
        """None where the log records them, or where this one does not lead."""
        if connection.features.get(KRAFT_VERSION_FEATURE, 0) > 0:
            return ()
        types = requests.describe_quorum
        topic = types.TopicData(
            topic_name=METADATA_TOPIC, partitions=[types.PartitionData(partition_index=0)]
        )
        request = types.DescribeQuorumRequest(topics=[topic])
        response: Any = await connection.send(ApiKey.DESCRIBE_QUORUM, request, timeout_ms=self._timeout_ms)
        return [
            voter.replica_id
            for topic in response.topics
            for partition in topic.partitions
            if not response.error_code and not partition.error_code
            for voter in partition.current_voters
        ]

    async def _asked(
        self, endpoint: Endpoint, question: Callable[[BrokerConnection], Awaitable[T | None]]
    ) -> T | None:
        try:
            connection = await BrokerConnection.open(
                self._runtime, *endpoint, client_id=self.client_id, request_timeout_ms=self._timeout_ms
            )
            try:
                return await question(connection)
            finally:
                connection.close()
        except (OSError, ProtocolError, KafkaError) as e:
            _log.debug("%s:%d does not answer: %s", *endpoint, e)
            return None

    async def _format_answer(self, connection: BrokerConnection) -> FormatAnswer | None:
        cluster_id = await self._cluster_id(connection)
        if cluster_id == "":
            return FormatAnswer(False, 0)
        answer = await self._asker.ask(connection, _FIRST_FETCH, self._timeout_ms)
        assert isinstance(answer, FetchAnswer)
        return FormatAnswer(True, answer.leader_epoch, cluster_id or "") if answer.leader_epoch >= 0 else None

    async def _cluster_id(self, connection: BrokerConnection) -> str | None:
        """Empty: it is not formatted. None: it does not know the question."""
        described = await self._describe(connection)
        return None if described is None else str(described.cluster_id)

    async def _describe(self, connection: BrokerConnection) -> Any:
        """None where it does not know the question."""
        if connection.versions.get(ApiKey.DESCRIBE_CLUSTER, (0, 0))[1] < _WITH_ENDPOINT_TYPE:
            return None
        request = requests.describe_cluster.DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        response: Any = await connection.send(ApiKey.DESCRIBE_CLUSTER, request, timeout_ms=self._timeout_ms)
        return None if response.error_code else response
