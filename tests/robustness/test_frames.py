"""Invalid bytes and unsupported requests get Apache's answer, and other clients are not affected."""

import struct

import pytest

from tests.support.raw import Connection, decode_response

API_VERSIONS, METADATA = 18, 3
CLOSED, ANSWERED, WAITS = "closed", "answered", "waits"


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def head(api_key: int, version: int, *, flexible: bool = False, client_id: bytes = b"x") -> bytes:
    fixed = struct.pack(">hhih", api_key, version, 7, len(client_id)) + client_id
    return fixed + (b"\0" if flexible else b"")


def outcome(bootstrap: str, data: bytes, timeout_s: float = 10) -> str:
    with Connection(bootstrap, timeout_s) as connection:
        connection.socket.sendall(data)
        try:
            connection.receive_frame()
        except ConnectionError:
            return CLOSED
        except TimeoutError:
            return WAITS
        return ANSWERED


CASES = {
    "a negative size": (struct.pack(">i", -1), CLOSED),
    "the smallest size": (struct.pack(">i", -(2**31)), CLOSED),
    "a size above socket.request.max.bytes": (struct.pack(">i", 104_857_601), CLOSED),
    "the largest size": (struct.pack(">i", 2**31 - 1), CLOSED),
    "an empty frame": (frame(b""), CLOSED),
    **{f"{n} zero bytes": (frame(bytes(n)), CLOSED) for n in (1, 4, 8, 9, 11)},
    "an HTTP request": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", CLOSED),
    "a TLS hello": (bytes.fromhex("16030100c8010000c40303"), CLOSED),
    "an unknown api": (frame(head(999, 0)), CLOSED),
    "a negative api": (frame(head(-1, 0)), CLOSED),
    "an api of old brokers": (frame(head(4, 0) + bytes(20)), CLOSED),
    "an api of controllers": (frame(head(52, 0, flexible=True) + bytes(20)), CLOSED),
    "a version too high": (frame(head(METADATA, 14, flexible=True) + bytes(5)), CLOSED),
    "a negative version": (frame(head(METADATA, -1) + bytes(4)), CLOSED),
    **{
        f"Produce v{v}, advertised but refused": (frame(head(0, v) + struct.pack(">hii", 1, 9, 0)), CLOSED)
        for v in range(3)
    },
    "Fetch v3": (frame(head(1, 3) + struct.pack(">iiii", -1, 0, 0, 0)), CLOSED),
    "CreateTopics v0": (frame(head(19, 0) + struct.pack(">ii", 0, 1000)), CLOSED),
    "a truncated body": (frame(head(METADATA, 1) + b"\0\0"), CLOSED),
    "an array longer than the frame": (frame(head(METADATA, 1) + struct.pack(">i", 2**31 - 1)), CLOSED),
    "a compact array longer than the frame": (
        frame(head(METADATA, 9, flexible=True) + b"\xff\xff\xff\xff\x0f"),
        CLOSED,
    ),
    "a varint without end": (frame(head(METADATA, 9, flexible=True) + b"\xff" * 10), CLOSED),
    "a null where none may be": (frame(head(10, 0) + struct.pack(">h", -1)), CLOSED),
    "a client id longer than the frame": (frame(struct.pack(">hhih", API_VERSIONS, 0, 7, 500)), CLOSED),
    "no client id": (frame(struct.pack(">hhih", API_VERSIONS, 0, 7, -1)), ANSWERED),
    "a client id that is not UTF-8": (frame(head(API_VERSIONS, 0, client_id=b"\xff\xfe")), ANSWERED),
    "bytes after the request": (frame(head(METADATA, 1) + struct.pack(">i", 0) + b"junk"), ANSWERED),
    "an unknown tagged field in the header": (
        frame(struct.pack(">hhih", API_VERSIONS, 3, 7, 1) + b"x\x01\x63\x03abc" + b"\x02x\x02y\0"),
        ANSWERED,
    ),
    "an unknown tagged field in the body": (
        frame(head(API_VERSIONS, 3, flexible=True) + b"\x02x\x02y" + b"\x01\x63\x03abc"),
        ANSWERED,
    ),
}


@pytest.mark.parametrize(("data", "expected"), CASES.values(), ids=[k.replace(" ", "-") for k in CASES])
def test_strange_bytes_get_apaches_answer(bootstrap, data, expected):
    assert outcome(bootstrap, data) == expected
    assert outcome(bootstrap, frame(head(API_VERSIONS, 0))) == ANSWERED, "others must not notice"


def test_an_unfinished_frame_is_waited_for(bootstrap):
    request = frame(head(API_VERSIONS, 0))
    assert outcome(bootstrap, request[:-1], timeout_s=0.5) == WAITS
    with Connection(bootstrap) as connection:
        for byte in request:
            connection.socket.sendall(bytes([byte]))
        assert decode_response(API_VERSIONS, 0, connection.receive_frame())[0] == 7


def test_a_frame_of_the_largest_size_is_waited_for_without_taking_its_memory(bootstrap):
    assert outcome(bootstrap, struct.pack(">i", 104_857_600) + bytes(100), timeout_s=0.5) == WAITS


@pytest.mark.parametrize("version", [5, 99, -1])
def test_api_versions_too_new_are_answered_in_version_zero(bootstrap, version):
    with Connection(bootstrap) as connection:
        connection.socket.sendall(frame(head(API_VERSIONS, version, flexible=True) + b"\x02x\x02y\0"))
        correlation_id, answer = decode_response(API_VERSIONS, 0, connection.receive_frame())
        assert (correlation_id, int(answer.error_code)) == (7, 35)
        assert [(k.api_key, k.min_version, k.max_version) for k in answer.api_keys] == [(API_VERSIONS, 0, 4)]
        connection.socket.sendall(frame(head(API_VERSIONS, 0)))
        assert int(decode_response(API_VERSIONS, 0, connection.receive_frame())[1].error_code) == 0


def test_nothing_unadvertised_is_answered(bootstrap, raw):
    advertised = {k.api_key: (k.min_version, k.max_version) for k in raw.call(API_VERSIONS, 0, {}).api_keys}
    telemetry = {71, 72}  # Apache answers these two unadvertised, with an error
    unserved = [(key, 0) for key in range(-1, 100) if key not in advertised.keys() | telemetry]
    beyond = [(key, high + 1) for key, (_, high) in advertised.items() if key != API_VERSIONS]
    below = [(key, low - 1) for key, (low, _) in advertised.items() if key != API_VERSIONS]
    for key, version in unserved + beyond + below:
        got = outcome(bootstrap, frame(head(key, version, flexible=True) + bytes(64)))
        assert got == CLOSED, f"api {key} v{version} was {got}"


def test_a_pipeline_is_answered_up_to_the_request_that_is_wrong(bootstrap):
    good, wrong = frame(head(API_VERSIONS, 0)), frame(head(999, 0))
    with Connection(bootstrap) as connection:
        connection.socket.sendall(good * 3 + wrong + good)
        for _ in range(3):
            assert decode_response(API_VERSIONS, 0, connection.receive_frame())[0] == 7
        assert connection.closed_by_peer()
