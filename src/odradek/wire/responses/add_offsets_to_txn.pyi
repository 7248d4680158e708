"""Made by tools/stubs from definitions/add_offsets_to_txn.py."""

from odradek.wire.classes import Message

class AddOffsetsToTxnResponse(Message):
    throttle_time: int
    error_code: int
    def __init__(self, *, throttle_time: int = ..., error_code: int = ...) -> None: ...
