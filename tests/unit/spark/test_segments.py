"""Log directories without a broker: what is planned, what is shown, and what is refused."""

import shutil
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odradek.client.fetching import READ_COMMITTED, READ_UNCOMMITTED
from odradek.core.types import TopicPartition
from odradek.log.checkpoints import format_offsets
from odradek.records.control import EndTransactionMarker, marker_record
from odradek.runtime.real import RealDisk
from odradek.spark.options import OptionError, segment_options
from odradek.spark.segments.directory import SegmentError, SegmentPart, pack, plan
from odradek.spark.segments.reading import read_part
from odradek.spark.segments.transactions import Aborted, AbortedSpans, Transactions
from tests.golden import loader
from tests.support.batches import batch, record

TRANSACTIONAL, CONTROL = 0x10, 0x20


def planned(path: Path, **given: str) -> list[SegmentPart]:
    return plan(RealDisk(), segment_options({"path": str(path), **given}))


def rows(path: Path, **given: str) -> list[dict[str, Any]]:
    options = segment_options({"path": str(path), **given})
    is_committed = options.isolation == READ_COMMITTED
    return [
        row
        for part in plan(RealDisk(), options)
        for found in read_part(RealDisk(), part, is_committed=is_committed, with_headers=True)
        for row in found.to_pylist()
    ]


def values(path: Path, **given: str) -> list[str]:
    return [row["value"].decode() for row in rows(path, **given)]


def data(offset: int, *texts: str, producer: int = -1, **more: Any) -> bytes:
    if producer >= 0:
        more |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    attributes = more.pop("attributes", TRANSACTIONAL if producer >= 0 else 0)
    return batch([t.encode() for t in texts], base_offset=offset, attributes=attributes, **more)


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    key, value = marker_record(EndTransactionMarker(commit, 0))
    return batch(
        payload=record(0, value, key),
        count=1,
        base_offset=offset,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer,
        producer_epoch=0,
    )


def write(folder: Path, *segments: tuple[int, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for base, content in segments:
        (folder / f"{base:020d}.log").write_bytes(content)
    return folder


# --- transactions ----------------------------------------------------------------------------------------


def test_open_transactions_bound_and_aborted_ones_are_remembered() -> None:
    found = Transactions()
    found.write(1, 0)
    found.write(2, 3)
    found.write(1, 5)
    found.end(1, 7, commit=False)
    found.write(1, 8)
    found.end(1, 9, commit=True)
    found.end(4, 10, commit=False)
    assert found.aborted == [Aborted(1, 0, 7)]
    assert found.first_open_offset == 3
    assert found.aborted_between(7, 9) == (Aborted(1, 0, 7),)
    assert found.aborted_between(8, 9) == ()


def test_a_span_holds_what_its_producer_wrote_in_it() -> None:
    spans = AbortedSpans([Aborted(1, 20, 25), Aborted(1, 0, 7), Aborted(2, 5, 30)])
    held = [offset for offset in range(30) if spans.hold(1, offset)]
    assert held == [*range(8), *range(20, 26)]
    assert not spans.hold(3, 6)


def test_aborted_and_open_transactions_are_not_shown_without_any_index(tmp_path: Path) -> None:
    """Begun in one segment, ended in another; the files beside the logs are not needed."""
    folder = write(
        tmp_path / "t-0",
        (0, data(0, "a", "b") + data(2, "aborted", producer=1) + data(3, "kept", producer=2)),
        (4, data(4, "aborted too", producer=1) + marker(5, 2, commit=True) + data(6, "c")),
        (7, marker(7, 1, commit=False) + data(8, "again", producer=1) + marker(9, 1, commit=True)),
        (10, data(10, "d") + data(11, "open", producer=3) + data(12, "behind it")),
        (13, data(13, "behind it, too")),
    )
    assert values(folder) == ["a", "b", "kept", "c", "again", "d"]
    everything = values(folder, isolation="read_uncommitted")
    assert everything == [
        *("a", "b", "aborted", "kept", "aborted too", "c", "again", "d"),
        *("open", "behind it", "behind it, too"),
    ]
    parts = planned(folder)
    assert [Path(p.path).name for p in parts] == [f"{base:020d}.log" for base in (0, 4, 7, 10)]
    assert [p.aborted for p in parts] == [(Aborted(1, 2, 7),)] * 3 + [()]
    assert {p.last_offset for p in parts} == {10}


def test_what_compaction_has_emptied_holds_nothing_back(tmp_path: Path) -> None:
    emptied = batch(payload=b"", count=0, base_offset=1, attributes=TRANSACTIONAL, producer_id=1)
    write(tmp_path / "t-0", (0, data(0, "a") + emptied + data(2, "b")))
    assert values(tmp_path) == ["a", "b"]


# --- which files -----------------------------------------------------------------------------------------


def test_what_was_set_aside_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "t-0", (0, data(0, "a")))
    for name in ("t-1.abc-delete", "t-2.abc-stray", "t-3.abc-future"):
        write(tmp_path / name, (0, data(0, "no")))
    for suffix in ("deleted", "cleaned", "swap"):
        (tmp_path / "t-0" / f"{0:020d}.log.{suffix}").write_bytes(data(0, "no"))
    write(tmp_path / "__consumer_offsets-0", (0, data(0, "own")))
    assert values(tmp_path) == ["a"]
    assert sorted(values(tmp_path, topicsPattern=".*")) == ["a", "own"]
    assert values(tmp_path, topics="__consumer_offsets, x") == ["own"]
    assert values(tmp_path / "__consumer_offsets-0") == ["own"]
    with pytest.raises(OptionError, match="was set aside"):
        planned(tmp_path / "t-1.abc-delete")


def test_a_compaction_that_is_under_way_is_not_read_as_nothing(tmp_path: Path) -> None:
    write(tmp_path / "t-0", (5, data(5, "b")))
    (tmp_path / "t-0" / f"{0:020d}.log.swap").write_bytes(data(0, "a"))
    with pytest.raises(SegmentError, match=r"log\.swap: a compaction"):
        planned(tmp_path)


def test_deleted_records_are_not_shown(tmp_path: Path) -> None:
    write(tmp_path / "t-0", (0, data(0, "a")), (1, data(1, "b", "c", "d")), (4, data(4, "e")))
    (tmp_path / "log-start-offset-checkpoint").write_bytes(format_offsets({TopicPartition("t", 0): 2}))
    assert values(tmp_path) == values(tmp_path / "t-0") == ["c", "d", "e"]
    assert len(planned(tmp_path)) == 2
    (tmp_path / "log-start-offset-checkpoint").write_bytes(b"0\n7\n")
    with pytest.raises(SegmentError, match="log-start-offset-checkpoint"):
        planned(tmp_path)


def test_directories_that_cannot_be_meant(tmp_path: Path) -> None:
    write(tmp_path / "a" / "t-0", (0, data(0, "a")))
    write(tmp_path / "b" / "t-0", (0, data(0, "a")))
    (tmp_path / "empty").mkdir()
    with pytest.raises(OptionError, match="are these replicas"):
        planned(tmp_path / "a", paths=f'["{tmp_path}/b"]')
    with pytest.raises(OptionError, match="neither the directory of a partition"):
        planned(tmp_path / "empty")
    with pytest.raises(OptionError, match="No such file"):
        planned(tmp_path / "nowhere")


def test_small_files_share_a_task_and_large_ones_do_not(tmp_path: Path) -> None:
    sizes = [3, 4, 4, 20, 1, 9, 10, 11, 2]
    parts = [SegmentPart("", TopicPartition("t", 0), size, 0, 0, ()) for size in sizes]
    packed = [[part.end_position for part in task] for task in pack(parts, 10)]
    assert packed == [[3, 4], [4], [20], [1, 9], [10], [11], [2]]
    assert pack([]) == []


# --- damage ----------------------------------------------------------------------------------------------

FIRST, SECOND = data(0, "a", "b"), data(2, "c")


@pytest.mark.parametrize(
    "tail",
    [
        SECOND[:-1],
        SECOND[:65],
        SECOND[:61],
        SECOND[:20],
        SECOND[:9],
        bytes(4096),
        bytes(200_000),
        SECOND[:-3] + b"xyz",
    ],
    ids=[
        "a byte less",
        "half a record",
        "a header",
        "half a header",
        "a length",
        "zeros",
        "many zeros",
        "bad CRC",
    ],
)
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_torn_tail_is_left_out(tmp_path: Path, tail: bytes, isolation: str) -> None:
    write(tmp_path / "t-0", (0, FIRST + tail))
    assert values(tmp_path, isolation=isolation) == ["a", "b"]


def test_a_torn_marker_ends_nothing(tmp_path: Path) -> None:
    torn = marker(1, 1, commit=True)[:-1] + b"x"
    write(tmp_path / "t-0", (0, data(0, "a", producer=1) + torn))
    assert values(tmp_path) == []
    assert values(tmp_path, isolation="read_uncommitted") == ["a"]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("at", [65, 8, 10, 16, 23])
def test_damage_anywhere_else_names_file_and_position(tmp_path: Path, at: int, isolation: str) -> None:
    """In its records, its length, its magic and its last offset, in the last segment and before it."""
    broken = bytearray(SECOND)
    broken[at] ^= 0x55
    for number, segments in enumerate(
        ([(0, FIRST + bytes(broken) + data(3, "d", "e"))], [(0, FIRST + bytes(broken)), (3, data(3, "d"))])
    ):
        folder = write(tmp_path / str(number) / "t-0", *segments)
        with pytest.raises(SegmentError, match=rf"{0:020d}\.log: position {len(FIRST)}: "):
            rows(folder, isolation=isolation)


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path / "t-0", (0, FIRST))
    (part,) = planned(folder)
    shutil.rmtree(folder)
    with pytest.raises(SegmentError, match="is gone"):
        list(read_part(RealDisk(), part, is_committed=True, with_headers=False))


def test_what_is_appended_after_the_plan_is_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "t-0", (0, FIRST))
    (part,) = planned(folder)
    with (folder / f"{0:020d}.log").open("ab") as file:
        file.write(SECOND)
    found = read_part(RealDisk(), part, is_committed=True, with_headers=False)
    assert pa.Table.from_batches(found).num_rows == 2


def test_batches_larger_than_what_is_read_at_a_time(tmp_path: Path) -> None:
    large = "x" * (9 << 20)
    write(tmp_path / "t-0", (0, FIRST + data(2, large) + data(3, "d")))
    assert values(tmp_path) == ["a", "b", large, "d"]


# --- what others wrote -----------------------------------------------------------------------------------


def test_segments_of_magic_0_and_1_are_read_as_kafka_clients_read_them(tmp_path: Path) -> None:
    path = loader.unpack("legacy", tmp_path)
    for name, expected in loader.legacy().items():
        found = [(row["offset"], _text(row["key"]), _text(row["value"])) for row in rows(path / name)]
        assert found == [(r["offset"], r["key"], r["value"]) for r in expected["records"]], name


def _text(value: bytes | None) -> Any:
    """As legacy.json.gz shows it."""
    if value is None or len(value) < 100:
        return None if value is None else value.decode()
    return {"len": len(value), "crc32": zlib.crc32(value)}


# --- options ---------------------------------------------------------------------------------------------


def test_options_are_checked() -> None:
    options = segment_options({"path": "/a, file:///b,/a", "topics": "x, y", "includeheaders": "true"})
    assert (options.paths, options.topics) == (("/a", "/b"), ("x", "y"))
    assert (options.isolation, options.include_headers) == (READ_COMMITTED, True)
    assert segment_options({"path": "/a", "isolation": "read_uncommitted"}).isolation == READ_UNCOMMITTED


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "path is missing"),
        ({"path": "s3://bucket/a"}, "every worker has mounted"),
        ({"path": "/a", "topic": "x"}, "did you mean topics?"),
        ({"path": "/a", "topics": "x", "topicsPattern": "y"}, "not both"),
        ({"path": "/a", "topicsPattern": "("}, "topicsPattern=("),
        ({"path": "/a", "isolation": "dirty"}, "one of read_committed"),
    ],
)
def test_options_that_cannot_be_meant_are_told(given: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError) as refusal:
        segment_options(given)
    assert told in str(refusal.value)
