"""A leader that has resigned still has replies to send, whose records it may have to truncate."""

import socket
from pathlib import Path
from typing import Any

import pytest

from odradek.log.log import Isolation, Log
from odradek.metadata.image import PartitionRegistration
from odradek.wire.api_keys import ApiKey
from tests.hostile.stage import Stage, staged
from tests.support.raw import request_bytes
from tests.unit.broker.test_replicated_produce import FETCH_VERSION, REPLICAS, TOPIC, replicated
from tests.unit.log.support import batch

RECORD_BYTES = 1 << 20
COUNT = 16
MUCH = 1 << 30


def slow_reader(stage: Stage) -> socket.socket:
    """A follower that has asked for everything and does not read yet."""
    row = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "partition_max_bytes": MUCH}
    values: dict[str, Any] = {
        "replica_id": 2,
        "max_bytes": MUCH,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "partitions": [row | {"last_fetched_epoch": -1}]}],
    }
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(stage.address)
    peer.setblocking(False)
    peer.sendall(request_bytes(ApiKey.FETCH, FETCH_VERSION, values))
    stage.wait_until_idle()
    return peer


def drained(stage: Stage, peer: socket.socket) -> bytes:
    """All that the node still sends, up to the end of the connection if it ends."""
    received = bytearray()
    idle = 0
    while idle < 20:
        stage.turn()
        try:
            piece = peer.recv(1 << 20)
        except BlockingIOError:
            idle += 1
            continue
        except ConnectionResetError:
            break
        if not piece:
            break
        received += piece
        idle = 0
    return bytes(received)


def content(log: Log) -> bytes:
    found = log.read(0, MUCH, Isolation.LOG_END).slice
    assert found is not None
    return found.read()


@pytest.mark.parametrize("kept", [0, COUNT - 1, COUNT])
def test_a_slow_reader_never_gets_other_records_than_those_it_was_answered(tmp_path: Path, kept: int) -> None:
    """The leader is deposed, truncates to what its successor has, and follows it."""
    with staged(tmp_path / "data") as stage, stage.client() as client:
        partition = replicated(stage, client, 1, 2)
        log = partition.log
        for _ in range(COUNT):
            partition.append_as_leader([batch(value=b"o" * RECORD_BYTES)], acks_all=False)
        answered = content(log)
        with slow_reader(stage) as peer:
            next_epoch = partition.leader_epoch + 1
            partition.apply(PartitionRegistration(REPLICAS, (2,), 2, next_epoch, 10))
            log.truncate_to(kept)
            for offset in range(kept, COUNT + 2):
                fetched = batch(value=b"n" * RECORD_BYTES, base_offset=offset, leader_epoch=next_epoch)
                log.append_as_follower(fetched.buffer)
            assert len(content(log)) > len(answered)
            received = drained(stage, peer)
        at = received.find(answered[:100])
        assert at > 0, "the header and the first record were sent before"
        records = received[at : at + len(answered)]
        assert records == answered[: len(records)]
        assert (len(records) == len(answered)) == (kept == COUNT), "else it ends with the connection"
