"""What goes in comes out: every client, every codec, every part of a record, every acknowledgement level."""

import gzip
import time

import pytest

from tests.compat.clients import CLIENTS, CODECS, Client, Refused, Sent
from tests.support.batches import batch, record, varint
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import fetch, split

MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD = 10, 32, 87
CODEC_IDS = {name: i for i, name in enumerate(CODECS)}
RECORDS = [
    Sent(b"plain"),
    Sent(b"keyed", key=b"key"),
    Sent(None, key=b"tombstone"),
    Sent(b"", key=b""),
    Sent(
        b"headers",
        headers=(("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None), ("ünïcode", b"\xff\x00")),
    ),
    Sent(b"stamped", timestamp_ms=1_700_000_000_123),
    *(Sent(b"repetitive " * 50, key=str(i).encode()) for i in range(100)),
]


def records_for(client: Client) -> list[Sent]:
    if client.null_headers:
        return RECORDS
    return [r._replace(headers=tuple(h for h in r.headers if h[1] is not None)) for r in RECORDS]


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_exactly_as_they_went(bootstrap, topic, client: Client, codec):
    began_ms = int(time.time() * 1000)
    records = records_for(client)
    offsets = client.produce(bootstrap, topic, records, codec=codec)
    assert offsets == list(range(len(records)))
    read = client.consume(bootstrap, topic, len(records))
    assert [(r.offset, r.key, r.value, r.headers) for r in read] == [
        (i, s.key, s.value, s.headers) for i, s in enumerate(records)
    ]
    for sent, got in zip(records, read, strict=True):
        assert not got.log_append_time
        if sent.timestamp_ms is not None:
            assert got.timestamp_ms == sent.timestamp_ms
        else:
            assert began_ms <= got.timestamp_ms <= time.time() * 1000


@pytest.mark.parametrize("codec", CODECS)
def test_the_log_keeps_the_producers_codec(bootstrap, topic, raw: Connection, client: Client, codec):
    client.produce(bootstrap, topic, records_for(client), codec=codec)
    _, records = fetch(raw, topic)
    found = {b.codec for b in split(records)}
    assert CODEC_IDS[codec] in found
    assert found <= {0, CODEC_IDS[codec]}, "a client sends plain what compression would not make smaller"


def test_every_client_reads_what_every_other_wrote(bootstrap, topic):
    for writer in CLIENTS:
        for codec in CODECS:
            writer.produce(bootstrap, topic, [Sent(f"{writer.name} {codec}".encode() * 20)], codec=codec)
    expected = [f"{w.name} {c}".encode() * 20 for w in CLIENTS for c in CODECS]
    for reader in CLIENTS:
        assert [r.value for r in reader.consume(bootstrap, topic, len(expected))] == expected


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_level_of_acknowledgement_delivers(bootstrap, topic, client: Client, acks):
    offsets = client.produce(bootstrap, topic, [Sent(b"a"), Sent(b"b")], acks=acks)
    assert acks == "0" or offsets == [0, 1]
    assert [r.value for r in client.consume(bootstrap, topic, 2)] == [b"a", b"b"]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_idempotent_producers_write_sequences(bootstrap, topic, raw: Connection, client: Client, codec):
    for _ in range(2):
        client.produce(bootstrap, topic, records_for(client), codec=codec, idempotent=True)
    assert [r.value for r in client.consume(bootstrap, topic, 2 * len(RECORDS))] == [
        s.value for s in RECORDS
    ] * 2
    batches = split(fetch(raw, topic)[1])
    ids = sorted({b.producer_id for b in batches})
    assert len(ids) == 2
    assert ids[0] >= 0
    for producer_id in ids:
        expected = 0
        for b in batches:
            if b.producer_id == producer_id:
                assert b.base_sequence == expected
                expected += b.count


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_is_the_brokers(bootstrap, make_topic, client: Client, codec):
    name = make_topic(message_timestamp_type="LogAppendTime")
    began_ms = int(time.time() * 1000)
    client.produce(
        bootstrap, name, [Sent(b"a", timestamp_ms=1000), Sent(b"b", timestamp_ms=2000)], codec=codec
    )
    for r in client.consume(bootstrap, name, 2):
        assert r.log_append_time
        assert began_ms <= r.timestamp_ms <= time.time() * 1000


@pytest.mark.parametrize("target", ["uncompressed", *CODECS[1:]])
@pytest.mark.parametrize("codec", CODECS)
def test_the_topics_compression_type_recompresses(bootstrap, make_topic, raw: Connection, codec, target):
    name = make_topic(compression_type=target)
    writer, reader = CLIENTS[0], CLIENTS[1]
    writer.produce(bootstrap, name, RECORDS, codec=codec)
    expected = 0 if target == "uncompressed" else CODEC_IDS[target]
    assert {b.codec for b in split(fetch(raw, name)[1])} == {expected}
    read = reader.consume(bootstrap, name, len(RECORDS))
    assert [(r.offset, r.key, r.value, r.headers) for r in read] == [
        (i, s.key, s.value, s.headers) for i, s in enumerate(RECORDS)
    ]


def test_a_message_of_ten_megabytes_fits_where_the_topic_allows_it(bootstrap, make_topic, client: Client):
    name = make_topic(max_message_bytes=11_000_000)
    value = bytes(range(256)) * 40_000
    assert client.produce(bootstrap, name, [Sent(value)]) == [0]
    assert client.consume(bootstrap, name, 1)[0].value == value


def test_a_message_above_the_topics_limit_is_refused(bootstrap, make_topic, client: Client):
    name = make_topic(max_message_bytes=2000)
    assert client.produce(bootstrap, name, [Sent(b"x" * 1900)]) == [0]
    with pytest.raises(Refused) as refused:
        client.produce(bootstrap, name, [Sent(b"x" * 2001)])
    assert refused.value.code == MESSAGE_TOO_LARGE
    assert client.produce(bootstrap, name, [Sent(b"after")]) == [1]


def test_the_limit_counts_the_bytes_of_the_batch_exactly(make_topic, raw: Connection):
    limit = 5000
    name = make_topic(max_message_bytes=limit)
    overhead = len(batch([b"x" * 4000])) - 4000
    fits, above = batch([b"x" * (limit - overhead)]), batch([b"x" * (limit - overhead + 1)])
    assert (len(fits), len(above)) == (limit, limit + 1)
    assert produce(raw, name, fits).error_code == 0
    refused = produce(raw, name, above)
    assert (int(refused.error_code), refused.base_offset) == (MESSAGE_TOO_LARGE, -1)


def test_a_timestamp_too_far_in_the_future_is_refused(bootstrap, topic, client: Client):
    tomorrow = int(time.time() * 1000) + 25 * 3600 * 1000
    with pytest.raises(Refused) as refused:
        client.produce(bootstrap, topic, [Sent(b"x", timestamp_ms=tomorrow)])
    assert refused.value.code == INVALID_TIMESTAMP


def test_a_timestamp_older_than_the_topic_allows_is_refused(bootstrap, make_topic, client: Client):
    name = make_topic(message_timestamp_before_max_ms=60_000)
    with pytest.raises(Refused) as refused:
        client.produce(bootstrap, name, [Sent(b"x", timestamp_ms=int(time.time() * 1000) - 120_000)])
    assert refused.value.code == INVALID_TIMESTAMP


def test_a_compacted_topic_takes_no_record_without_a_key(bootstrap, make_topic, client: Client):
    name = make_topic(cleanup_policy="compact")
    assert client.produce(bootstrap, name, [Sent(b"v", key=b"k")]) == [0]
    with pytest.raises(Refused) as refused:
        client.produce(bootstrap, name, [Sent(b"v")])
    assert refused.value.code == (-1 if INVALID_RECORD in client.unknown_codes else INVALID_RECORD)


def test_single_bad_records_are_named_in_the_answer(make_topic, raw: Connection):
    name = make_topic(cleanup_policy="compact")
    payload = record(0, b"a", b"key") + record(1, b"b") + record(2, b"c", b"key") + record(3, b"d")
    answer = produce(raw, name, batch(payload=payload, count=4))
    assert int(answer.error_code) == INVALID_RECORD
    assert [e.batch_index for e in answer.record_errors] == [1, 3]


@pytest.mark.parametrize(
    ("what", "records", "code"),
    [
        ("a CRC that does not match", batch(crc_xor=1), 2),
        ("fewer records than the count", batch(count=2), INVALID_RECORD),
        ("more records than the count", batch([b"a", b"b"], count=1), INVALID_RECORD),
        ("a last offset delta beyond the count", batch([b"a", b"b"], last_offset_delta=5), INVALID_RECORD),
        ("a control batch", batch(attributes=0x20), INVALID_RECORD),
        ("no record at all", batch([]), INVALID_RECORD),
        ("a batch length beyond the bytes", batch(batch_length=10_000), INVALID_RECORD),
        ("a batch length below the header", batch(batch_length=10), 2),
        ("an unknown codec", batch(attributes=6), -1),
        ("a record longer than the batch", batch(payload=varint(1000) + b"\0" * 20), INVALID_RECORD),
        ("garbage in place of gzip", batch(payload=b"not gzip at all", attributes=1), -1),
        ("two batches in one produce", batch() + batch(), INVALID_RECORD),
        ("a magic of the future", batch(magic=3), 2),
    ],
    ids=lambda v: v.replace(" ", "-") if isinstance(v, str) else "",
)
def test_malformed_batches_are_refused_as_apache_refuses_them(topic, raw: Connection, what, records, code):
    answer = produce(raw, topic, records)
    assert (int(answer.error_code), answer.base_offset) == (code, -1), f"{what}: {answer.error_message}"
    assert produce(raw, topic, batch()).base_offset == 0, "the log must be as before"


def test_offset_deltas_are_checked_where_the_records_are_compressed(topic, raw: Connection):
    """Apache means INVALID_RECORD, trips over its own message and says UNKNOWN_SERVER_ERROR: both will do.

    Plain batches it stores with whatever deltas they have; refusing those keeps offsets in order.
    """
    backwards = record(1, b"a") + record(0, b"b")
    packed = batch(payload=gzip.compress(backwards), count=2, attributes=1)
    assert int(produce(raw, topic, packed).error_code) in (INVALID_RECORD, -1)
    assert int(produce(raw, topic, batch(payload=backwards, count=2)).error_code) in (INVALID_RECORD, 0)
