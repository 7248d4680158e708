"""Every message of every version, against kio's own reader and writer."""

import io
import json
import random
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_entity_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType

from odradek.core.errors import ProtocolError
from odradek.runtime.slices import Paced, at_once
from odradek.wire.api_keys import FLEXIBLE_FROM, ApiKey
from odradek.wire.codec import Codec
from odradek.wire.messages import request_codec, request_types, response_codec, response_types, versions
from tests.unit.wire.kio_definitions import definition
from tests.unit.wire.kio_random import matches, plain, random_message

ADVERTISED = json.loads((Path(__file__).parents[2] / "golden/api-versions.json").read_text())
NAMES = sorted(api_key_map.items())


def codec_of(api_key: int, kind: EntityType) -> Codec:
    return request_codec(api_key) if kind is EntityType.request else response_codec(api_key)


def kio_bytes(message: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


@pytest.mark.parametrize(("api_key", "name"), NAMES)
@pytest.mark.parametrize("kind", [EntityType.request, EntityType.response])
def test_all_versions_decode_and_encode_as_kio_does(api_key: int, name: str, kind: EntityType) -> None:
    codec = codec_of(api_key, kind)
    for version in schema_name_map[name]:
        cls = load_entity_schema(name, version, kind)
        rng = random.Random(f"{name}-{version}")
        for _ in range(8):
            message = random_message(cls, rng)
            data = kio_bytes(message)
            ours, end = codec.decoder(version)(memoryview(b"\xff" + data), 1)
            assert end == len(data) + 1
            assert matches(ours, plain(message))
            assert codec.encoder(version)(ours) == data
            again, _ = codec.decoder(version)(data, 0)
            assert again == ours
        sliced, end = at_once(codec.sliced_decoder(version)(data, 0))
        assert (sliced, end) == (ours, len(data))
        assert b"".join(at_once(codec.sliced_encoder(version)(sliced))) == data


@pytest.mark.parametrize(("api_key", "name"), NAMES)
def test_definitions_are_those_of_kio(api_key: int, name: str) -> None:
    module = import_module(f"odradek.wire.definitions.{name}")
    assert Path(str(module.__file__)).read_text() == definition(api_key)
    assert ApiKey(api_key).name.lower() == name
    assert FLEXIBLE_FROM[api_key] == request_codec(api_key).schema.flexible_from
    assert FLEXIBLE_FROM[api_key] == response_codec(api_key).schema.flexible_from


def test_every_advertised_version_is_known() -> None:
    for listener in ("broker", "controller"):
        for api in ADVERTISED[listener]["apis"]:
            first, last = versions(api["key"])
            assert last == api["max"] or api["name"] == "init_producer_id"
            assert first <= api["min"] or api["name"] == "produce"


def test_a_message_refuses_names_no_version_has() -> None:
    for api_key, _ in NAMES:
        for cls in (*vars(request_types(api_key)).values(), *vars(response_types(api_key)).values()):
            cls()
            with pytest.raises(TypeError):
                cls(no_such_field=1)
            with pytest.raises(AttributeError):
                cls().no_such_field = 1


def test_unknown_tagged_fields_are_skipped() -> None:
    codec = request_codec(ApiKey.API_VERSIONS)
    message = codec.types.ApiVersionsRequest(client_software_name="n", client_software_version="1")
    data = codec.encoder(4)(message)
    assert data.endswith(b"\0")
    extended = data[:-1] + b"\x02" + b"\x07\x03abc" + b"\xc8\x01\x00"
    decoded, end = codec.decoder(4)(extended, 0)
    assert decoded == message
    assert end == len(extended)


def test_known_tagged_fields_among_unknown_ones_are_read() -> None:
    codec = request_codec(ApiKey.FETCH)
    data = codec.encoder(17)(codec.types.FetchRequest(cluster_id="abc"))
    extended = data[:-7] + b"\x02" + b"\x00\x04\x04abc" + b"\x63\x01z"
    assert codec.decoder(17)(extended, 0)[0].cluster_id == "abc"


def test_a_tagged_field_that_does_not_end_where_it_says_is_refused() -> None:
    codec = request_codec(ApiKey.FETCH)
    data = codec.encoder(17)(codec.types.FetchRequest(cluster_id="abc"))
    for size in (3, 5):
        damaged = data[:-5] + bytes((size,)) + data[-4:] + b"\0"
        with pytest.raises(ProtocolError, match="does not have the size"):
            codec.decoder(17)(damaged, 0)


def test_an_array_cannot_have_more_elements_than_its_bytes_can_hold() -> None:
    """Each topic of a CreateTopics v7 takes nine bytes at least."""
    decode = request_codec(ApiKey.CREATE_TOPICS).decoder(7)
    with pytest.raises(ProtocolError, match="an array reaches beyond the end"):
        decode(bytes((101,)) + bytes(9 * 99), 0)


def test_many_elements_are_decoded_and_encoded_in_small_steps() -> None:
    codec = request_codec(ApiKey.METADATA)
    topics = [codec.types.MetadataRequestTopic(name=f"topic-{i}") for i in range(1_000)]
    data = codec.encoder(9)(codec.types.MetadataRequest(topics=topics))
    assert _largest_step(codec.sliced_decoder(9)(data, 0)) < 50
    assert _largest_step(codec.sliced_encoder(9)(codec.types.MetadataRequest(topics=topics))) < 50


def test_many_numbers_are_decoded_and_encoded_in_small_steps() -> None:
    codec = request_codec(ApiKey.OFFSET_FETCH)
    topic = codec.types.OffsetFetchRequestTopic(name="t", partition_indexes=list(range(5_000)))
    message = codec.types.OffsetFetchRequest(group_id="g", topics=[topic])
    data = codec.encoder(7)(message)
    decoded, _ = at_once(codec.sliced_decoder(7)(data, 0))
    assert decoded.topics[0].partition_indexes == list(range(5_000))
    pieces = at_once(codec.sliced_encoder(7)(decoded))
    assert b"".join(pieces) == data
    assert _largest_step(codec.sliced_decoder(7)(data, 0)) < 50
    assert _largest_step(codec.sliced_encoder(7)(message)) < 50


def _largest_step(work: Paced[object]) -> int:
    """How many elements are touched between two yields, measured in calls of Python and C functions."""
    largest = count = 0

    def profile(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    for _ in range(10_000):
        count = 0
        sys.setprofile(profile)
        try:
            work.send(None)
        except StopIteration:
            break
        finally:
            sys.setprofile(None)
        largest = max(largest, count)
    return largest


@pytest.mark.parametrize("version", [0, 1, 8, 13])
def test_truncated_or_damaged_bytes_give_protocol_error_only(version: int) -> None:
    codec = response_codec(ApiKey.METADATA)
    cls = load_entity_schema("metadata", version, EntityType.response)
    rng = random.Random(version)
    data = kio_bytes(random_message(cls, rng))
    decode = codec.decoder(version)
    for cut in range(0, len(data), 3):
        with pytest.raises(ProtocolError):
            decode(data[:cut], 0)
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.getrandbits(8)
        try:
            decode(damaged, 0)
        except ProtocolError:
            pass


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ProtocolError):
        request_codec(ApiKey.METADATA).decoder(14)
    with pytest.raises(ProtocolError):
        request_codec(999)
