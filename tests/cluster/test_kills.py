"""Real processes with default timeouts: the active controller is killed while topics are created."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from odradek.client.blocking import BlockingClient
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.cluster.nodes import processes

KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "5"))
NEXT_ANSWER_SECONDS = 3.0

pytestmark = pytest.mark.timeout(60 + 15 * KILLS)


def quorum_of(client: BlockingClient) -> Any:
    """What DescribeQuorum says of the metadata log."""
    types = request_types(ApiKey.DESCRIBE_QUORUM)
    partition = types.PartitionData(partition_index=0)
    topic = types.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    response = client.send(ApiKey.DESCRIBE_QUORUM, types.DescribeQuorumRequest(topics=[topic]))
    return response.topics[0].partitions[0]


def leader_of(client: BlockingClient) -> int:
    leader: int = quorum_of(client).leader_id
    return leader


def create(client: BlockingClient, name: str) -> None:
    """Until it is answered: a retry may find it there already."""
    while True:
        try:
            client.call(client.admin.create_topics, {name: 1}, replication_factor=1)
            return
        except KafkaError as e:
            if e.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                return
            if not e.code.retriable:
                raise


def test_no_answered_topic_is_lost_when_the_active_controller_is_killed(tmp_path: Path) -> None:
    answered: list[str] = []
    gaps: list[float] = []
    with processes(tmp_path, 3) as cluster, BlockingClient(cluster.plan.bootstrap_servers) as client:
        for kill in range(KILLS):
            for i in range(5):
                create(client, f"before-{kill}-{i}")
                answered.append(f"before-{kill}-{i}")
            leader = leader_of(client)
            cluster.kill(leader)
            killed = time.monotonic()
            create(client, f"after-{kill}")
            gaps.append(time.monotonic() - killed)
            answered.append(f"after-{kill}")
            cluster.restart(leader)
        response = client.send(ApiKey.METADATA, request_types(ApiKey.METADATA).MetadataRequest(topics=None))
        found = {topic.name for topic in response.topics}
        assert set(answered) <= found, set(answered) - found
    print("gaps in s:", [round(gap, 2) for gap in gaps])
    assert max(gaps) < NEXT_ANSWER_SECONDS, gaps
