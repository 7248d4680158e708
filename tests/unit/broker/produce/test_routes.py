"""A frame on a known route must give exactly what parsing it gives, or nothing."""

import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.produce.routes import MAX_ROUTES, learn_route
from odradek.broker.produce.routes import find_route as find_in_buffer
from odradek.records.batch import build_batch
from odradek.wire.headers import encode_request, parse_request_header
from odradek.wire.messages import request_types
from odradek.wire.produce import ProduceRequest


def frame(
    records, *, version=9, topic="t", index=0, correlation_id=1, client_id="c", acks=-1, transactional_id=None
):
    types = request_types(0)
    request = types.ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout=1000,
        topic_data=[
            types.TopicProduceData(
                name=topic, partition_data=[types.PartitionProduceData(index=index, records=bytes(records))]
            )
        ],
    )
    return memoryview(encode_request(0, version, correlation_id, client_id, request))[4:]


def find_route(routes, data, start, stop):
    buffer = bytearray(data)
    return find_in_buffer(routes, buffer, memoryview(buffer), start, stop)


def learned(*frames):
    routes = []
    for data in frames:
        header, position = parse_request_header(data)
        learn_route(routes, header, ProduceRequest.parse(data, position, header.api_version), data)
    return routes


BATCH = build_batch([(0, None, b"x" * 100, ())])


@given(st.integers(1, 300), st.integers(0, 3), st.integers(9, 12))
@settings(max_examples=100, deadline=None)
def test_a_routed_frame_gives_the_records_that_parsing_gives(count, correlation_id, version):
    routes = learned(frame(BATCH, version=version))
    records = build_batch([(0, b"k", b"x" * 97, ())] * count)
    data = frame(records, version=version, correlation_id=correlation_id)
    route, found = find_route(routes, data, 0, len(data))
    assert bytes(found) == bytes(records)
    assert (route.topic, route.index, route.acks) == ("t", 0, -1)


def test_any_difference_leaves_the_route():
    routes = learned(frame(BATCH))
    for other in (
        frame(BATCH, topic="u"),
        frame(BATCH, index=1),
        frame(BATCH, acks=1),
        frame(BATCH, client_id="d"),
        frame(BATCH, version=10),
        frame(BATCH, transactional_id="x"),
        frame(build_batch([(0, None, b"x" * 100, ())], codec=1)),
    ):
        assert find_route(routes, other, 0, len(other)) == (None, None)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_frame_is_never_routed_beyond_itself(data):
    good = bytes(frame(BATCH))
    routes = learned(memoryview(good))
    damaged = bytearray(good)
    position = data.draw(st.integers(8, len(damaged) - 1))
    damaged[position] = data.draw(st.integers(0, 255))
    cut = memoryview(damaged)[: data.draw(st.integers(70, len(damaged)))]
    _, records = find_route(routes, cut, 0, len(cut))
    if records is not None:
        header, at = parse_request_header(cut)
        parsed = ProduceRequest.parse(cut, at, header.api_version)
        assert bytes(records) == bytes(parsed.topics[0][1][0][1])


def test_what_has_no_single_route_is_not_learned_and_the_oldest_route_gives_way():
    assert learned(frame(BATCH, version=8)) == []
    assert learned(frame(BATCH, transactional_id="x")) == []
    routes = learned(*(frame(BATCH, index=i) for i in range(MAX_ROUTES + 2)), frame(BATCH, index=5))
    assert [route.index for route in routes] == list(range(2, MAX_ROUTES + 2))


def test_the_head_is_two_shorts_and_a_correlation_id():
    data = frame(BATCH, correlation_id=77)
    assert struct.unpack_from(">hhi", data) == (0, 9, 77)
