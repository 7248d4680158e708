"""The committed image, and whoever wants to hear of its changes."""

import logging
from collections.abc import Callable

from odradek.metadata.delta import MetadataDelta, full_delta
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage

_log = logging.getLogger(__name__)

Subscriber = Callable[[MetadataDelta], None]


class MetadataPublisher:
    """`image` is what is committed now. Subscribers are called at once, in the order they subscribed.

    `kraft_version` is a finalized feature too, but the quorum's own control records hold it, not the image.
    """

    __slots__ = ("_subscribers", "image", "kraft_version")

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.kraft_version = 0
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """From now on; what is there already comes first, as one delta."""
        if self.image is not EMPTY_IMAGE:
            subscriber(full_delta(self.image))
        self._subscribers.append(subscriber)

    def publish(self, delta: MetadataDelta) -> None:
        """A commit. A subscriber that fails is reported and does not keep the others from it."""
        assert delta.previous is self.image, "deltas are published in order"
        self.image = delta.image
        for subscriber in self._subscribers:
            try:
                subscriber(delta)
            except Exception:
                _log.exception("Error applying the metadata up to offset %d", delta.image.offset)
