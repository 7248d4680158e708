"""A key that is said to act is read by the code; a seed's configuration reference is not forgotten."""

import re
from pathlib import Path

import odradek
from odradek.core.config_acting import ACTING_BROKER_KEYS, ACTING_TOPIC_KEYS
from odradek.core.configs import BROKER_KEYS, TOPIC_KEYS, TopicConfig

SOURCE = Path(odradek.__file__).parent
DEFINING = {"config_acting.py", "config_rules.py", "config_dynamic.py"}
TEXTS = {
    path.relative_to(SOURCE): path.read_text()
    for path in sorted(SOURCE.rglob("*.py"))
    if path.name not in DEFINING
}
# The level of a codec is read through TopicConfig.compression_level.
THROUGH = {f"compression.{codec}.level": "compression_level" for codec in ("gzip", "lz4", "zstd")}


def test_every_acting_key_exists() -> None:
    assert set(BROKER_KEYS) >= ACTING_BROKER_KEYS
    assert set(TOPIC_KEYS) >= ACTING_TOPIC_KEYS


def test_every_acting_broker_key_is_read() -> None:
    for key in sorted(ACTING_BROKER_KEYS):
        assert any(f'"{key}"' in text for path, text in TEXTS.items() if path.parts[0] != "cli"), key


def test_every_acting_topic_key_is_read_beyond_the_configuration_itself() -> None:
    for key in sorted(ACTING_TOPIC_KEYS):
        field = THROUGH.get(key, key.replace(".", "_"))
        assert hasattr(TopicConfig, field), key
        attribute = (
            re.compile(rf"\.(?:{field}|is_compacted|deletes_old_records)\b")
            if key == "cleanup.policy"
            else re.compile(rf"\.{field}\b")
        )
        assert any(attribute.search(text) for path, text in TEXTS.items() if path.parts[0] != "core"), key


def test_a_broker_default_acts_when_its_topic_key_does() -> None:
    assert BROKER_KEYS["log.retention.hours"].acts
    assert BROKER_KEYS["log.cleaner.min.cleanable.ratio"].acts
    assert not BROKER_KEYS["log.local.retention.ms"].acts
