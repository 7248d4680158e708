"""The settings that the parts of one log share."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig


class LogConfig:
    """All parts of a log have the same object, so that new settings of the topic reach all of them."""

    __slots__ = ("roll_after_ms", "topic")

    def __init__(self, topic: "TopicConfig") -> None:
        self.update(topic)

    def update(self, topic: "TopicConfig") -> None:
        self.topic = topic
        self.roll_after_ms = roll_after_ms(topic)


def roll_after_ms(config: "TopicConfig") -> int:
    """The age at which a segment is rolled: segment.ms, or max.compaction.lag.ms of a compacted topic if that
    is shorter."""
    if config.is_compacted and config.max_compaction_lag_ms > 0:
        return min(config.max_compaction_lag_ms, config.segment_ms)
    return config.segment_ms
