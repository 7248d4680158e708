"""The quorum-state file: what a replica must not forget of the elections it saw. Text only, no I/O."""

import json
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from odradek.core.types import NO_LEADER, ZERO_UUID, uuid_from_text, uuid_to_text

NOT_VOTED = -1


class QuorumState(NamedTuple):
    """The newest epoch seen, who leads it, and whom this replica voted for in it."""

    leader_id: int = NO_LEADER
    leader_epoch: int = 0
    voted_id: int = NOT_VOTED
    voted_directory_id: UUID = ZERO_UUID


class QuorumStateError(ValueError):
    """A quorum-state file that cannot be read. Guessing would risk voting twice."""


def format_quorum_state(state: QuorumState, kraft_version: int, voter_ids: Sequence[int] = ()) -> bytes:
    """Data version 1 with kraft.version 1; before it version 0, with the voters and without directories."""
    fields: dict[str, object] = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
    }
    if kraft_version >= 1:
        fields["votedDirectoryId"] = uuid_to_text(state.voted_directory_id)
        fields["data_version"] = 1
    else:
        fields["appliedOffset"] = 0
        fields["currentVoters"] = [{"voterId": voter_id} for voter_id in voter_ids]
        fields["data_version"] = 0
    return json.dumps(fields, separators=(",", ":")).encode()


def parse_recorded_voters(data: bytes) -> tuple[int, ...]:
    """The voters that a file of version 0 names; none in version 1, where the log has them."""
    try:
        return tuple(int(voter["voterId"]) for voter in json.loads(data).get("currentVoters") or ())
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise QuorumStateError(f"quorum-state cannot be read: {e}") from e


def parse_quorum_state(data: bytes) -> QuorumState:
    try:
        fields = json.loads(data)
        return QuorumState(
            int(fields["leaderId"]),
            int(fields["leaderEpoch"]),
            int(fields["votedId"]),
            uuid_from_text(fields["votedDirectoryId"]) if "votedDirectoryId" in fields else ZERO_UUID,
        )
    except (ValueError, KeyError, TypeError) as e:
        raise QuorumStateError(f"quorum-state cannot be read: {e}") from e
