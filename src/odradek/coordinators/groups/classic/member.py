"""A member of a classic group: its fields in the log, and its waiting requests."""

from odradek.coordinators.groups.classic.subscription import metadata_of
from odradek.coordinators.groups.commands import JoinGroup, MemberProtocol
from odradek.coordinators.records import MemberMetadata
from odradek.coordinators.shard import Ticket


class ClassicGroupMember:
    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: tuple[MemberProtocol, ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Ticket | None = None
        self.awaiting_sync: Ticket | None = None
        self.is_new = False

    @classmethod
    def joining(cls, command: JoinGroup, member_id: str) -> "ClassicGroupMember":
        return cls(
            member_id,
            command.group_instance_id,
            command.client_id,
            command.client_host,
            command.rebalance_timeout_ms,
            command.session_timeout_ms,
            command.protocols,
        )

    @classmethod
    def from_record(cls, record: MemberMetadata, protocol_name: str | None) -> "ClassicGroupMember":
        """The member from a record, which has only the selected protocol."""
        rebalance_timeout_ms = record.rebalance_timeout
        return cls(
            record.member_id,
            record.group_instance_id,
            record.client_id,
            record.client_host,
            record.session_timeout if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
            record.session_timeout,
            (MemberProtocol(protocol_name or "", record.subscription),),
            record.assignment,
        )

    def to_record(self, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=metadata_of(self.protocols, protocol_name),
            assignment=assignment,
        )

    @property
    def keeps_alive(self) -> bool:
        """Whether a waiting request replaces heartbeats. A new member's first JoinGroup does not, because its
        client may be gone."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def vote(self, candidates: frozenset[str]) -> str:
        """The first of its protocols that all members support."""
        return next(p.name for p in self.protocols if p.name in candidates)

    def metadata(self, protocol_name: str | None) -> bytes:
        return metadata_of(self.protocols, protocol_name)
