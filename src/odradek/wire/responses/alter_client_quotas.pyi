"""Made by tools/stubs from definitions/alter_client_quotas.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterClientQuotasResponse(Message):
    throttle_time: int
    entries: Sequence[EntryData]
    def __init__(self, *, throttle_time: int = ..., entries: Sequence[EntryData] = ...) -> None: ...

class EntryData(Message):
    error_code: int
    error_message: str | None
    entity: Sequence[EntityData]
    def __init__(
        self, *, error_code: int = ..., error_message: str | None = ..., entity: Sequence[EntityData] = ...
    ) -> None: ...

class EntityData(Message):
    entity_type: str
    entity_name: str | None
    def __init__(self, *, entity_type: str = ..., entity_name: str | None = ...) -> None: ...
