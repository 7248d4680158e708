"""Bodies of the control records in the metadata log and its snapshots. Their keys belong to the batches
(records/control.py); what they mean to the quorum is raft's.
"""

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from odradek.core.errors import ProtocolError
from odradek.core.types import ZERO_UUID, Buffer
from odradek.wire.layout import Layout, of


class ControlRecord(Layout):
    """Base of all of them; `type` is the number in the record's key."""

    type: ClassVar[int]


class LeaderChangeVoter(Layout):
    voter_id: int = of("int32")
    voter_directory_id: UUID = of("uuid", since=1, default=ZERO_UUID)


class LeaderChangeMessage(ControlRecord, versions=(0, 1), flexible_from=0):
    """Always written as version 0: Apache's reader takes it for that whatever its version field says."""

    type = 2
    version: int = of("int16", default=0)
    leader_id: int = of("int32")
    voters: Sequence[LeaderChangeVoter] = of(LeaderChangeVoter, array=True)
    granting_voters: Sequence[LeaderChangeVoter] = of(LeaderChangeVoter, array=True)


class SnapshotHeaderRecord(ControlRecord, versions=(0, 0), flexible_from=0):
    type = 3
    version: int = of("int16", default=0)
    last_contained_log_timestamp: int = of("int64")


class SnapshotFooterRecord(ControlRecord, versions=(0, 0), flexible_from=0):
    type = 4
    version: int = of("int16", default=0)


class KRaftVersionRecord(ControlRecord, versions=(0, 0), flexible_from=0):
    type = 5
    version: int = of("int16", default=0)
    k_raft_version: int = of("int16")


class VoterEndpoint(Layout):
    name: str = of("string")
    host: str = of("string")
    port: int = of("uint16")


class KRaftVersionFeature(Layout):
    min_supported_version: int = of("int16")
    max_supported_version: int = of("int16")


class Voter(Layout):
    voter_id: int = of("int32")
    voter_directory_id: UUID = of("uuid")
    endpoints: Sequence[VoterEndpoint] = of(VoterEndpoint, array=True)
    k_raft_version_feature: KRaftVersionFeature = of(KRaftVersionFeature)


class VotersRecord(ControlRecord, versions=(0, 0), flexible_from=0):
    type = 6
    version: int = of("int16", default=0)
    voters: Sequence[Voter] = of(Voter, array=True)


_TYPES: dict[int, type[ControlRecord]] = {
    cls.type: cls
    for cls in (
        LeaderChangeMessage,
        SnapshotHeaderRecord,
        SnapshotFooterRecord,
        KRaftVersionRecord,
        VotersRecord,
    )
}


def encode_control_value(record: ControlRecord) -> bytes:
    """The value of the control record."""
    return record.codec.encoder(0)(record)


def decode_control_value(type_: int, value: Buffer) -> ControlRecord:
    cls = _TYPES.get(type_)
    if cls is None:
        raise ProtocolError(f"unknown control record type {type_}")
    record: ControlRecord
    record, _ = cls.codec.decoder(0)(value, 0)
    return record
