"""The settings that the parts of one log share, and what follows from them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig


class LogConfig:
    """All parts of a log hold the same one, so that new settings of the topic reach them together."""

    __slots__ = ("roll_after_ms", "topic")

    def __init__(self, topic: "TopicConfig") -> None:
        self.update(topic)

    def update(self, topic: "TopicConfig") -> None:
        self.topic = topic
        self.roll_after_ms = roll_after_ms(topic)


def roll_after_ms(config: "TopicConfig") -> int:
    """The age at which a segment ends; a compacted topic's maximum lag bounds it too."""
    if config.is_compacted and config.max_compaction_lag_ms > 0:
        return min(config.max_compaction_lag_ms, config.segment_ms)
    return config.segment_ms
