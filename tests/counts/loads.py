"""Six small loads on one node, counted from the receive of a request to its reply.

The node, its client and the count are in one thread: a request is written to the client's socket and the
connection's reader is called by hand, so that nothing else runs. The numbers are exactly the same in every
run.
"""

import asyncio
import socket
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig, node_defaults
from odradek.runtime.real import RealRuntime
from tests.counts.probe import Meter
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
INIT_PRODUCER_ID, END_TXN = 22, 26
_TRANSACTIONAL: Final = 0x10
_WARM: Final = 20
_TURNS: Final = 8
"""Turns of the loop that a transaction takes after the answer to its end, until its markers are written."""


class Request(NamedTuple):
    api_key: int
    version: int
    values: dict[str, Any]


Load = Callable[[], Iterator[Request]]
"""The requests of one round; a request may depend on the answer to the one before."""


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

    def counted(self, request: Request, meter: Meter) -> tuple[int, Any]:
        """What the node's handling of one request costs, and the answer."""
        (connection,) = self._node.server.connections.values()
        self.socket.sendall(request_bytes(*request))
        meter.begin()
        try:
            connection.on_readable()
        finally:
            count = meter.end()
        answer = decode_response(request.api_key, request.version, self._frame())[1]
        assert _code(answer) == 0, (request, answer)
        return count, answer

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


async def count(meter: Meter, only: str | None = None, rounds: int = _WARM) -> dict[str, int]:
    """What each load costs: the least of some rounds, since the first ones fill caches."""
    with tempfile.TemporaryDirectory() as directory:
        node = Node(NodeConfig(node_defaults(directory, port=0)), RealRuntime())
        await node.start()
        client = _Client(node)
        try:
            loads = await _loads(client)
            return {
                name: await _least(client, load, meter, rounds)
                for name, load in loads.items()
                if only in (None, name)
            }
        finally:
            client.socket.close()
            await node.stop()


async def _least(client: _Client, load: Load, meter: Meter, rounds: int) -> int:
    costs = []
    for _ in range(rounds):
        cost = 0
        for request in load():
            more, answer = client.counted(request, meter)
            cost += more
            if request.api_key == END_TXN:
                cost += await _turns(meter)
                _next_transaction(answer)
        costs.append(cost)
    return min(costs)


async def _turns(meter: Meter) -> int:
    meter.begin()
    try:
        for _ in range(_TURNS):
            await asyncio.sleep(0)
    finally:
        cost = meter.end()
    return cost


_producer = {"producer_id": -1, "producer_epoch": -1}


def _next_transaction(answer: Any) -> None:
    """From EndTxn v5 on the answer brings the identity of the next transaction."""
    _producer.update(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)


async def _loads(client: _Client) -> dict[str, Load]:
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("t", "large")]
    await client.call(CREATE_TOPICS, 5, {"topics": topics, "timeout": 10_000})
    for key_type, key in ((0, "g"), (1, "x")):
        found = await client.call(FIND_COORDINATOR, 4, {"key_type": key_type, "coordinator_keys": [key]})
        assert found.coordinators[0].error_code == 0
    member_id, generation = await _join(client, "g")
    member = {"group_id": "g", "generation_id": generation, "member_id": member_id, "group_instance_id": None}
    init = {"transactional_id": "x", "transaction_timeout": 60_000, **_producer}
    _next_transaction(await client.call(INIT_PRODUCER_ID, 4, init))
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

    def one(api_key: int, version: int, values: dict[str, Any]) -> Load:
        return lambda: iter([Request(api_key, version, values)])

    def transaction() -> Iterator[Request]:
        records = batch(attributes=_TRANSACTIONAL, base_sequence=0, **_producer)
        yield Request(PRODUCE, 12, produce_values("t", records) | {"transactional_id": "x"})
        yield Request(END_TXN, 5, {"transactional_id": "x", "committed": True, **_producer})

    large = batch([b"v" * 16_000])
    return {
        "produce": one(PRODUCE, 9, produce_values("t", batch(), acks=1)),
        "produce_16_kb": one(PRODUCE, 9, produce_values("large", large, acks=1)),
        "fetch": one(FETCH, 12, fetch),
        "heartbeat": one(HEARTBEAT, 4, member),
        "offset_commit": one(OFFSET_COMMIT, 8, commit),
        "transaction": transaction,
    }


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


def _code(answer: Any) -> int:
    """The innermost error code of the first part of an answer."""
    for parts in ("responses", "topics", "partitions", "partition_responses"):
        if getattr(answer, parts, None):
            return _code(getattr(answer, parts)[0])
    return int(answer.error_code)
