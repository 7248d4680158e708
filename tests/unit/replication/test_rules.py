"""A topic's configuration as rules for what is produced to it."""

import pytest

from odradek.records import compression
from odradek.records.header import CREATE_TIME, LOG_APPEND_TIME
from odradek.replication.rules import check_rules
from tests.unit.log.support import config


def test_rules_are_the_topics_settings() -> None:
    rules = check_rules(
        config(
            max_message_bytes=11,
            message_timestamp_before_max_ms=12,
            message_timestamp_after_max_ms=13,
            cleanup_policy=("compact",),
        )
    )
    assert rules.max_message_bytes == 11
    assert (rules.timestamp_before_max_ms, rules.timestamp_after_max_ms) == (12, 13)
    assert rules.compacted
    assert not check_rules(config()).compacted


@pytest.mark.parametrize(("name", "kind"), [("CreateTime", CREATE_TIME), ("LogAppendTime", LOG_APPEND_TIME)])
def test_the_timestamp_type(name: str, kind: int) -> None:
    assert check_rules(config(message_timestamp_type=name)).timestamp_type == kind


@pytest.mark.parametrize(
    ("name", "codec"), [("producer", None), ("uncompressed", compression.NONE), ("zstd", compression.ZSTD)]
)
def test_the_codec_that_records_are_kept_in(name: str, codec: int | None) -> None:
    assert check_rules(config(compression_type=name)).target_codec == codec
