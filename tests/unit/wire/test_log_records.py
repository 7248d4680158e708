"""Metadata, control and coordinator records, against the logs that Apache Kafka 4.3.1 wrote."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from odradek.coordinators import records as coordinator
from odradek.core.errors import ProtocolError
from odradek.metadata.records import (
    RECORD_TYPES,
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    PartitionChangeRecord,
    TopicRecord,
    decode_record,
    encode_record,
    record_frame,
)
from odradek.raft.control import LeaderChangeMessage, LeaderVoter, control_batch, read_control_batch
from odradek.records.batch import Record, iter_batches, iter_records
from tests.golden import loader


def records_in(data: bytes, control: bool) -> Iterator[Record]:
    for batch in iter_batches(data):
        if batch.is_control == control:
            yield from iter_records(data, batch)


def metadata_files() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for archive in ("clean", "crashed"):
        for suffix in (".log", ".checkpoint"):
            files = loader.files(archive, "__cluster_metadata-0/", suffix)  # type: ignore[arg-type]
            found.update({f"{archive}/{name}": data for name, data in files.items()})
    return found


def test_every_record_of_the_golden_metadata_log_and_its_snapshots_is_written_back_identically() -> None:
    seen = set()
    for name, data in metadata_files().items():
        for record in records_in(data, control=False):
            assert record.value is not None
            api_key, version, _ = record_frame(record.value)
            decoded = decode_record(record.value)
            assert encode_record(decoded, version) == record.value, name
            assert encode_record(decoded) == record.value, f"{name}: written by default as Apache writes it"
            seen.add(type(decoded).__name__)
            assert RECORD_TYPES[api_key] is type(decoded)
    assert {"RegisterBrokerRecord", "TopicRecord", "PartitionRecord", "ConfigRecord"} < seen
    assert {"BrokerRegistrationChangeRecord", "ProducerIdsRecord", "FeatureLevelRecord", "NoOpRecord"} < seen
    assert {"PartitionChangeRecord", "BeginTransactionRecord", "EndTransactionRecord"} < seen


def test_every_control_batch_of_the_golden_metadata_log_is_written_back_identically() -> None:
    types = set()
    for name, data in metadata_files().items():
        for batch in iter_batches(data):
            if batch.is_control:
                records = read_control_batch(data, batch)
                types.update(type(record).__name__ for record in records)
                written = control_batch(
                    records,
                    base_offset=batch.base_offset,
                    epoch=batch.partition_leader_epoch,
                    timestamp_ms=batch.base_timestamp,
                )
                assert written == data[batch.position : batch.position + batch.size], name
    assert types == {
        "LeaderChangeMessage",
        "SnapshotHeaderRecord",
        "SnapshotFooterRecord",
        "KRaftVersionRecord",
        "VotersRecord",
    }


def test_a_leader_change_is_written_as_version_0() -> None:
    voter = LeaderVoter(voter_id=1, voter_directory_id=UUID(int=5))
    message = LeaderChangeMessage(leader_id=1, voters=[voter], granting_voters=[voter])
    data = control_batch([message], base_offset=0, epoch=1, timestamp_ms=0)
    (record,) = records_in(bytes(data), control=True)
    assert record.value == bytes.fromhex("0000 00000001 02 00000001 00 02 00000001 00 00")


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_every_record_of_the_golden_coordinator_logs_is_written_back_identically(topic: str) -> None:
    decode = (
        coordinator.decode_group_record
        if topic == "__consumer_offsets"
        else coordinator.decode_transaction_record
    )
    seen = set()
    for archive in ("clean", "crashed"):
        for data in loader.files(archive, topic, ".log").values():  # type: ignore[arg-type]
            for record in records_in(data, control=False):
                assert record.key is not None
                decoded = decode(record.key, record.value)
                assert decoded is not None
                key, value = decoded
                seen.add(key.type)
                assert coordinator.encode_key(key) == record.key
                if value is None:
                    assert record.value is None
                else:
                    assert coordinator.encode_value(value) == record.value, value
    assert seen == ({0} if topic == "__transaction_state" else {1, 2, 3, 5, 6, 7, 8})


def test_a_registration_change_takes_the_lowest_version_that_holds_it() -> None:
    def version(**fields: object) -> int:
        record = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, **fields)  # type: ignore[arg-type]
        assert decode_record(encode_record(record)) == record
        return record_frame(encode_record(record))[1]

    assert version(fenced=-1) == 0
    assert version(fenced=1, in_controlled_shutdown=1) == 1
    assert version(log_dirs=[UUID(int=7)]) == 2
    assert version(cordoned_log_dirs=[]) == 3


def test_an_older_version_leaves_out_what_it_does_not_know() -> None:
    change = PartitionChangeRecord(partition_id=1, topic_id=UUID(int=3), isr=[1], directories=[UUID(int=9)])
    decoded = decode_record(encode_record(change, 0))
    assert isinstance(decoded, PartitionChangeRecord)
    assert decoded.isr == [1]
    assert decoded.directories is None
    assert decode_record(encode_record(change, 2)) == change


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x01",
        b"\x01\x02",
        b"\x02\x02\x00\x00",
        b"\x01\x02\x01\x00",
        b"\x01\x02\x00\x05a",
    ],
)
def test_what_is_no_metadata_record_is_a_protocol_error(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_record(value)


def test_a_record_demands_the_fields_without_default() -> None:
    with pytest.raises(TypeError):
        TopicRecord(name="t")  # type: ignore[call-arg]
    assert encode_record(NoOpRecord()) == b"\x01\x14\x00\x00"


def test_unknown_types_of_coordinator_records_are_passed_over() -> None:
    assert coordinator.decode_group_record(b"\x00\x11\x00\x01g", b"\x00\x00") is None
    with pytest.raises(ProtocolError):
        coordinator.decode_group_record(b"\x00", None)
    with pytest.raises(ProtocolError):
        coordinator.decode_group_record(b"\x00\x02\x00\x05g", None)
    with pytest.raises(ProtocolError):
        coordinator.decode_group_record(b"\x00\x02\x00\x01g", b"\x00\x09")


def test_every_version_of_every_coordinator_value_goes_through() -> None:
    offset = coordinator.OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    group = coordinator.GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol=None,
        leader=None,
        members=[
            coordinator.MemberMetadata(
                member_id="m",
                client_id="c",
                client_host="/h",
                rebalance_timeout=0,
                session_timeout=2,
                subscription=b"s",
                assignment=b"",
            )
        ],
    )
    for version in range(5):
        for key, value in (
            (coordinator.OffsetCommitKey(group="g", topic="t", partition=0), offset),
            (coordinator.GroupMetadataKey(group="g"), group),
        ):
            encoded = coordinator.encode_value(value, version)
            assert coordinator.decode_group_record(coordinator.encode_key(key), encoded) == (key, value)


def test_a_member_converted_from_the_classic_protocol_keeps_its_metadata() -> None:
    classic = coordinator.ClassicMemberMetadata(
        session_timeout=45_000,
        supported_protocols=[coordinator.ClassicProtocol(name="range", metadata=b"abc")],
    )
    value = coordinator.ConsumerGroupMemberMetadataValue(
        client_id="c", client_host="/h", subscribed_topic_names=["t"], classic_member_metadata=classic
    )
    key = coordinator.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m")
    found = coordinator.decode_group_record(coordinator.encode_key(key), coordinator.encode_value(value))
    assert found == (key, value)
