"""The settings of one group: its own, within the bounds of the broker, or the broker's defaults."""

from collections.abc import Callable

from odradek.coordinators.groups.config import GroupConfig
from odradek.metadata.image import RESOURCE_GROUP, MetadataImage


class GroupSettings:
    __slots__ = ("_config", "_image")

    def __init__(self, config: GroupConfig, image: Callable[[], MetadataImage]) -> None:
        self._config = config
        self._image = image

    def consumer_session_timeout_ms(self, group_id: str) -> int:
        config = self._config
        default, bounds = config.consumer_session_timeout_ms, config.consumer_session_timeout_range_ms
        return self._int(group_id, "consumer.session.timeout.ms", default, bounds)

    def consumer_heartbeat_interval_ms(self, group_id: str) -> int:
        config = self._config
        default, bounds = config.consumer_heartbeat_interval_ms, config.consumer_heartbeat_interval_range_ms
        return self._int(group_id, "consumer.heartbeat.interval.ms", default, bounds)

    def consumer_assignment_interval_ms(self, group_id: str) -> int:
        config = self._config
        default, bounds = config.consumer_assignment_interval_ms, config.consumer_assignment_interval_range_ms
        return self._int(group_id, "consumer.assignment.interval.ms", default, bounds)

    def _int(self, group_id: str, name: str, default: int, bounds: tuple[int, int]) -> int:
        own = self._image().config(RESOURCE_GROUP, group_id).get(name)
        return default if own is None else min(max(int(own), bounds[0]), bounds[1])
