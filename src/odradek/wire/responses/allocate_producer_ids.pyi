"""Made by tools/stubs from definitions/allocate_producer_ids.py."""

from odradek.wire.classes import Message

class AllocateProducerIdsResponse(Message):
    throttle_time: int
    error_code: int
    producer_id_start: int
    producer_id_len: int
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        producer_id_start: int = ...,
        producer_id_len: int = ...,
    ) -> None: ...
