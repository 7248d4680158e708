"""Made by tools/stubs from definitions/share_group_heartbeat.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ShareGroupHeartbeatRequest(Message):
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: Sequence[str] | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        rack_id: str | None = ...,
        subscribed_topic_names: Sequence[str] | None = ...,
    ) -> None: ...
