"""Options: the official connector's names, and errors that tell what was meant."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.client.admin import EARLIEST, LATEST
from odradek.client.fetching import READ_COMMITTED, READ_UNCOMMITTED
from odradek.core.types import TopicPartition
from odradek.spark.kafka_settings import CONSUMER, as_options
from odradek.spark.options import (
    _SOURCE,
    OptionError,
    SourceOptions,
    sink_options,
    source_options,
)
from tests.support import peer

BASE = {"kafka.bootstrap.servers": "localhost:9092"}


def source(streaming: bool = True, **given: str) -> SourceOptions:
    given.setdefault("subscribe", "a") if "assign" not in given and "subscribePattern" not in given else None
    return source_options({**BASE, **given}, streaming=streaming)


def test_what_is_not_given_is_as_in_the_official_connector_but_committed() -> None:
    options = source()
    assert options.starting.default == LATEST
    assert source(streaming=False).starting.default == EARLIEST
    assert options.ending.default == LATEST
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.isolation == READ_COMMITTED
    assert options.max_trigger_delay_ms == 15 * 60_000


def test_topics_are_chosen_in_one_of_three_ways() -> None:
    assert source(subscribe="a, b,a").chosen.subscribe == ("a", "b")
    assert source(assign='{"a": [0, 2]}').chosen.assign == (TopicPartition("a", 0), TopicPartition("a", 2))
    assert source(subscribePattern="a.*").chosen.pattern == "a.*"
    for wrong in ({}, {"subscribe": "a", "subscribePattern": "b"}):
        with pytest.raises(OptionError, match="one of assign, subscribe and subscribePattern"):
            source_options({**BASE, **wrong}, streaming=True)


def test_a_time_goes_before_times_and_these_before_offsets() -> None:
    every = {
        "startingTimestamp": "5",
        "startingOffsetsByTimestamp": '{"a": {"0": 7}}',
        "startingOffsets": '{"a": {"0": 9}}',
    }
    a0 = TopicPartition("a", 0)
    assert source(**every).starting.timestamp == 5
    del every["startingTimestamp"]
    assert source(**every).starting.timestamps == {a0: 7}
    del every["startingOffsetsByTimestamp"]
    assert source(**every).starting.offsets == {a0: 9}
    assert source(startingOffsets="earliest").starting.default == EARLIEST


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({"failondatalos": "true"}, "did you mean failOnDataLoss?"),
        ({"failOnDataLoss": "yes"}, "failOnDataLoss=yes: true or false"),
        ({"maxOffsetsPerTrigger": "many"}, "a whole number"),
        ({"maxOffsetsPerTrigger": "0"}, "at least 1"),
        ({"startingOffsets": "{"}, "JSON such as"),
        ({"startingOffsets": '{"a": 5}'}, "JSON such as"),
        ({"maxTriggerDelay": "soon"}, "such as 15m"),
        ({"isolation": "dirty"}, "one of read_committed"),
        ({"kafka.auto.offset.reset": "earliest"}, "use startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "checkpoint remembers"),
        ({"kafka.value.deserializer": "x"}, "are bytes"),
        ({"kafka.interceptor.classes": "x"}, "no Java client"),
        ({"kafka.key.deserializer": "x"}, "are bytes"),
        ({"kafka.config.providers": "x"}, "no Java client"),
        (
            {"kafka.security.protocol": "SSL"},
            "kafka.security.protocol: SSL is not supported yet; use PLAINTEXT",
        ),
        ({"kafka.SASL.jaas.config": "x"}, "SASL is not supported yet; use PLAINTEXT"),
        ({"kafka.ssl.truststore.location": "x"}, "SSL is not supported yet; use PLAINTEXT"),
        ({"kafka.max.poll.record": "5"}, "did you mean kafka.max.poll.records?"),
        ({"kafka.max.block.ms": "5"}, "unknown option kafka.max.block.ms"),
        ({"isolation": "read_committed", "kafka.isolation.level": "read_uncommitted"}, "contradict"),
        ({"endingOffsets": "latest"}, "endingOffsets is for batches"),
        ({"endingtimestamp": "5"}, "endingTimestamp is for batches"),
        ({"endingOffsetsByTimestamp": "{}"}, "endingOffsetsByTimestamp is for batches"),
        ({"subscribePattern": "("}, "subscribePattern=("),
    ],
)
def test_what_cannot_be_meant_is_told(given: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError) as refusal:
        source(**given)
    assert told in str(refusal.value)


def test_a_batch_does_not_end_at_its_beginning() -> None:
    with pytest.raises(OptionError, match="reads nothing"):
        source(streaming=False, endingOffsets="earliest")


def test_a_pattern_means_whole_names_and_topics_of_users() -> None:
    chosen = source(subscribePattern="a.*").chosen
    a, other = TopicPartition("ab", 0), TopicPartition("bab", 0)
    assert chosen.includes(a)
    assert not chosen.includes(other)
    assert not chosen.includes(a, is_internal=True)
    assert source(subscribe="ab").chosen.includes(a, is_internal=True)
    assigned = source(assign='{"ab": [0]}').chosen
    assert [assigned.includes(TopicPartition("ab", p)) for p in (0, 1)] == [True, False]


def test_a_batch_does_not_begin_at_the_end() -> None:
    with pytest.raises(OptionError, match="reads nothing in a batch"):
        source(streaming=False, startingOffsets="latest")


def test_isolation_has_the_name_that_consumers_know_too() -> None:
    assert source(**{"kafka.isolation.level": "read_uncommitted"}).isolation == READ_UNCOMMITTED
    assert source(isolation="read_uncommitted").isolation == READ_UNCOMMITTED


def test_a_cluster_is_needed() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        source_options({"subscribe": "a"}, streaming=True)


def test_a_sink_is_exactly_once_unless_asked_otherwise() -> None:
    assert sink_options(BASE).exactly_once
    assert not sink_options({**BASE, "delivery": "at-least-once"}).exactly_once


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tpic": "x"}, "did you mean topic?"),
        ({"delivery": "twice"}, "one of exactly-once"),
        ({"kafka.acks": "1"}, "may lose records"),
        ({"kafka.transactional.id": "x"}, "set prefix instead"),
        ({"kafka.key.serializer": "x"}, "encode the columns"),
        ({"kafka.interceptor.classes": "x"}, "no Java client"),
        ({"kafka.partitioner.class": "x"}, "a column partition"),
        ({"kafka.partitioner.ignore.keys": "true"}, "a column partition"),
        ({"kafka.transaction.timeout.ms": "5"}, "until its batch is decided"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "SASL is not supported yet; use PLAINTEXT"),
        ({"kafka.session.timeout.ms": "5"}, "unknown option kafka.session.timeout.ms"),
        ({"sinkId": "a.b"}, "no dots"),
        ({"prefix": "a b"}, "no dots or spaces"),
        ({"batchId": "3"}, "batchId needs idempotencyKey"),
        ({"idempotencyKey": "k", "batchId": "-1"}, "a whole number of at least 0"),
    ],
)
def test_what_a_sink_cannot_be_told_is_an_error(given: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError) as refusal:
        sink_options({**BASE, **given})
    assert told in str(refusal.value)


def test_settings_of_java_clients_are_accepted_however_they_are_written() -> None:
    for name in ("session.timeout.ms", "Max.Poll.Interval.MS", "metadata.max.age.ms", "client.rack"):
        source(**{f"kafka.{name}": "5"})
    assert source(**{"Kafka.Retry.Backoff.Ms": "7"}).connecting.retry_backoff_ms == 7
    assert source(**{"kafkaConsumer.pollTimeoutMs": "8"}).poll_timeout_ms == 8
    for name in ("max.block.ms", "LINGER.ms", "metadata.max.idle.ms", "compression.zstd.level"):
        sink_options({**BASE, f"kafka.{name}": "5"})
    assert source(**{"kafka.security.protocol": "plaintext"}).connecting == source().connecting


def test_the_document_names_every_option_of_a_source() -> None:
    document = (Path(__file__).parents[3] / "docs/spark.md").read_text()
    names = [name for name in _SOURCE if name not in as_options(CONSUMER)]
    assert len(names) > 20
    assert [name for name in names if f"`{name}`" not in document] == []


@pytest.mark.apache
def test_no_setting_of_apaches_clients_is_unknown() -> None:
    """Accepted, or refused by name: of all that Java's own documents tell."""

    def names(side: str) -> list[str]:
        told = peer.java(f"org.apache.kafka.clients.{side}.{side.capitalize()}Config")
        return re.findall(f'id="{side}configs_([^"]+)"', told)

    def refusal(read: Callable[[dict[str, str]], object], name: str) -> str:
        try:
            read({**BASE, f"kafka.{name}": "1"})
        except OptionError as e:
            return str(e)
        return ""

    def read_source(given: dict[str, str]) -> SourceOptions:
        return source_options({"subscribe": "a", **given}, streaming=True)

    for side, read in (("consumer", read_source), ("producer", sink_options)):
        assert len(names(side)) > 100
        assert [name for name in names(side) if "unknown" in refusal(read, name)] == []
