"""Made by tools/stubs from definitions/get_telemetry_subscriptions.py."""

from uuid import UUID

from odradek.wire.classes import Message

class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: UUID
    def __init__(self, *, client_instance_id: UUID = ...) -> None: ...
