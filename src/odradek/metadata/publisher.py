"""MetadataPublisher: the committed image, and the subscribers to its changes.

The image changes at once. The subscribers then apply the delta, in slices if it is large. The next delta
waits until they are done.
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
    """`image` is the committed image. Subscribers are called in the order of their subscription.

    `on_applied` gets the last offset of each delta that all subscribers have applied; `applied_offset` is the
    newest. `kraft_version` is a finalized feature too, but it is in the control records of the quorum, not in
    the image.
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
        """Subscribe. Subscribers first get the current image, as one delta, synchronously."""
        if self.image is not EMPTY_IMAGE:
            everything = full_delta(self.image)
            for subscriber in subscribers:
                at_once(subscriber(everything))
        self._subscribers += subscribers

    def publish(self, delta: MetadataDelta) -> None:
        """Publish a commit. An error of a subscriber is logged, and the others still get the delta."""
        assert delta.previous is self._newest, "deltas are published in order"
        self._newest = delta.image
        self._waiting.append(delta)
        if not self._is_applying:
            self._is_applying = True
            self._slices.run(self._apply_waiting(), own=True)

    async def drain(self) -> None:
        """Wait until all published deltas are applied."""
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
