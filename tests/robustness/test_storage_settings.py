"""Every setting of the storage engine acts: as a topic setting, as the broker's default, and when it changes.

Each test checks what the log does, and fails if the setting is ignored: with the defaults the same steps have
another result.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import pytest

from odradek.broker.node import Node
from odradek.core.types import TopicPartition
from odradek.log.log import Log
from odradek.testing.broker import Broker
from tests.support.command import odradek
from tests.support.topics import create_topic
from tests.unit.log.support import append, batch

MEGABYTE = 1 << 20


def now_ms(log: Log) -> int:
    return log.local_log._clock.now_ms()


def rolls_by_size(log: Log) -> int:
    """How many segments three batches of 600 KB take."""
    before = len(log.segments)
    for _ in range(3):
        append(log, batch(value=b"x" * 600_000, timestamp=now_ms(log)))
    return len(log.segments) - before


def rolls_by_time(log: Log) -> int:
    """How many segments records begin that are 2 s apart."""
    before = len(log.segments)
    for i in range(3):
        append(log, batch(timestamp=now_ms(log) + 2000 * i))
    return len(log.segments) - before


def rolls_early(log: Log) -> bool:
    """Whether a segment ends before segment.ms has passed, if only a little."""
    for _ in range(3):  # a chance of one in three thousand, each time
        start = now_ms(log)
        append(log, batch(timestamp=start))
        segment = log.segments.active
        append(log, batch(timestamp=start + log.config.segment_ms - 1))
        if log.segments.active is not segment:
            return True
        log.roll()
    return False


def rolls_with_full_indexes(log: Log) -> int:
    before = len(log.segments)
    for i in range(20):
        append(log, batch(value=b"x" * 5000, timestamp=now_ms(log) + i))
    return len(log.segments) - before


def indexes(log: Log) -> int:
    """How many of ten small batches the index names."""
    for i in range(10):
        append(log, batch(timestamp=now_ms(log) + i))
    return log.segments.active.offset_index.entries


def flushes_by_count(log: Log) -> int:
    """How many of seven records wait for a flush before they may be acknowledged."""
    log.flush()
    for _ in range(7):
        append(log, batch(timestamp=now_ms(log)))
    return log.log_end_offset - log.settled_offset


def leaves_unflushed(log: Log) -> int:
    append(log, batch(timestamp=now_ms(log)))
    return log.log_end_offset - log.recovery_point


def preallocates(log: Log) -> int:
    """The size of a new segment's file."""
    append(log, batch(timestamp=now_ms(log)))
    log.roll()
    return os.stat(log.segments.active.file.path).st_size


class Setting(NamedTuple):
    """A topic's key with a value that shows, the broker's key for it, and what is seen with and without."""

    value: str
    broker_key: str
    seen: Callable[[Log], object]
    acting: object
    ignored: object
    besides: Mapping[str, str] = MappingProxyType({})
    after_s: float = 0


SETTINGS = {
    "segment.bytes": Setting(str(MEGABYTE), "log.segment.bytes", rolls_by_size, 2, 0),
    "segment.ms": Setting("1000", "log.roll.ms", rolls_by_time, 2, 0),
    "segment.jitter.ms": Setting(
        "3000", "log.roll.jitter.ms", rolls_early, True, False, {"segment.ms": "604800000"}
    ),
    "segment.index.bytes": Setting(
        "48", "log.index.size.max.bytes", rolls_with_full_indexes, 4, 0, {"index.interval.bytes": "0"}
    ),
    "index.interval.bytes": Setting("0", "log.index.interval.bytes", indexes, 9, 0),
    "flush.messages": Setting("3", "log.flush.interval.messages", flushes_by_count, 5, 0),
    "flush.ms": Setting("1000", "log.flush.interval.ms", leaves_unflushed, 0, 1, after_s=10),
    "preallocate": Setting(
        "true", "log.preallocate", preallocates, MEGABYTE, 0, {"segment.bytes": str(MEGABYTE)}
    ),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def log_of(node: Node, topic: str, partition: int = 0) -> Log:
    return node.replicas.partitions[TopicPartition(topic, partition)].log


def seen(broker: Broker, topic: str, setting: Setting) -> object:
    """What the log does now, in a segment that was made under the settings in force."""
    broker.look(lambda node: log_of(node, topic).roll())
    found = broker.look(lambda node: setting.seen(log_of(node, topic)))
    if setting.after_s:
        broker.advance(setting.after_s)
        found = broker.look(
            lambda node: log_of(node, topic).log_end_offset - log_of(node, topic).recovery_point
        )
    return found


def new_topic(broker: Broker, name: str, configs: Mapping[str, str]) -> str:
    create_topic(broker.bootstrap_servers, name, 1, configs)
    broker.look(lambda node: append(log_of(node, name), batch(timestamp=now_ms(log_of(node, name)))))
    return name


def run(broker: Broker, *arguments: str) -> None:
    outcome = odradek(*arguments, "-y", "-b", broker.bootstrap_servers)
    assert outcome.code == 0, outcome.stderr


@pytest.mark.parametrize("key", SETTINGS)
def test_a_topics_own_setting_acts(broker: Broker, key: str) -> None:
    setting = SETTINGS[key]
    plain = new_topic(broker, f"plain-{key}", setting.besides)
    assert seen(broker, plain, setting) == setting.ignored
    topic = new_topic(broker, f"own-{key}", {**setting.besides, key: setting.value})
    assert seen(broker, topic, setting) == setting.acting


@pytest.mark.parametrize("key", SETTINGS)
def test_a_topics_setting_acts_when_it_is_changed(broker: Broker, key: str) -> None:
    setting = SETTINGS[key]
    topic = new_topic(broker, f"changed-{key}", setting.besides)
    assert seen(broker, topic, setting) == setting.ignored
    run(broker, "topic", "alter", topic, "--set", f"{key}={setting.value}")
    assert seen(broker, topic, setting) == setting.acting
    run(broker, "topic", "alter", topic, "--unset", key)
    assert seen(broker, topic, setting) == setting.ignored


@pytest.mark.parametrize("key", SETTINGS)
def test_the_brokers_default_acts_when_it_is_changed(broker: Broker, key: str) -> None:
    setting = SETTINGS[key]
    topic = new_topic(broker, f"default-{key}", setting.besides)
    run(broker, "cluster", "config", "--set", f"{setting.broker_key}={setting.value}")
    try:
        assert seen(broker, topic, setting) == setting.acting
    finally:
        run(broker, "cluster", "config", "--unset", setting.broker_key)
    assert seen(broker, topic, setting) == setting.ignored


def test_the_brokers_own_file_gives_the_defaults() -> None:
    """All at once, but those that would get into each other's way."""
    together = ("segment.bytes", "index.interval.bytes", "flush.messages", "preallocate", "flush.ms")
    apart = ("segment.ms", "segment.jitter.ms", "segment.index.bytes")
    for keys in (together, *((key,) for key in apart)):
        besides = {k: v for key in keys for k, v in SETTINGS[key].besides.items() if k not in keys}
        with Broker({SETTINGS[key].broker_key: SETTINGS[key].value for key in keys}) as broker:
            for key in keys:
                topic = new_topic(broker, f"static-{key}", besides)
                assert seen(broker, topic, SETTINGS[key]) == SETTINGS[key].acting, key


def jitters(broker: Broker) -> set[int]:
    return broker.look(
        lambda node: {log_of(node, "t", partition).segments.active.roll_jitter_ms for partition in range(20)}
    )


def test_many_partitions_made_at_once_are_not_rolled_at_once() -> None:
    with Broker({"log.roll.jitter.ms": "3600000"}) as broker:
        create_topic(broker.bootstrap_servers, "t", 20)
        assert len(jitters(broker)) > 15
        broker.stop()
        broker.start()
        assert len(jitters(broker)) > 15


def test_the_brokers_file_may_give_hours() -> None:
    with Broker({"log.roll.hours": "1", "log.roll.jitter.hours": "1"}) as broker:
        create_topic(broker.bootstrap_servers, "t", 20)
        assert max(jitters(broker)) > 60_000

        def rolled(node: Node) -> int:
            log = log_of(node, "t")
            start = now_ms(log)
            append(log, batch(timestamp=start))
            append(log, batch(timestamp=start + 3_600_001))
            return len(log.segments)

        assert broker.look(rolled) == 2


def test_the_schedulers_interval_stands_for_flush_ms_too() -> None:
    with Broker({"log.flush.scheduler.interval.ms": "100"}) as broker:
        topic = new_topic(broker, "t", {})
        broker.advance(0.5)
        assert broker.look(lambda node: log_of(node, topic).recovery_point) == 1
