"""Who votes in the quorum. Its size is data: one voter on a laptop, five in a data centre. Pure."""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from odradek.core.types import ZERO_UUID


class ReplicaKey(NamedTuple):
    """A replica: a node, and the directory its log lies in. ZERO_UUID: the directory is not known."""

    id: int
    directory_id: UUID = ZERO_UUID


class VoterEndpoint(NamedTuple):
    name: str
    host: str
    port: int


Endpoints = tuple[VoterEndpoint, ...]


class Voter(NamedTuple):
    """A replica of the metadata log that votes: a node and the directory its log lies in.

    Without a directory (kraft.version 0, voters from the configuration) the node alone counts.
    """

    id: int
    directory_id: UUID
    endpoints: Endpoints
    min_kraft_version: int = 0
    max_kraft_version: int = 1

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory_id)


class VoterSet:
    """The voters by id, in the order they were listed."""

    __slots__ = ("_voters", "ids")

    def __init__(self, voters: Iterable[Voter]) -> None:
        self._voters = {voter.id: voter for voter in voters}
        self.ids = tuple(self._voters)
        assert self._voters, "a quorum has at least one voter"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"VoterSet({list(self._voters.values())!r})"

    @property
    def voters(self) -> tuple[Voter, ...]:
        return tuple(self._voters.values())

    def get(self, node_id: int) -> Voter | None:
        return self._voters.get(node_id)

    def has(self, node_id: int, directory_id: UUID) -> bool:
        """Whether this very replica votes, not just its node under another directory."""
        voter = self._voters.get(node_id)
        return voter is not None and voter.directory_id in (ZERO_UUID, directory_id)

    def matches(self, key: ReplicaKey) -> bool:
        """As `has`, for a peer that may not have named its directory."""
        voter = self._voters.get(key.id)
        if voter is None:
            return False
        return ZERO_UUID in (voter.directory_id, key.directory_id) or voter.directory_id == key.directory_id

    def with_voter(self, voter: Voter) -> "VoterSet":
        """Added, or in the place of the one with its id."""
        return VoterSet({**self._voters, voter.id: voter}.values())

    def without(self, node_id: int) -> "VoterSet":
        return VoterSet(voter for voter in self.voters if voter.id != node_id)
