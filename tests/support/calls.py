"""Counts the Python calls that one node makes for one small request, from the receive to the reply.

The node, its client and the count are in one thread: a request is written to the client's socket and the
connection's reader is called by hand, so that nothing else runs meanwhile. The figures repeat exactly.
"""

import asyncio
import socket
import sys
import tempfile
from types import FrameType
from typing import Any

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig, node_defaults
from odradek.runtime.real import RealRuntime
from tests.support.batches import batch
from tests.support.produce import PRODUCE, produce_values
from tests.support.raw import decode_response, request_bytes

FETCH, OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, CREATE_TOPICS = (
    1,
    8,
    10,
    11,
    12,
    14,
    19,
)
_WARM = 20


class _Client:
    """A blocking client on the node's own thread."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.socket = socket.create_connection(node.address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def call(self, api_key: int, version: int, values: dict[str, Any]) -> Any:
        """As any client: the loop serves it."""
        self.socket.sendall(request_bytes(api_key, version, values))
        frame = await asyncio.get_running_loop().run_in_executor(None, self._frame)
        return decode_response(api_key, version, frame)[1]

    def counted(self, request: bytes) -> tuple[int, bytes]:
        """Calls of Python functions while the node handles one request, and the reply."""
        (connection,) = self._node.server.connections.values()
        self.socket.sendall(request)
        count = 0

        def profile(frame: FrameType, event: str, arg: object) -> None:
            nonlocal count
            if event == "call":
                count += 1

        sys.setprofile(profile)
        try:
            connection.on_readable()
        finally:
            sys.setprofile(None)
        return count, self._frame()

    def _frame(self) -> bytes:
        size = int.from_bytes(self._exactly(4), "big")
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            assert piece, "the node hung up"
            data += piece
        return data


async def _join(client: _Client, group: str) -> tuple[str, int]:
    values = {
        "group_id": group,
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"x"}],
    }
    values["member_id"] = (await client.call(JOIN_GROUP, 5, values)).member_id
    joined = await client.call(JOIN_GROUP, 5, values)
    assignment = [{"member_id": joined.member_id, "assignment": b"y"}]
    who = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
    synced = await client.call(SYNC_GROUP, 3, who | {"group_instance_id": None, "assignments": assignment})
    assert synced.error_code == 0
    return joined.member_id, joined.generation_id


async def count_calls() -> dict[str, int]:
    """Python calls for a tiny produce, a fetch, a heartbeat and an offset commit."""
    with tempfile.TemporaryDirectory() as directory:
        node = Node(NodeConfig(node_defaults(directory, port=0)), RealRuntime())
        await node.start()
        client = _Client(node)
        try:
            return await _count(client)
        finally:
            client.socket.close()
            await node.stop()


async def _count(client: _Client) -> dict[str, int]:
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    await client.call(CREATE_TOPICS, 5, {"topics": [topic], "timeout": 10_000})
    found = await client.call(FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["g"]})
    assert found.coordinators[0].error_code == 0
    member_id, generation = await _join(client, "g")
    member = {"group_id": "g", "generation_id": generation, "member_id": member_id, "group_instance_id": None}
    fetch = {
        "max_wait": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "topics": [{"topic": "t", "partitions": [{"partition": 0, "partition_max_bytes": 1 << 20}]}],
        "session_epoch": -1,
    }
    offset = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
    commit = member | {
        "generation_id_or_member_epoch": generation,
        "topics": [{"name": "t", "partitions": [offset]}],
    }
    requests: dict[str, tuple[int, int, dict[str, Any]]] = {
        "produce": (PRODUCE, 9, produce_values("t", batch(), acks=1)),
        "fetch": (FETCH, 12, fetch),
        "heartbeat": (HEARTBEAT, 4, member),
        "offset_commit": (OFFSET_COMMIT, 8, commit),
    }
    counts = {}
    for name, (api_key, version, values) in requests.items():
        request = request_bytes(api_key, version, values)
        for _ in range(_WARM):
            count, reply = client.counted(request)
            assert _code(decode_response(api_key, version, reply)[1]) == 0
            counts[name] = min(count, counts.get(name, count))
    return counts


def _code(answer: Any) -> int:
    """The innermost error code of the first part of an answer."""
    for parts in ("responses", "topics", "partitions", "partition_responses"):
        if getattr(answer, parts, None):
            return _code(getattr(answer, parts)[0])
    return int(answer.error_code)
