"""Made by tools/stubs from definitions/push_telemetry.py."""

from uuid import UUID

from odradek.wire.classes import Message

class PushTelemetryRequest(Message):
    client_instance_id: UUID
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes
    def __init__(
        self,
        *,
        client_instance_id: UUID = ...,
        subscription_id: int = ...,
        terminating: bool = ...,
        compression_type: int = ...,
        metrics: bytes = ...,
    ) -> None: ...
