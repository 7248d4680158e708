"""Changes of the voters of the metadata log: `add ID@HOST:PORT` and `remove ID`, and what refuses them."""

from typing import Any, Final, NamedTuple

from odradek.cli.errors import Failure, Usage, kafka_failure
from odradek.cli.node.voter_list import parse_new_voter
from odradek.cli.requests.cluster_access import ClusterAccess
from odradek.cli.requests.quorum import Quorum
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID, uuid_from_text
from odradek.raft.voters import Voter
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_SHOWN: Final = "odradek cluster quorum"
# What the cluster refuses, for {} as the node's id: the cause, and what to do next.
_REFUSALS: Final = {
    ErrorCode.DUPLICATE_VOTER: ("node {} votes already", _SHOWN),
    ErrorCode.VOTER_NOT_FOUND: ("node {} does not vote, or not with this directory", _SHOWN),
    ErrorCode.UNSUPPORTED_VERSION: (
        "kraft.version is 0: the voters are those of controller.quorum.voters on every node",
        "odradek cluster features upgrade kraft.version 1",
    ),
}


class VoterChange(NamedTuple):
    """What `add ID@HOST:PORT[:DIRECTORY-ID]` and `remove ID` ask for. ZERO_UUID: no directory was named."""

    voter: Voter
    is_removal: bool

    @classmethod
    def parse(cls, words: list[str]) -> "VoterChange":
        """ValueError says what is wrong with the words."""
        if len(words) != 2 or words[0] not in ("add", "remove"):
            raise ValueError("give add ID@HOST:PORT[:DIRECTORY-ID] or remove ID")
        verb, text = words
        if verb == "add":
            return cls(parse_new_voter(text, ""), is_removal=False)
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"{text} is no node id: give a number")
        return cls(Voter(int(text), ZERO_UUID, ()), is_removal=True)


def role_of(node_id: int, quorum: Quorum) -> str | None:
    return next((replica.role for replica in quorum.replicas if replica.node_id == node_id), None)


def directory_of(change: VoterChange, quorum: Quorum) -> Voter:
    """The voter with its directory, as the quorum knows it where the command line does not say."""
    voter = change.voter
    if voter.directory_id != ZERO_UUID:
        return voter
    known = [replica for replica in quorum.replicas if replica.node_id == voter.id]
    found = [replica for replica in known if replica.votes] or known
    if len(found) > 1:
        shown = ", ".join(str(replica.directory_id) for replica in found)
        raise Usage(f"node {voter.id} follows with several directories: name one of {shown}")
    if not found and not change.is_removal:
        raise Failure(
            f"node {voter.id} does not follow the quorum, so it cannot become a voter",
            "start it first; format it with: odradek cluster format --no-initial-controllers",
        )
    directory_id = found[0].directory_id if found else None
    return voter if directory_id is None else voter._replace(directory_id=uuid_from_text(directory_id))


def change_voters(cluster: ClusterAccess, change: VoterChange, listener_name: str) -> None:
    """Answered when the change is committed."""
    voter = change.voter
    request: Any
    if change.is_removal:
        api_key, types = ApiKey.REMOVE_RAFT_VOTER, request_types(ApiKey.REMOVE_RAFT_VOTER)
        request = types.RemoveRaftVoterRequest(
            cluster_id=None, voter_id=voter.id, voter_directory_id=voter.directory_id
        )
    else:
        api_key, types = ApiKey.ADD_RAFT_VOTER, request_types(ApiKey.ADD_RAFT_VOTER)
        request = types.AddRaftVoterRequest(
            cluster_id=None,
            timeout=cluster.timeout_ms,
            voter_id=voter.id,
            voter_directory_id=voter.directory_id,
            listeners=[
                types.Listener(name=listener_name, host=endpoint.host, port=endpoint.port)
                for endpoint in voter.endpoints
            ],
        )
    response = cluster.send(api_key, request)
    if response.error_code:
        raise _refused(voter.id, KafkaError(ErrorCode(response.error_code), response.error_message))


def _refused(node_id: int, error: KafkaError) -> Failure:
    cause, command = _REFUSALS.get(error.code, ("", None))
    if command is None:
        failure = kafka_failure(f"voter {node_id}", str(node_id), error)
        hint = "next: try again" if error.code is ErrorCode.REQUEST_TIMED_OUT else failure.hint
        return Failure(failure.lines, hint)
    return Failure(f"voter {node_id}: {error.code.name}: {cause.format(node_id)}", f"next: {command}")
