"""Records that nothing here acts on survive in image and snapshot, byte for byte, until they are removed."""

from pathlib import Path
from uuid import UUID

import pytest

from odradek.core.errors import ProtocolError
from odradek.metadata.image import MetadataImage
from odradek.metadata.records import OpaqueRecord, TopicRecord, decode_record, encode_record
from odradek.metadata.replay import Replayer
from odradek.metadata.snapshot import image_records
from odradek.metadata.versions import RecordVersions

GOLDEN = Path(__file__).parents[2] / "golden" / "kept_records.txt"


def golden() -> dict[str, bytes]:
    lines = [line.split() for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
    return {name: bytes.fromhex(value) for name, value in lines}


def replay(values: list[bytes]) -> MetadataImage:
    replayer = Replayer()
    for offset, value in enumerate(values):
        replayer.apply([decode_record(value)], last_offset=offset, epoch=1, timestamp_ms=0)
    return replayer.image


def snapshot(image: MetadataImage, level: int = 30) -> list[bytes]:
    versions = RecordVersions.at(level)
    return [encode_record(record, versions.of(record)) for record in image_records(image)]


SET = [
    "acl-alice",
    "acl-mallory",
    "quota-default",
    "quota-alice-in",
    "quota-alice-out",
    "scram-alice",
    "scram-bob",
    "token-alice",
    "token-bob",
]
REMOVED = {
    "no-acl-mallory": "acl-mallory",
    "no-quota-alice-in": "quota-alice-in",
    "no-scram-bob": "scram-bob",
    "no-token-bob": "token-bob",
}


@pytest.mark.parametrize("name", golden())
def test_what_apache_wrote_is_written_again_byte_for_byte(name: str) -> None:
    value = golden()[name]
    assert encode_record(decode_record(value)) == value


def test_all_of_them_are_in_the_snapshot_and_in_the_snapshot_of_its_replay() -> None:
    values = [golden()[name] for name in SET]
    once = snapshot(replay(values))
    assert once == values
    assert snapshot(replay(once)) == values


@pytest.mark.parametrize(("removal", "removed"), REMOVED.items())
def test_what_was_removed_is_not_in_the_snapshot(removal: str, removed: str) -> None:
    values = golden()
    image = replay([values[name] for name in SET] + [values[removal]])
    assert snapshot(image) == [values[name] for name in SET if name != removed]


def test_a_removal_of_what_is_not_there_changes_nothing() -> None:
    values = golden()
    assert snapshot(replay([values[removal] for removal in REMOVED])) == []


def test_the_newest_of_several_values_counts() -> None:
    first = golden()["quota-default"]
    second = first.replace(bytes.fromhex("4049"), bytes.fromhex("4050"))
    assert snapshot(replay([first, second])) == [second]


UNKNOWN_TYPE = bytes.fromhex("01c80100cafe00")  # type 200
NEWER_ACL = golden()["acl-alice"].replace(b"\x01\x12\x00", b"\x01\x12\x01", 1) + b"more"


@pytest.mark.parametrize("value", [UNKNOWN_TYPE, NEWER_ACL, b"\x01\x06\x00\x00"])
def test_an_unknown_type_and_a_newer_version_are_kept_as_they_are(value: bytes) -> None:
    record = decode_record(value)
    assert isinstance(record, OpaqueRecord)
    known = golden()["quota-default"]
    once = snapshot(replay([value, known]))
    assert sorted(once) == sorted([value, known])
    assert snapshot(replay(once)) == once


def test_unknown_records_stay_in_their_order_and_the_same_one_is_kept_once() -> None:
    other = UNKNOWN_TYPE + b"\x01"
    assert snapshot(replay([UNKNOWN_TYPE, other, UNKNOWN_TYPE])) == [other, UNKNOWN_TYPE]


def test_a_newer_version_of_a_record_that_is_acted_on_is_refused() -> None:
    """To skip it would be to serve another cluster than the one that the log describes."""
    newer = bytearray(encode_record(TopicRecord(name="t", topic_id=UUID(int=5000))))
    newer[2] = 1
    with pytest.raises(ProtocolError, match="TopicRecord has no version 1"):
        decode_record(bytes(newer))
