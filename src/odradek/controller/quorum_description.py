"""DescribeQuorum: the voters, the leader, and the log end of each node. Read only.

A long answer is made in slices: each entry has the state at its time.
"""

from typing import TYPE_CHECKING, Any

from odradek.core.errors import ErrorCode
from odradek.core.types import METADATA_TOPIC
from odradek.raft.driver import RaftDriver
from odradek.raft.voters import VoterSet
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.wire.requests.describe_quorum import DescribeQuorumRequest


def describe_quorum(raft: RaftDriver, request: "DescribeQuorumRequest", now_ms: int) -> Paced[Any]:
    """Only partition 0 of the metadata topic has a quorum."""
    types = responses.describe_quorum
    topics = []
    described = False
    for topic in request.topics:
        partitions = []
        yield STEP
        for asked in topic.partitions:
            yield STEP
            if topic.topic_name == METADATA_TOPIC and asked.partition_index == 0:
                described = True
                partitions.append(_partition(raft, types, now_ms))
            else:
                partitions.append(
                    types.PartitionData(
                        partition_index=asked.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message="This server does not host this topic-partition.",
                    )
                )
        topics.append(types.TopicData(topic_name=topic.topic_name, partitions=partitions))
    nodes = _nodes(types, raft.node.voters) if described else []
    return types.DescribeQuorumResponse(topics=topics, nodes=nodes)


def _nodes(types: Any, voters: VoterSet) -> list[Any]:
    """The endpoints of the voters. An endpoint without a port was never bound and is omitted."""
    return [
        types.Node(
            node_id=voter.id,
            listeners=[
                types.Listener(name=e.name, host=e.host, port=e.port) for e in voter.endpoints if e.port
            ],
        )
        for voter in voters.voters
    ]


def _partition(raft: RaftDriver, types: Any, now_ms: int) -> Any:
    node = raft.node
    voters = [
        types.ReplicaState(
            replica_id=voter.id,
            replica_directory_id=voter.directory_id,
            log_end_offset=raft.log_end_offset if voter.id == node.node_id else -1,
            last_fetch_timestamp=now_ms if voter.id == node.node_id else -1,
            last_caught_up_timestamp=now_ms if voter.id == node.node_id else -1,
        )
        for voter in node.voters.voters
    ]
    return types.PartitionData(
        partition_index=0,
        leader_id=node.leader_id,
        leader_epoch=node.epoch,
        high_watermark=raft.high_watermark,
        current_voters=voters,
    )
