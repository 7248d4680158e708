"""The quorum's files are Apache's, byte for byte: control records, snapshots, quorum-state."""

from uuid import UUID

import pytest

from odradek.core.types import uuid_from_text
from odradek.raft.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    QuorumFacts,
    VotersRecord,
    control_batch,
    leader_change,
    read_control_batch,
    voters_of,
    voters_record,
)
from odradek.raft.quorum_state import (
    QuorumState,
    QuorumStateError,
    format_quorum_state,
    parse_quorum_state,
)
from odradek.raft.snapshots import (
    SnapshotBuilder,
    SnapshotError,
    SnapshotId,
    parse_file_name,
    read_snapshot,
)
from odradek.raft.voters import Voter, VoterEndpoint, VoterSet
from odradek.records.batch import iter_batches, iter_records
from tests.golden import loader

DIRECTORY = uuid_from_text("Y8njQQDhbgbbwlWDn5UKsw")
VOTERS = VoterSet([Voter(1, DIRECTORY, (VoterEndpoint("CONTROLLER", "127.0.0.1", 29192),))])
FACTS = QuorumFacts(1, VOTERS)


def golden(name: str) -> bytes:
    (data,) = loader.files("clean", name).values()
    return data


def test_the_first_control_batch_of_apaches_log_is_written_alike() -> None:
    data = golden("__cluster_metadata-0/00000000000000000000.log")
    first = next(iter_batches(data))
    records = read_control_batch(data, first)
    assert [type(r) for r in records] == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    ours = control_batch(
        [leader_change(1, [1], [1]), KRaftVersionRecord(k_raft_version=1), voters_record(VOTERS)],
        base_offset=0,
        epoch=1,
        timestamp_ms=first.base_timestamp,
    )
    assert bytes(ours) == data[: first.size]


def test_voters_survive_their_record() -> None:
    assert voters_of(voters_record(VOTERS)) == VOTERS


def test_the_snapshot_that_formatting_writes_is_apaches() -> None:
    data = golden("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
    header, footer = iter_batches(data)
    found = read_snapshot(data, lambda data, batch: pytest.fail("no data batch expected"))
    assert found.facts == FACTS
    builder = SnapshotBuilder(0, found.last_timestamp_ms, FACTS, header.base_timestamp)
    ours = bytearray(builder.finish())
    # Apache's two batches are a few milliseconds apart: only the header's time can be equal.
    assert bytes(ours[: header.size]) == data[: header.size]
    assert len(ours) == len(data)
    assert footer.base_offset == 3


def test_a_snapshot_of_apache_is_rebuilt_from_its_records() -> None:
    data = golden("__cluster_metadata-0/00000000000000000204-0000000001.checkpoint")
    values: list[bytes] = []
    times: list[int] = []

    def take(data: object, batch: object) -> None:
        assert isinstance(data, bytes)
        values.extend(r.value or b"" for r in iter_records(data, batch))  # type: ignore[arg-type]
        times.append(batch.base_timestamp)  # type: ignore[attr-defined]

    found = read_snapshot(data, take)
    assert (found.facts, found.last_timestamp_ms) == (FACTS, 1794775435058)
    builder = SnapshotBuilder(1, found.last_timestamp_ms, found.facts, times[0])
    builder.add(values)
    ours = builder.finish()
    theirs = list(iter_batches(data))
    assert [b.size for b in iter_batches(ours)] == [b.size for b in theirs]
    middle = theirs[1]
    assert (
        ours[middle.position : middle.position + middle.size]
        == (data[middle.position : middle.position + middle.size])
    )


def test_a_snapshot_without_its_footer_is_none() -> None:
    data = golden("__cluster_metadata-0/00000000000000000204-0000000001.checkpoint")
    with pytest.raises(SnapshotError):
        read_snapshot(data[:-10], lambda data, batch: None)


def test_snapshot_names_order_by_offset() -> None:
    assert SnapshotId(204, 1).file_name == "00000000000000000204-0000000001.checkpoint"
    assert parse_file_name("00000000000000000204-0000000001.checkpoint") == SnapshotId(204, 1)
    for other in ("bootstrap.checkpoint", "00000000000000000000.log", "x-1.checkpoint", "1-2.checkpoint"):
        assert parse_file_name(other) is None
    assert SnapshotId(9, 7) < SnapshotId(10, 1)


def test_quorum_state_is_apaches() -> None:
    data = golden("__cluster_metadata-0/quorum-state")
    state = parse_quorum_state(data)
    assert state == QuorumState(leader_id=1, leader_epoch=2)
    assert format_quorum_state(state, kraft_version=1) == data


def test_quorum_state_of_static_voters_is_version_0() -> None:
    state = QuorumState(1, 3)
    data = format_quorum_state(state, 0, [1])
    assert data == (
        b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
        b'"data_version":0}'
    )
    assert parse_quorum_state(data) == state


@pytest.mark.parametrize("data", [b"", b"{}", b'{"leaderId":1}', b"\x00"])
def test_a_quorum_state_that_cannot_be_read_is_an_error(data: bytes) -> None:
    with pytest.raises(QuorumStateError):
        parse_quorum_state(data)


def test_a_voter_without_a_directory_is_its_node_alone() -> None:
    voters = VoterSet([Voter(1, UUID(int=0), ())])
    assert voters.has(1, DIRECTORY)
    assert not VOTERS.has(1, UUID(int=5))
    assert VOTERS.has(1, DIRECTORY)
    assert not VOTERS.has(2, DIRECTORY)
