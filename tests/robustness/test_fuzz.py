"""Random bytes that look like Kafka: requests of every served API and version, and batches, each damaged.

The node always answers or closes the connection, logs no internal error, and serves the next client.
At least half of the cases get past framing: their size is right, and their header names what is served.
`make soak-fuzz` plays more of them.
"""

import os
import random
import socket
import struct
import uuid

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from odradek.testing.broker import Broker
from tests.compat.scenarios import SCENARIOS, World
from tests.compat.test_versions import CASES
from tests.support.batches import batch, record
from tests.support.produce import PRODUCE, produce, produce_values
from tests.support.raw import Connection, request_bytes
from tests.support.stored import fetch, split
from tests.support.topics import create_topic

pytestmark = pytest.mark.timeout(1_800)
CASES_IN_ALL = int(os.environ.get("ODRADEK_SOAK_CASES", "10000"))
FRAME_CASES, BATCH_CASES = CASES_IN_ALL * 6 // 10, CASES_IN_ALL * 4 // 10
SENTINEL_ID = 0x5EED
API_VERSIONS, CREATE_TOPICS, CREATE_PARTITIONS = 18, 19, 37
# Generating only: what fails is printed whole, and thousands of cases leave no time to shrink.
FUZZ = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def broker():
    config = {"auto.create.topics.enable": "false", "message.max.bytes": "200000"}
    with Broker(config) as running:
        yield running


def corpus(bootstrap: str) -> list[bytes]:
    """The first request of every scenario at every version, whole frames."""
    out = []
    for key, version in CASES:
        if key in (CREATE_TOPICS, CREATE_PARTITIONS):
            continue  # a damaged one may well be right, and make a million partitions
        world = World(bootstrap, lambda prefix="t": f"{prefix}-{uuid.uuid4().hex[:6]}")
        conversation = SCENARIOS[key](world, version)
        out.append(request_bytes(key, version, next(conversation), correlation_id=7))
        conversation.close()
    return out


def exchange(bootstrap: str, data: bytes) -> bytes:
    """Everything the node says to these bytes and a sentinel behind them, until it hangs up."""
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 20) as sock:
        try:
            sock.sendall(data + request_bytes(API_VERSIONS, 0, {}, correlation_id=SENTINEL_ID))
            sock.shutdown(socket.SHUT_WR)
            out = bytearray()
            while piece := sock.recv(1 << 16):
                out += piece
        except (ConnectionResetError, BrokenPipeError):
            return b""
        return bytes(out)


def damage(frame: bytes, seed: int, cuts: int) -> bytes:
    """Flip, overwrite, drop or insert a few bytes of the body; a stale size is part of some damage."""
    rng = random.Random(seed)
    head, body = frame[:14], bytearray(frame[14:])  # size, api key, version, correlation id, client id length
    for _ in range(cuts):
        at = rng.randrange(len(body)) if body else 0
        kind = rng.randrange(5)
        if kind == 0 and body:
            body[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and body:
            body[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del body[at : at + rng.randrange(1, 9)]
        elif kind == 3:
            body[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif len(body) >= at + 4:
            body[at : at + 4] = struct.pack(">i", rng.choice((-1, -2, 0, 2**31 - 1, -(2**31), len(body))))
    out = head + bytes(body)
    if rng.random() < 0.25:
        return out  # the size may be wrong now
    return struct.pack(">i", len(out) - 4) + out[4:]


def is_past_framing(data: bytes, original: bytes) -> bool:
    (size,) = struct.unpack_from(">i", data)
    return len(data) == size + 4 and data[4:8] == original[4:8]


def own_failures(broker: Broker) -> list[str]:
    """Lines of the node's log that say that the node, not the peer, was at fault."""
    return [line for line in broker.log_tail() if " ERROR " in line or "Traceback" in line]


def test_damaged_requests_never_harm_the_node(broker):
    frames = corpus(broker.bootstrap_servers)
    seen = {"cases": 0, "past framing": 0, "answered": 0}

    @settings(FUZZ, max_examples=FRAME_CASES)
    @given(st.integers(0, len(frames) - 1), st.integers(0, 2**32), st.integers(0, 6))
    def run(which, seed, cuts):
        data = damage(frames[which], seed, cuts)
        answer = exchange(broker.bootstrap_servers, data)
        seen["cases"] += 1
        seen["past framing"] += is_past_framing(data, frames[which])
        seen["answered"] += bool(answer)
        assert not own_failures(broker), (data.hex(), own_failures(broker))

    run()
    assert seen["cases"] >= FRAME_CASES
    assert seen["past framing"] >= seen["cases"] / 2, seen
    assert seen["answered"] >= seen["cases"] / 5, seen
    with Connection(broker.bootstrap_servers) as connection:
        assert int(connection.call(API_VERSIONS, 0, {}).error_code) == 0


BYTES = st.one_of(st.none(), st.binary(max_size=20))
BATCH = st.fixed_dictionaries(
    {
        "values": st.lists(BYTES, max_size=4),
        "key": BYTES,
        "attributes": st.one_of(st.just(0), st.integers(0, 0x7F)),
        "producer_id": st.sampled_from([-1, 5, 2**40]),
        "producer_epoch": st.sampled_from([-1, 0, 3]),
        "base_sequence": st.sampled_from([-1, 0, 1, 2**31 - 1]),
        "timestamp": st.sampled_from([None, 0, -1, 2**62, -(2**63)]),
    },
    optional={
        "count": st.integers(-2, 9),
        "last_offset_delta": st.sampled_from([-1, 0, 1, 7, 2**31 - 1]),
        "batch_length": st.sampled_from([-1, 0, 48, 49, 50, 1000, 2**31 - 1]),
        "max_timestamp": st.sampled_from([-1, 0, 2**63 - 1]),
        "payload": st.one_of(st.binary(max_size=80), st.just(record(0, b"v") * 2)),
        "magic": st.sampled_from([0, 1, 2, 2, 3, 127]),
        "crc_xor": st.sampled_from([0, 0, 0, 1]),
    },
)


def test_damaged_batches_never_harm_the_log(broker):
    """Whatever a producer sends in a right frame: answered, and all that is in the log can be read."""
    bootstrap, topic = broker.bootstrap_servers, "fuzzed"
    with Connection(bootstrap) as connection:
        create_topic(bootstrap, topic)
        codes: dict[int, int] = {}
        count = 0

        @settings(FUZZ, max_examples=BATCH_CASES)
        @given(BATCH, st.integers(0, 2**32), st.integers(0, 3))
        def run(fields, seed, cuts):
            nonlocal count
            if fields["timestamp"] is None:
                del fields["timestamp"]
            records = batch(**fields)
            rng = random.Random(seed)
            for _ in range(cuts * (seed % 2)):
                at = rng.randrange(len(records))
                records = records[:at] + bytes([records[at] ^ (1 << rng.randrange(8))]) + records[at + 1 :]
            answer = connection.call(PRODUCE, 9, produce_values(topic, records))
            code = int(answer.responses[0].partition_responses[0].error_code)
            codes[code] = codes.get(code, 0) + 1
            count += 1
            assert not own_failures(broker), (records.hex(), own_failures(broker))

        run()
        assert count >= BATCH_CASES
        assert codes[0] > 50, f"some must be right: {codes}"
        assert len(codes) >= 4, f"and wrong in many ways: {codes}"
        end = produce(connection, topic, batch([b"last"])).base_offset
        offset = 0
        while offset <= end:
            error, data = fetch(connection, topic, offset)
            stored = split(data)
            assert error == 0
            assert stored, f"nothing at {offset}"
            assert stored[0].base_offset == offset
            offset = stored[-1].base_offset + stored[-1].last_offset_delta + 1
        assert offset == end + 1
