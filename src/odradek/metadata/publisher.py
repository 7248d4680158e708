"""The committed image, and whoever wants to hear of its changes.

The image changes at once, subscribers follow: a delta that gives them much to do is applied in slices, and
the next delta waits until they are done with it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from odradek.metadata.delta import MetadataDelta, full_delta
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.runtime.slices import STEP, Paced, Slices, at_once

_log = logging.getLogger(__name__)

Subscriber = Callable[[MetadataDelta], Paced[None]]


class MetadataPublisher:
    """`image` is what is committed now. Subscribers are called in the order they subscribed.

    `on_applied` is told the last offset of each delta that all of them are done with; `applied_offset` is the
    newest. `kraft_version` is a finalized feature too, but the quorum's own control records hold it, not the
    image.
    """

    __slots__ = (
        "_idle",
        "_is_applying",
        "_newest",
        "_slices",
        "_subscribers",
        "_waiting",
        "_watching",
        "applied_offset",
        "image",
        "kraft_version",
        "on_applied",
    )

    def __init__(self, slices: Slices | None = None) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.applied_offset = EMPTY_IMAGE.offset
        self.kraft_version = 0
        self.on_applied: Callable[[int], None] = lambda offset: None
        self._slices = slices or Slices()
        self._subscribers: list[Subscriber] = []
        self._waiting: deque[MetadataDelta] = deque()
        self._newest = EMPTY_IMAGE
        self._is_applying = False
        self._idle: asyncio.Future[None] | None = None
        self._watching: dict[asyncio.Future[None], Callable[[MetadataImage], bool]] = {}

    def subscribe(self, *subscribers: Subscriber) -> None:
        """From now on; what is there already comes first, as one delta, and at once."""
        if self.image is not EMPTY_IMAGE:
            everything = full_delta(self.image)
            for subscriber in subscribers:
                at_once(subscriber(everything))
        self._subscribers += subscribers

    def publish(self, delta: MetadataDelta) -> None:
        """A commit. A subscriber that fails is reported and does not keep the others from it."""
        assert delta.previous is self._newest, "deltas are published in order"
        self._newest = delta.image
        self._waiting.append(delta)
        if not self._is_applying:
            self._is_applying = True
            self._slices.run(self._apply_waiting(), own=True)

    async def drain(self) -> None:
        """Wait until everything that was published is applied."""
        if self._is_applying:
            self._idle = self._idle or asyncio.get_running_loop().create_future()
            await self._idle

    async def until(self, condition: Callable[[MetadataImage], bool]) -> None:
        """Wait until subscribers have applied an image that fulfils a condition."""
        if not self._is_applying and condition(self.image):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watching[waiter] = condition
        try:
            await waiter
        finally:
            self._watching.pop(waiter, None)

    def _show(self, image: MetadataImage) -> None:
        for waiter, condition in list(self._watching.items()):
            if not waiter.done() and condition(image):
                waiter.set_result(None)

    def _apply_waiting(self) -> Paced[None]:
        while self._waiting:
            delta = self._waiting.popleft()
            self.image = delta.image
            for subscriber in tuple(self._subscribers):
                try:
                    yield from subscriber(delta)
                except Exception:
                    _log.exception("Error applying the metadata up to offset %d", delta.image.offset)
            self.applied_offset = delta.image.offset
            self.on_applied(self.applied_offset)
            self._show(delta.image)
            yield STEP
        self._is_applying = False
        if self._idle is not None:
            self._idle.set_result(None)
            self._idle = None
