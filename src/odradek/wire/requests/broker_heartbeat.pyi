"""Made by tools/stubs from definitions/broker_heartbeat.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class BrokerHeartbeatRequest(Message):
    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: Sequence[UUID]
    cordoned_log_dirs: Sequence[UUID] | None
    def __init__(
        self,
        *,
        broker_id: int = ...,
        broker_epoch: int = ...,
        current_metadata_offset: int = ...,
        want_fence: bool = ...,
        want_shut_down: bool = ...,
        offline_log_dirs: Sequence[UUID] = ...,
        cordoned_log_dirs: Sequence[UUID] | None = ...,
    ) -> None: ...
