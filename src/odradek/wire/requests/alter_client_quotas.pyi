"""Made by tools/stubs from definitions/alter_client_quotas.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterClientQuotasRequest(Message):
    entries: Sequence[EntryData]
    validate_only: bool
    def __init__(self, *, entries: Sequence[EntryData] = ..., validate_only: bool = ...) -> None: ...

class EntryData(Message):
    entity: Sequence[EntityData]
    ops: Sequence[OpData]
    def __init__(self, *, entity: Sequence[EntityData] = ..., ops: Sequence[OpData] = ...) -> None: ...

class EntityData(Message):
    entity_type: str
    entity_name: str | None
    def __init__(self, *, entity_type: str = ..., entity_name: str | None = ...) -> None: ...

class OpData(Message):
    key: str
    value: float
    remove: bool
    def __init__(self, *, key: str = ..., value: float = ..., remove: bool = ...) -> None: ...
