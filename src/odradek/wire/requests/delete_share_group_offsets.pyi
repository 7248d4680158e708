"""Made by tools/stubs from definitions/delete_share_group_offsets.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DeleteShareGroupOffsetsRequest(Message):
    group_id: str
    topics: Sequence[DeleteShareGroupOffsetsRequestTopic]
    def __init__(
        self, *, group_id: str = ..., topics: Sequence[DeleteShareGroupOffsetsRequestTopic] = ...
    ) -> None: ...

class DeleteShareGroupOffsetsRequestTopic(Message):
    topic_name: str
    def __init__(self, *, topic_name: str = ...) -> None: ...
