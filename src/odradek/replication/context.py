"""LeaderContext: what all leaders of a node share: the time, the other brokers, and where they propose."""

from collections.abc import Callable

from odradek.core.metrics import IsrMetrics
from odradek.metadata.image import MetadataImage
from odradek.replication.progress import NO_BROKER_EPOCH, FollowerProgress
from odradek.replication.proposals import IsrProposals
from odradek.runtime.api import Clock


class LeaderContext:
    """`image` gives the current metadata."""

    __slots__ = ("_image", "max_lag_ms", "metrics", "now_ms", "proposals")

    def __init__(
        self, clock: Clock, image: Callable[[], MetadataImage], max_lag_ms: int, metrics: IsrMetrics
    ) -> None:
        self.now_ms = clock.steady_ms
        self._image = image
        self.max_lag_ms = max_lag_ms  # replica.lag.time.max.ms
        self.metrics = metrics
        self.proposals = IsrProposals()

    def is_alive(self, broker_id: int) -> bool:
        return self._image().alive_broker_epoch(broker_id) is not None

    def is_outdated(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a fetch was sent before the restart of a broker that is alive now."""
        alive = self._image().alive_broker_epoch(broker_id)
        return alive is not None and NO_BROKER_EPOCH != broker_epoch < alive

    def is_eligible(self, follower: FollowerProgress) -> bool:
        """Whether a follower that has fetched may be in an ISR: its broker is unfenced, does not shut down,
        and has not been restarted since the fetch."""
        broker = self._image().brokers.get(follower.broker_id)
        return (
            broker is not None
            and broker.is_active
            and follower.is_heard
            and follower.broker_epoch in (NO_BROKER_EPOCH, broker.epoch)
        )
