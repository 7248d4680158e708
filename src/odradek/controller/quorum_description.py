"""DescribeQuorum: the voters, the leader, and the log end of each node. Read only.

A long answer is made in slices: each entry has the state at its time.
"""

from typing import TYPE_CHECKING, Any

from odradek.core.errors import ErrorCode
from odradek.core.types import METADATA_TOPIC
from odradek.raft.driver import RaftDriver
from odradek.raft.leadership import ReplicaState
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
    nodes = _nodes(types, raft.facts.voters) if described else []
    return types.DescribeQuorumResponse(topics=topics, nodes=nodes)


def _nodes(types: Any, voters: VoterSet | None) -> list[Any]:
    """The endpoints of the voters. An endpoint without a port was never bound and is omitted."""
    return [
        types.Node(
            node_id=voter.id,
            listeners=[
                types.Listener(name=e.name, host=e.host, port=e.port) for e in voter.endpoints if e.port
            ],
        )
        for voter in (voters.voters if voters is not None else ())
    ]


def _partition(raft: RaftDriver, types: Any, now_ms: int) -> Any:
    voters, observers = raft.node.replicas()
    return types.PartitionData(
        partition_index=0,
        leader_id=raft.leader_id,
        leader_epoch=raft.epoch,
        high_watermark=raft.high_watermark,
        current_voters=[_replica(raft, types, state, now_ms) for state in voters],
        observers=[_replica(raft, types, state, now_ms) for state in observers],
    )


def _replica(raft: RaftDriver, types: Any, state: ReplicaState, now_ms: int) -> Any:
    """The leader itself is caught up by definition. Times of others are as long ago as the machine says."""
    if state.key.id == raft.node_id:
        return types.ReplicaState(
            replica_id=raft.node_id,
            replica_directory_id=state.key.directory_id,
            log_end_offset=raft.log_end_offset,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )
    since_ms = now_ms - raft.now_ms()
    return types.ReplicaState(
        replica_id=state.key.id,
        replica_directory_id=state.key.directory_id,
        log_end_offset=state.end_offset,
        last_fetch_timestamp=-1 if state.last_fetch_ms < 0 else state.last_fetch_ms + since_ms,
        last_caught_up_timestamp=-1 if state.last_caught_up_ms < 0 else state.last_caught_up_ms + since_ms,
    )
