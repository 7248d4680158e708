"""Headers of both directions, and frames around requests."""

import random
import struct

import pytest

from odradek.core.errors import ProtocolError
from odradek.wire.api_keys import FLEXIBLE_FROM, ApiKey
from odradek.wire.headers import (
    encode_request,
    is_flexible,
    parse_request_header,
    parse_response_header,
    response_header,
)
from odradek.wire.messages import request_decoder, request_types


def test_a_request_frame_is_read_back_in_old_and_flexible_versions() -> None:
    types = request_types(ApiKey.METADATA)
    for version in (0, 8, 9, 13):
        for client_id in ("client-ü", "", None):
            message = types.MetadataRequest(topics=[types.MetadataRequestTopic(name="t")])
            frame = encode_request(ApiKey.METADATA, version, 77, client_id, message)
            assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
            header, position = parse_request_header(memoryview(frame)[4:], 0)
            assert header == (ApiKey.METADATA, version, 77, client_id)
            decoded, end = request_decoder(ApiKey.METADATA, version)(memoryview(frame)[4:], position)
            assert decoded.topics[0].name == "t"
            assert end == len(frame) - 4


def test_tagged_fields_of_a_header_are_skipped() -> None:
    header = struct.pack(">hhih", ApiKey.METADATA, 12, 5, 1) + b"c" + b"\x01\x09\x02ab" + b"body"
    parsed, position = parse_request_header(header)
    assert parsed.client_id == "c"
    assert header[position:] == b"body"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\3\0\0",
        struct.pack(">hhih", 3, 0, 1, 50) + b"short",
        struct.pack(">hhih", 3, 12, 1, -1),
        struct.pack(">hhih", 3, 12, 1, -1) + b"\x01\x01\x7f",
        struct.pack(">hhih", 3, 12, 1, -1) + b"\xff\xff\xff\xff\xff\xff",
        struct.pack(">hhih", 4, 0, 1, -1),
        struct.pack(">hhih", -1, 0, 1, -1),
    ],
)
def test_what_is_no_header_is_a_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_request_header(data)


def test_a_client_id_that_is_not_utf8_is_read_as_java_reads_it() -> None:
    header, _ = parse_request_header(struct.pack(">hhih", 3, 0, 1, 2) + b"\xff\xfe")
    assert header.client_id == "\ufffd\ufffd"


def test_garbage_headers_never_raise_anything_else() -> None:
    rng = random.Random(1)
    for _ in range(5000):
        data = struct.pack(">hh", rng.randint(-1, 93), rng.randint(0, 20)) + rng.randbytes(rng.randint(0, 30))
        try:
            parse_request_header(data)
        except ProtocolError:
            pass


def test_response_headers_are_flexible_where_the_request_is_but_never_for_api_versions() -> None:
    for api_key, first in FLEXIBLE_FROM.items():
        header = response_header(api_key, first, 9)
        assert len(header) == (4 if api_key == ApiKey.API_VERSIONS else 5)
        assert parse_response_header(header, 0, api_key, first) == (9, len(header))
        if first > 0:
            assert len(response_header(api_key, first - 1, 9)) == 4
    assert is_flexible(ApiKey.API_VERSIONS, 3)
    with pytest.raises(ProtocolError):
        parse_response_header(b"\0\0", 0, ApiKey.METADATA, 12)
