"""Kafka's settings as Python values: `{"num.partitions": 3, "auto.create.topics.enable": False}`."""

from collections.abc import Mapping

from odradek.core.config.values import value_to_text


def as_texts(settings: Mapping[str, str | bool | int | float] | None) -> dict[str, str]:
    """Every value as Kafka spells it."""
    return {key: value_to_text(value) or "" for key, value in (settings or {}).items()}
