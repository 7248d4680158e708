"""Made by tools/stubs from definitions/join_group.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class JoinGroupRequest(Message):
    group_id: str
    session_timeout: int
    rebalance_timeout: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: Sequence[JoinGroupRequestProtocol]
    reason: str | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        session_timeout: int = ...,
        rebalance_timeout: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        protocol_type: str = ...,
        protocols: Sequence[JoinGroupRequestProtocol] = ...,
        reason: str | None = ...,
    ) -> None: ...

class JoinGroupRequestProtocol(Message):
    name: str
    metadata: bytes
    def __init__(self, *, name: str = ..., metadata: bytes = ...) -> None: ...
