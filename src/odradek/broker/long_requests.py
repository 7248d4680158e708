"""Decodes, handles and encodes long requests in slices, over several turns of the loop.

A decoded request takes many times its bytes in memory, so the bytes of all long requests together are
limited. The shortest one goes first: large requests delay only each other. A connection is not read from
until its long request is answered, as in Apache Kafka. The frame belongs to the request, not to the
connection. If the connection is closed during the decoding, the request is dropped.
"""

import asyncio
import heapq
import logging
from typing import TYPE_CHECKING, Final

from odradek.broker.dispatch import decode_in_slices, encode_in_slices, handle, refusal_to, waits_for_others
from odradek.core.errors import ProtocolError
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection, Place
    from odradek.broker.services import Services

_log = logging.getLogger(__name__)

MAX_BYTES_IN_HAND: Final = 8 << 20
"""The limit of all long requests together. A larger request is admitted alone."""


class Room:
    """The bytes that a request takes of the limit."""

    __slots__ = ("_of", "_size")

    def __init__(self, of: "LongRequests", size: int) -> None:
        self._of = of
        self._size = size

    def leave(self) -> None:
        size, self._size = self._size, 0
        self._of.give_back(size)


class LongRequests:
    """Admits long requests."""

    __slots__ = ("_arrivals", "_bytes_in_hand", "_waiting")

    def __init__(self) -> None:
        self._bytes_in_hand = 0
        self._waiting: list[tuple[int, int, asyncio.Future[Room]]] = []
        self._arrivals = 0

    async def enter(self, size: int) -> Room:
        """Wait until a request of `size` bytes may be decoded."""
        if self._has_room_for(size):
            self._bytes_in_hand += size
            return Room(self, size)
        self._arrivals += 1
        admitted: asyncio.Future[Room] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (size, self._arrivals, admitted))
        try:
            return await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                admitted.result().leave()
            raise

    def _has_room_for(self, size: int) -> bool:
        return self._bytes_in_hand == 0 or self._bytes_in_hand + size <= MAX_BYTES_IN_HAND

    def give_back(self, size: int) -> None:
        self._bytes_in_hand -= size
        assert self._bytes_in_hand >= 0
        while self._waiting:
            size, _, admitted = self._waiting[0]
            if not admitted.cancelled():
                if not self._has_room_for(size):
                    return
                self._bytes_in_hand += size
                admitted.set_result(Room(self, size))
            heapq.heappop(self._waiting)


async def answer_long(
    services: "Services", connection: "Connection", place: "Place", frame: memoryview, position: int
) -> None:
    """Handle a frame and reply. The connection is suspended until then."""
    header = place.header
    room: Room | None = None
    try:
        room = await services.long_requests.enter(len(frame))
        request = await services.slices.run(decode_in_slices(header, frame, position))
        del frame
        connection.on_close.pop(place, None)
        reply = handle(services, connection, header, request, place)
        if waits_for_others(services, header.api_key):
            room.leave()
        try:
            response = await reply
        except Exception as e:
            response = await services.slices.run(refusal_to(header, request, e))
        if response is not None:
            pieces = await services.slices.run(encode_in_slices(header, response))
            connection.fulfil(place, *pieces)
    except ProtocolError as e:
        connection.refuse(e)
    except Exception:
        _log.exception("Error while answering %s v%d", ApiKey(header.api_key).name, header.api_version)
        connection.close("internal error")
    finally:
        if room is not None:
            room.leave()
        connection.resume()
