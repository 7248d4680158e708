"""What control records say of the quorum, as the machine sees it; and the way from and to their layouts.

`control.py` has the layouts. A snapshot's header and footer are none of the machine's business.
"""

from collections.abc import Iterable
from typing import NamedTuple

from odradek.raft.control import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
    leader_change,
    voters_of,
    voters_record,
)
from odradek.raft.voters import VoterSet


class LeaderChange(NamedTuple):
    """The first record of an epoch."""

    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


class KRaftVersion(NamedTuple):
    """From here on the quorum works by this kraft.version."""

    level: int


class Voters(NamedTuple):
    """From here on these are the voters."""

    voters: VoterSet


QuorumRecord = LeaderChange | KRaftVersion | Voters


def to_control(records: Iterable[QuorumRecord]) -> list[ControlRecord]:
    return [_to_control(record) for record in records]


def _to_control(record: QuorumRecord) -> ControlRecord:
    if isinstance(record, LeaderChange):
        return leader_change(record.leader_id, record.voters, record.granting_voters)
    if isinstance(record, KRaftVersion):
        return KRaftVersionRecord(k_raft_version=record.level)
    return voters_record(record.voters)


def from_control(records: Iterable[ControlRecord]) -> tuple[QuorumRecord, ...]:
    """Those that concern the quorum."""
    found: list[QuorumRecord] = []
    for record in records:
        if isinstance(record, LeaderChangeMessage):
            voters = tuple(voter.voter_id for voter in record.voters)
            granting = tuple(voter.voter_id for voter in record.granting_voters)
            found.append(LeaderChange(record.leader_id, voters, granting))
        elif isinstance(record, KRaftVersionRecord):
            found.append(KRaftVersion(record.k_raft_version))
        elif isinstance(record, VotersRecord):
            found.append(Voters(voters_of(record)))
    return tuple(found)
