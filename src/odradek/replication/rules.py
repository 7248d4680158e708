"""Converts a topic's configuration to the rules for its producers' records. Pure."""

from typing import TYPE_CHECKING

from odradek.records import compression
from odradek.records.check import CheckRules
from odradek.records.header import CREATE_TIME, LOG_APPEND_TIME

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

_CODECS = {
    "producer": None,
    "uncompressed": compression.NONE,
    "gzip": compression.GZIP,
    "snappy": compression.SNAPPY,
    "lz4": compression.LZ4,
    "zstd": compression.ZSTD,
}


def check_rules(config: "TopicConfig") -> CheckRules:
    return CheckRules(
        max_message_bytes=config.max_message_bytes,
        timestamp_type=LOG_APPEND_TIME if config.message_timestamp_type == "LogAppendTime" else CREATE_TIME,
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        compacted=config.is_compacted,
        target_codec=_CODECS[config.compression_type],
        compression_level=config.compression_level,
    )
