"""The control records of the metadata log and its snapshots: who leads, who votes, where a snapshot ends.

Layouts and batches only; what they mean to the quorum is node.py's.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from odradek.core.types import ZERO_UUID, Buffer
from odradek.raft.voters import Voter, VoterEndpoint, VoterSet
from odradek.records.batch import BatchMeta, build_batch, iter_records
from odradek.records.control import ControlType, control_key, parse_control_key
from odradek.wire.layout import Layout, of

# Java reads these bodies at version 0 whatever they say.
_VERSION = 0


class LeaderVoter(Layout):
    voter_id: int = of("int32")
    voter_directory_id: UUID = of("uuid", since=1, default=ZERO_UUID)


class LeaderChangeMessage(Layout, versions=(0, 1), flexible_from=0):
    version: int = of("int16", default=_VERSION)
    leader_id: int = of("int32")
    voters: Sequence[LeaderVoter] = of(LeaderVoter, array=True)
    granting_voters: Sequence[LeaderVoter] = of(LeaderVoter, array=True)


class KRaftVersionRecord(Layout, versions=(0, 0), flexible_from=0):
    version: int = of("int16", default=_VERSION)
    k_raft_version: int = of("int16")


class RecordedEndpoint(Layout):
    name: str = of("string")
    host: str = of("string")
    port: int = of("uint16")


class KRaftVersionFeature(Layout):
    min_supported_version: int = of("int16")
    max_supported_version: int = of("int16")


class RecordedVoter(Layout):
    voter_id: int = of("int32")
    voter_directory_id: UUID = of("uuid")
    endpoints: Sequence[RecordedEndpoint] = of(RecordedEndpoint, array=True)
    k_raft_version_feature: KRaftVersionFeature = of(KRaftVersionFeature)


class VotersRecord(Layout, versions=(0, 0), flexible_from=0):
    version: int = of("int16", default=_VERSION)
    voters: Sequence[RecordedVoter] = of(RecordedVoter, array=True)


class SnapshotHeaderRecord(Layout, versions=(0, 0), flexible_from=0):
    version: int = of("int16", default=_VERSION)
    last_contained_log_timestamp: int = of("int64")


class SnapshotFooterRecord(Layout, versions=(0, 0), flexible_from=0):
    version: int = of("int16", default=_VERSION)


ControlRecord = (
    LeaderChangeMessage | KRaftVersionRecord | VotersRecord | SnapshotHeaderRecord | SnapshotFooterRecord
)

_TYPES: dict[type[Layout], ControlType] = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
}
_LAYOUTS = {control_type: layout for layout, control_type in _TYPES.items()}


def control_batch(
    records: Sequence[ControlRecord], *, base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    encoded = [
        (
            timestamp_ms,
            control_key(_TYPES[type(record)]),
            type(record).codec.encoder(_VERSION)(record),
            (),
        )
        for record in records
    ]
    return build_batch(encoded, base_offset=base_offset, leader_epoch=epoch, control=True)


def read_control_batch(data: Buffer, batch: BatchMeta) -> list[ControlRecord]:
    """The control records of a batch; those of types unknown here are passed over."""
    found = []
    for record in iter_records(data, batch):
        layout = _LAYOUTS.get(parse_control_key(record.key))
        if layout is not None:
            message, _ = layout.codec.decoder(_VERSION)(record.value or b"", 0)
            found.append(message)
    return found


def leader_change(leader_id: int, voters: Sequence[int], granting: Sequence[int]) -> LeaderChangeMessage:
    return LeaderChangeMessage(
        leader_id=leader_id,
        voters=[LeaderVoter(voter_id=n) for n in voters],
        granting_voters=[LeaderVoter(voter_id=n) for n in granting],
    )


def voters_record(voters: VoterSet) -> VotersRecord:
    return VotersRecord(
        voters=[
            RecordedVoter(
                voter_id=voter.id,
                voter_directory_id=voter.directory_id,
                endpoints=[RecordedEndpoint(name=e.name, host=e.host, port=e.port) for e in voter.endpoints],
                k_raft_version_feature=KRaftVersionFeature(
                    min_supported_version=voter.min_kraft_version,
                    max_supported_version=voter.max_kraft_version,
                ),
            )
            for voter in voters.voters
        ]
    )


def voters_of(record: VotersRecord) -> VoterSet:
    return VoterSet(
        Voter(
            voter.voter_id,
            voter.voter_directory_id,
            tuple(VoterEndpoint(e.name, e.host, e.port) for e in voter.endpoints),
            voter.k_raft_version_feature.min_supported_version,
            voter.k_raft_version_feature.max_supported_version,
        )
        for voter in record.voters
    )


class QuorumFacts(NamedTuple):
    """What control records have said of the quorum so far."""

    kraft_version: int = 0
    voters: VoterSet | None = None

    def after(self, records: Sequence[ControlRecord]) -> "QuorumFacts":
        facts = self
        for record in records:
            if isinstance(record, KRaftVersionRecord):
                facts = facts._replace(kraft_version=record.k_raft_version)
            elif isinstance(record, VotersRecord):
                facts = facts._replace(voters=voters_of(record))
        return facts
