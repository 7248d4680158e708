"""Made by tools/stubs from definitions/list_config_resources.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListConfigResourcesRequest(Message):
    resource_types: Sequence[int]
    def __init__(self, *, resource_types: Sequence[int] = ...) -> None: ...
