"""What a consumer is shown, against what real consumers read from the golden logs."""

import itertools

import pytest

from odradek.client.partition_reader import PartitionReader
from odradek.client.visibility import visible_records
from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.records.batch import build_batch, iter_batches, iter_records
from odradek.records.control import EndTransactionMarker, marker_record
from tests.golden import loader

TP = TopicPartition("t", 0)


def batch(base_offset: int, values: list[bytes], *, producer_id: int = -1) -> bytes:
    return bytes(
        build_batch(
            [(0, None, value, ()) for value in values],
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=producer_id >= 0,
        )
    )


def marker(offset: int, producer_id: int, committed: bool) -> bytes:
    key, value = marker_record(EndTransactionMarker(committed, 0))
    return bytes(
        build_batch(
            [(0, key, value, ())],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
    )


LOG = b"".join(
    [
        batch(0, [b"plain"]),
        batch(1, [b"a1", b"a2"], producer_id=1),
        batch(3, [b"b1"], producer_id=2),
        marker(4, 1, committed=False),
        batch(5, [b"a3"], producer_id=1),
        marker(6, 2, committed=True),
        marker(7, 1, committed=True),
    ]
)


def values(aborted: list[tuple[int, int]] | None, from_offset: int = 0) -> list[bytes | None]:
    return [record.value for _, record in visible_records(LOG, from_offset, aborted) if record is not None]


def test_read_uncommitted_sees_all_but_markers() -> None:
    assert values(None) == [b"plain", b"a1", b"a2", b"b1", b"a3"]


def test_read_committed_leaves_out_what_was_aborted_and_only_that() -> None:
    assert values([(1, 1)]) == [b"plain", b"b1", b"a3"]


def test_aborted_transactions_may_be_listed_in_any_order() -> None:
    """A broker lists them by where they end: the one that began last may come first."""
    log = b"".join(
        [
            batch(0, [b"a1"], producer_id=1),
            batch(1, [b"b1"], producer_id=2),
            marker(2, 2, committed=False),
            marker(3, 1, committed=False),
            batch(4, [b"b2"], producer_id=2),
            marker(5, 2, committed=False),
            batch(6, [b"a2"], producer_id=1),
            marker(7, 1, committed=True),
        ]
    )
    for aborted in itertools.permutations([(1, 0), (2, 1), (2, 4)]):
        shown = [record.value for _, record in visible_records(log, 0, aborted) if record is not None]
        assert shown == [b"a2"], aborted


def test_reading_starts_inside_a_batch() -> None:
    assert values(None, from_offset=2) == [b"a2", b"b1", b"a3"]


def test_the_position_moves_past_what_is_not_shown() -> None:
    reader = PartitionReader(TP, 1)
    reader.feed(LOG, [(1, 1)])
    assert [r.value for r in reader.take(1)] == [b"b1"]
    assert reader.position == 4
    assert not reader.wants_data
    assert [r.offset for r in reader.take(10)] == [5]
    assert reader.position == 8
    assert reader.wants_data


def test_a_damaged_batch_is_not_shown() -> None:
    damaged = bytearray(LOG)
    damaged[-1] ^= 1
    with pytest.raises(KafkaError, match="CRC"):
        list(visible_records(damaged, 0, None))


def aborted_in(data: bytes) -> list[tuple[int, int]]:
    """What a broker's transaction index would list: aborted transactions by producer and first offset."""
    first: dict[int, int] = {}
    found = []
    for b in iter_batches(data):
        if b.is_control:
            (record,) = iter_records(data, b)
            assert record.key is not None
            start = first.pop(b.producer_id, None)
            if record.key[3] == 0 and start is not None:
                found.append((b.producer_id, start))
        elif b.is_transactional:
            first.setdefault(b.producer_id, b.base_offset)
    # Later transactions of a producer sort after earlier ones, as in the index.
    return sorted(found, key=lambda transaction: transaction[1])


@pytest.mark.parametrize("topic", ["txn", "compacted"])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_golden_transactions_are_seen_as_a_real_consumer_saw_them(topic: str, isolation: str) -> None:
    expected = loader.expected()["topics"][topic][isolation]
    partitions = sorted({record["partition"] for record in expected})
    for partition in partitions:
        data = b"".join(loader.segments("clean", f"{topic}-{partition}"))
        aborted = aborted_in(data) if isolation == "read_committed" else None
        wanted = [record["offset"] for record in expected if record["partition"] == partition]
        shown = [r.offset for _, r in visible_records(data, 0, aborted) if r is not None]
        assert [offset for offset in shown if offset <= wanted[-1]] == wanted
