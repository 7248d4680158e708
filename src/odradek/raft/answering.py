"""Requests of other replicas, on the wire: Kafka's requests as the machine's, its answers as Kafka's.

The other side is asking.py. Another cluster's requests, and those about another partition, are refused here.
"""

from typing import Any, Final

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import METADATA_TOPIC, METADATA_TOPIC_ID, Buffer
from odradek.raft import messages as m
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voters import Endpoints, ReplicaKey, VoterEndpoint
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

_NO_HIGH_WATERMARK_WANTED: Final = (1 << 63) - 1
_FETCH_BY_ID: Final = 13


def request_of(api_key: ApiKey, version: int, request: Any, cluster_id: str) -> m.Request:
    """KafkaError where the whole request is refused: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST."""
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {cluster_id}, not {request.cluster_id}"
        )
    return _READERS[api_key](version, request)


def _only_partition(topics: Any, name: str = "topic_name", index: str = "partition_index") -> Any:
    if len(topics) == 1 and getattr(topics[0], name) == METADATA_TOPIC and len(topics[0].partitions) == 1:
        partition = topics[0].partitions[0]
        if getattr(partition, index) == 0:
            return partition
    raise KafkaError(ErrorCode.INVALID_REQUEST, "only partition 0 of the metadata log has a quorum")


def _vote(version: int, request: Any) -> m.Request:
    partition = _only_partition(request.topics)
    return m.VoteRequest(
        epoch=partition.replica_epoch,
        candidate=ReplicaKey(partition.replica_id, partition.replica_directory_id),
        voter=_voter(request.voter_id, partition.voter_directory_id),
        last_epoch=partition.last_offset_epoch,
        last_offset=partition.last_offset,
        pre_vote=partition.pre_vote,
    )


def _begin(version: int, request: Any) -> m.Request:
    partition = _only_partition(request.topics)
    return m.BeginQuorumEpochRequest(
        partition.leader_id,
        partition.leader_epoch,
        _voter(request.voter_id, partition.voter_directory_id),
        _endpoints(request.leader_endpoints),
    )


def _end(version: int, request: Any) -> m.Request:
    partition = _only_partition(request.topics)
    successors = (
        tuple(ReplicaKey(c.candidate_id, c.candidate_directory_id) for c in partition.preferred_candidates)
        if version >= 1
        else tuple(ReplicaKey(node_id) for node_id in partition.preferred_successors)
    )
    return m.EndQuorumEpochRequest(
        partition.leader_id, partition.leader_epoch, successors, _endpoints(request.leader_endpoints)
    )


def _fetch(version: int, request: Any) -> m.Request:
    topics = request.topics
    if (
        version < _FETCH_BY_ID
        or len(topics) != 1
        or topics[0].topic_id != METADATA_TOPIC_ID
        or len(topics[0].partitions) != 1
        or topics[0].partitions[0].partition != 0
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "only the metadata log can be fetched here, by its id")
    partition = topics[0].partitions[0]
    waits = partition.high_watermark != _NO_HIGH_WATERMARK_WANTED
    return m.FetchRequest(
        ReplicaKey(request.replica_state.replica_id, partition.replica_directory_id),
        partition.current_leader_epoch,
        partition.fetch_offset,
        partition.last_fetched_epoch,
        request.max_wait,
        partition.high_watermark if waits else m.NO_HIGH_WATERMARK,
        waits,
    )


def _fetch_snapshot(version: int, request: Any) -> m.Request:
    partition = _only_partition(request.topics, "name", "partition")
    return m.FetchSnapshotRequest(
        ReplicaKey(request.replica_id, partition.replica_directory_id),
        partition.current_leader_epoch,
        SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        partition.position,
    )


def _add(version: int, request: Any) -> m.Request:
    return m.AddVoterRequest(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        _endpoints(request.listeners),
        request.timeout,
        request.ack_when_committed,
    )


def _remove(version: int, request: Any) -> m.Request:
    return m.RemoveVoterRequest(ReplicaKey(request.voter_id, request.voter_directory_id))


def _update(version: int, request: Any) -> m.Request:
    feature = request.k_raft_version_feature
    return m.UpdateVoterRequest(
        request.current_leader_epoch,
        ReplicaKey(request.voter_id, request.voter_directory_id),
        _endpoints(request.listeners),
        feature.min_supported_version,
        feature.max_supported_version,
    )


_READERS = {
    ApiKey.VOTE: _vote,
    ApiKey.BEGIN_QUORUM_EPOCH: _begin,
    ApiKey.END_QUORUM_EPOCH: _end,
    ApiKey.FETCH: _fetch,
    ApiKey.FETCH_SNAPSHOT: _fetch_snapshot,
    ApiKey.ADD_RAFT_VOTER: _add,
    ApiKey.REMOVE_RAFT_VOTER: _remove,
    ApiKey.UPDATE_RAFT_VOTER: _update,
}


def _voter(voter_id: int, directory_id: Any) -> ReplicaKey | None:
    return None if voter_id < 0 else ReplicaKey(voter_id, directory_id)


def _endpoints(listeners: Any) -> Endpoints:
    return tuple(VoterEndpoint(e.name, e.host, e.port) for e in listeners)


# --- answers ----------------------------------------------------------------------------------------------


def response_of(api_key: ApiKey, answer: m.AnswerBody, data: Buffer = b"") -> Any:
    """`data` are the records or the piece of a snapshot that the answer speaks of."""
    types: Any = getattr(responses, api_key.name.lower())
    if isinstance(answer, m.FetchAnswer):
        return _fetch_response(types, answer, data)
    if isinstance(answer, m.FetchSnapshotAnswer):
        return _snapshot_response(types, answer, data)
    if isinstance(answer, m.VoterChangeAnswer):
        return _change_response(types, api_key, answer)
    assert isinstance(answer, m.VoteAnswer | m.EpochAnswer)
    partition = types.PartitionData(
        error_code=answer.error, leader_id=answer.leader_id, leader_epoch=answer.leader_epoch
    )
    if isinstance(answer, m.VoteAnswer):
        partition.vote_granted = answer.granted
    topics = [types.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    response = next(v for k, v in vars(types).items() if k.endswith("Response"))
    return response(topics=topics, node_endpoints=_nodes(types, answer.leader_id, answer.endpoints))


def _fetch_response(types: Any, answer: m.FetchAnswer, data: Buffer) -> Any:
    partition = types.PartitionData(
        error_code=answer.error,
        high_watermark=answer.high_watermark,
        log_start_offset=answer.log_start_offset,
        current_leader=types.LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.leader_epoch),
        records=bytes(data),
    )
    if answer.diverging is not None:
        partition.diverging_epoch = types.EpochEndOffset(
            epoch=answer.diverging.epoch, end_offset=answer.diverging.end_offset
        )
    if answer.snapshot_id is not None:
        partition.snapshot_id = types.SnapshotId(
            end_offset=answer.snapshot_id.end_offset, epoch=answer.snapshot_id.epoch
        )
    topic = types.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return types.FetchResponse(
        responses=[topic], node_endpoints=_nodes(types, answer.leader_id, answer.endpoints)
    )


def _snapshot_response(types: Any, answer: m.FetchSnapshotAnswer, data: Buffer) -> Any:
    partition = types.PartitionSnapshot(
        error_code=answer.error,
        snapshot_id=types.SnapshotId(
            end_offset=answer.snapshot_id.end_offset, epoch=answer.snapshot_id.epoch
        ),
        current_leader=types.LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.leader_epoch),
        size=answer.size,
        position=answer.position,
        unaligned_records=bytes(data),
    )
    topic = types.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return types.FetchSnapshotResponse(
        topics=[topic], node_endpoints=_nodes(types, answer.leader_id, answer.endpoints)
    )


def _change_response(types: Any, api_key: ApiKey, answer: m.VoterChangeAnswer) -> Any:
    if api_key is ApiKey.ADD_RAFT_VOTER:
        return types.AddRaftVoterResponse(error_code=answer.error, error_message=answer.message)
    if api_key is ApiKey.REMOVE_RAFT_VOTER:
        return types.RemoveRaftVoterResponse(error_code=answer.error, error_message=answer.message)
    leader = types.CurrentLeader(leader_id=answer.leader_id, leader_epoch=answer.leader_epoch)
    if answer.endpoints:
        leader.host, leader.port = answer.endpoints[0].host, answer.endpoints[0].port
    return types.UpdateRaftVoterResponse(error_code=answer.error, current_leader=leader)


def _nodes(types: Any, leader_id: int, endpoints: Endpoints) -> list[Any]:
    return [types.NodeEndpoint(node_id=leader_id, host=e.host, port=e.port) for e in endpoints[:1]]
