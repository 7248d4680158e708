"""What other nodes ask of this replica: from their request to the machine, and back with records or bytes."""

from typing import Any

from odradek.core.errors import ErrorCode
from odradek.raft.answering import request_of, response_of
from odradek.raft.batches import read_records
from odradek.raft.driver import RaftDriver
from odradek.raft.messages import FetchAnswer, FetchSnapshotAnswer, FetchSnapshotRequest
from odradek.wire.api_keys import ApiKey


class ReplicaService:
    """Serves the quorum's APIs of a controller listener."""

    __slots__ = ("_cluster_id", "_raft")

    def __init__(self, raft: RaftDriver, cluster_id: str) -> None:
        self._raft = raft
        self._cluster_id = cluster_id

    async def receive(self, api_key: ApiKey, version: int, request: Any) -> Any:
        """The answer, once all it rests on is durable. KafkaError where the whole request is refused."""
        message = request_of(api_key, version, request, self._cluster_id)
        answer = await self._raft.ask(message)
        data = b""
        if isinstance(answer, FetchAnswer):
            data = read_records(self._raft.log, answer.read_offset, answer.read_end, request.max_bytes)
        elif isinstance(answer, FetchSnapshotAnswer) and answer.error is ErrorCode.NONE:
            assert isinstance(message, FetchSnapshotRequest)
            answer, data = await self._piece(answer, message, request.max_bytes)
        return response_of(api_key, answer, data)

    async def _piece(
        self, answer: FetchSnapshotAnswer, asked: FetchSnapshotRequest, max_bytes: int
    ) -> tuple[FetchSnapshotAnswer, bytes]:
        try:
            size, data = await self._raft.replica_snapshots.read_piece(
                asked.snapshot_id, asked.position, max_bytes
            )
        except FileNotFoundError:
            return answer._replace(error=ErrorCode.SNAPSHOT_NOT_FOUND), b""
        if not 0 <= asked.position < size:
            return answer._replace(error=ErrorCode.POSITION_OUT_OF_RANGE), b""
        return answer._replace(size=size, position=asked.position, length=len(data)), data
