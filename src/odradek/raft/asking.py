"""Requests to other replicas, on the wire: the machine's as Kafka's, Kafka's answers as the machine's.

The other side is answering.py. Versions are negotiated by the connection.
"""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import METADATA_TOPIC, METADATA_TOPIC_ID, NO_LEADER, ZERO_UUID
from odradek.raft import messages as m
from odradek.raft.batches import batch_infos
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voters import Endpoints, ReplicaKey, VoterEndpoint
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey

KRAFT_VERSION_FEATURE: Final = "kraft.version"


class Asker:
    """Sends requests over a connection, and gives the answers."""

    def __init__(
        self, cluster_id: str | None, listener_name: str, *, max_fetch_bytes: int, max_snapshot_bytes: int
    ) -> None:
        self._cluster_id = cluster_id
        self._listener_name = listener_name
        self._max_fetch_bytes = max_fetch_bytes
        self._max_snapshot_bytes = max_snapshot_bytes

    async def ask(self, connection: BrokerConnection, request: m.Request, timeout_ms: int) -> m.AnswerBody:
        """OSError, ProtocolError where no answer came; KafkaError where the peer takes no such request."""
        if isinstance(request, m.SupportedVersionsRequest):
            low, high = connection.supported_features.get(KRAFT_VERSION_FEATURE, (0, 0))
            return m.SupportedVersionsAnswer(ErrorCode.NONE, low, high)
        api_key, message = self.message(request)
        response = await connection.send(api_key, message, timeout_ms=timeout_ms)
        return self.answer(request, response)

    # --- requests -------------------------------------------------------------------------------------

    def message(self, request: m.Request) -> tuple[ApiKey, Any]:
        if isinstance(request, m.FetchRequest):
            return ApiKey.FETCH, self._fetch(request)
        if isinstance(request, m.VoteRequest):
            return ApiKey.VOTE, self._vote(request)
        if isinstance(request, m.BeginQuorumEpochRequest):
            return ApiKey.BEGIN_QUORUM_EPOCH, self._begin(request)
        if isinstance(request, m.EndQuorumEpochRequest):
            return ApiKey.END_QUORUM_EPOCH, self._end(request)
        if isinstance(request, m.FetchSnapshotRequest):
            return ApiKey.FETCH_SNAPSHOT, self._fetch_snapshot(request)
        if isinstance(request, m.AddVoterRequest):
            return ApiKey.ADD_RAFT_VOTER, self._add(request)
        if isinstance(request, m.RemoveVoterRequest):
            types = requests.remove_raft_voter
            return ApiKey.REMOVE_RAFT_VOTER, types.RemoveRaftVoterRequest(
                cluster_id=self._cluster_id,
                voter_id=request.voter.id,
                voter_directory_id=request.voter.directory_id,
            )
        assert isinstance(request, m.UpdateVoterRequest)
        return ApiKey.UPDATE_RAFT_VOTER, self._update(request)

    def _fetch(self, request: m.FetchRequest) -> Any:
        types = requests.fetch
        partition = types.FetchPartition(
            partition=0,
            current_leader_epoch=request.leader_epoch,
            fetch_offset=request.fetch_offset,
            last_fetched_epoch=request.last_fetched_epoch,
            replica_directory_id=request.replica.directory_id,
        )
        if request.waits_for_high_watermark:
            partition.high_watermark = request.high_watermark
        return types.FetchRequest(
            cluster_id=self._cluster_id,
            replica_state=types.ReplicaState(replica_id=request.replica.id),
            max_wait=request.max_wait_ms,
            min_bytes=0,
            max_bytes=self._max_fetch_bytes,
            topics=[types.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )

    def _vote(self, request: m.VoteRequest) -> Any:
        types = requests.vote
        partition = types.PartitionData(
            replica_epoch=request.epoch,
            replica_id=request.candidate.id,
            replica_directory_id=request.candidate.directory_id,
            voter_directory_id=_directory(request.voter),
            last_offset_epoch=request.last_epoch,
            last_offset=request.last_offset,
            pre_vote=request.pre_vote,
        )
        return types.VoteRequest(
            cluster_id=self._cluster_id,
            voter_id=_id(request.voter),
            topics=[types.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        )

    def _begin(self, request: m.BeginQuorumEpochRequest) -> Any:
        types = requests.begin_quorum_epoch
        partition = types.PartitionData(
            voter_directory_id=_directory(request.voter),
            leader_id=request.leader_id,
            leader_epoch=request.leader_epoch,
        )
        return types.BeginQuorumEpochRequest(
            cluster_id=self._cluster_id,
            voter_id=_id(request.voter),
            topics=[types.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
            leader_endpoints=_listeners(types.LeaderEndpoint, request.endpoints),
        )

    def _end(self, request: m.EndQuorumEpochRequest) -> Any:
        types = requests.end_quorum_epoch
        partition = types.PartitionData(
            leader_id=request.leader_id,
            leader_epoch=request.leader_epoch,
            preferred_successors=[key.id for key in request.preferred_successors],
            preferred_candidates=[
                types.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
                for key in request.preferred_successors
            ],
        )
        return types.EndQuorumEpochRequest(
            cluster_id=self._cluster_id,
            topics=[types.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
            leader_endpoints=_listeners(types.LeaderEndpoint, request.endpoints),
        )

    def _fetch_snapshot(self, request: m.FetchSnapshotRequest) -> Any:
        types = requests.fetch_snapshot
        partition = types.PartitionSnapshot(
            current_leader_epoch=request.leader_epoch,
            snapshot_id=types.SnapshotId(
                end_offset=request.snapshot_id.end_offset, epoch=request.snapshot_id.epoch
            ),
            position=request.position,
            replica_directory_id=request.replica.directory_id,
        )
        return types.FetchSnapshotRequest(
            cluster_id=self._cluster_id,
            replica_id=request.replica.id,
            max_bytes=self._max_snapshot_bytes,
            topics=[types.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
        )

    def _add(self, request: m.AddVoterRequest) -> Any:
        types = requests.add_raft_voter
        return types.AddRaftVoterRequest(
            cluster_id=self._cluster_id,
            timeout=request.timeout_ms,
            voter_id=request.voter.id,
            voter_directory_id=request.voter.directory_id,
            listeners=_listeners(types.Listener, request.endpoints),
            ack_when_committed=request.ack_when_committed,
        )

    def _update(self, request: m.UpdateVoterRequest) -> Any:
        types = requests.update_raft_voter
        return types.UpdateRaftVoterRequest(
            cluster_id=self._cluster_id,
            current_leader_epoch=request.leader_epoch,
            voter_id=request.voter.id,
            voter_directory_id=request.voter.directory_id,
            listeners=_listeners(types.Listener, request.endpoints),
            k_raft_version_feature=types.KRaftVersionFeature(
                min_supported_version=request.min_kraft_version,
                max_supported_version=request.max_kraft_version,
            ),
        )

    # --- answers --------------------------------------------------------------------------------------

    def answer(self, request: m.Request, response: Any) -> m.AnswerBody:
        if isinstance(request, m.AddVoterRequest | m.RemoveVoterRequest):
            return m.VoterChangeAnswer(ErrorCode(response.error_code), response.error_message)
        if isinstance(request, m.UpdateVoterRequest):
            leader = response.current_leader
            endpoints = self._endpoint(leader.host, leader.port) if leader.leader_id >= 0 else ()
            code = ErrorCode(response.error_code)
            return m.VoterChangeAnswer(code, None, leader.leader_id, leader.leader_epoch, endpoints)
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code), f"{type(request).__name__} was refused")
        if isinstance(request, m.FetchRequest):
            return self._fetched(response)
        (topic,) = response.topics
        (partition,) = topic.partitions
        code = ErrorCode(partition.error_code)
        if isinstance(request, m.FetchSnapshotRequest):
            leader = partition.current_leader
            data = partition.unaligned_records or b""
            return m.FetchSnapshotAnswer(
                code,
                leader.leader_id,
                leader.leader_epoch,
                SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
                partition.size,
                partition.position,
                len(data),
                self._leader_endpoints(response, leader.leader_id),
                bytes(data),
            )
        endpoints = self._leader_endpoints(response, partition.leader_id)
        if isinstance(request, m.VoteRequest):
            return m.VoteAnswer(
                code, partition.leader_id, partition.leader_epoch, partition.vote_granted, endpoints
            )
        return m.EpochAnswer(code, partition.leader_id, partition.leader_epoch, endpoints)

    def _fetched(self, response: Any) -> m.FetchAnswer:
        (topic,) = response.responses
        (partition,) = topic.partitions
        leader, diverging, snapshot = (
            partition.current_leader,
            partition.diverging_epoch,
            partition.snapshot_id,
        )
        has_diverged = diverging.epoch >= 0 and diverging.end_offset >= 0
        return m.FetchAnswer(
            ErrorCode(partition.error_code),
            leader.leader_id,
            leader.leader_epoch,
            high_watermark=partition.high_watermark,
            log_start_offset=partition.log_start_offset,
            diverging=m.EpochEnd(diverging.epoch, diverging.end_offset) if has_diverged else None,
            snapshot_id=(
                SnapshotId(snapshot.end_offset, snapshot.epoch)
                if snapshot.end_offset >= 0 and snapshot.epoch >= 0
                else None
            ),
            batches=batch_infos(partition.records) if partition.records else (),
            endpoints=self._leader_endpoints(response, leader.leader_id),
        )

    def _leader_endpoints(self, response: Any, leader_id: int) -> Endpoints:
        if leader_id == NO_LEADER:
            return ()
        for node in response.node_endpoints:
            if node.node_id == leader_id:
                return self._endpoint(node.host, node.port)
        return ()

    def _endpoint(self, host: str, port: int) -> Endpoints:
        return (VoterEndpoint(self._listener_name, host, port),)


def _id(key: ReplicaKey | None) -> int:
    return NO_LEADER if key is None else key.id


def _directory(key: ReplicaKey | None) -> UUID:
    return ZERO_UUID if key is None else key.directory_id


def _listeners(kind: Any, endpoints: Endpoints) -> Sequence[Any]:
    return [kind(name=e.name, host=e.host, port=e.port) for e in endpoints]
