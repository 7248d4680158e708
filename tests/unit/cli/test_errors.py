"""Errors name the thing, the code, the cause and the next command."""

import errno

import pytest

from odradek.cli.errors import Failure, Failures, connection_failure, kafka_failure, raise_all
from odradek.core.errors import ErrorCode, KafkaError


def test_a_kafka_error_names_thing_code_cause_and_next_command() -> None:
    failure = kafka_failure("topic x", "x", KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert str(failure) == "topic x: UNKNOWN_TOPIC_OR_PARTITION: there is no such topic or partition"
    assert failure.hint == "next: odradek topic list"
    assert failure.exit_code == 1


def test_the_clusters_own_words_win() -> None:
    failure = kafka_failure(
        "topic x", "x", KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'x' already exists.")
    )
    assert str(failure) == "topic x: TOPIC_ALREADY_EXISTS: Topic 'x' already exists."
    assert failure.hint == "next: odradek topic describe x"


def test_the_cause_is_told_where_the_cluster_says_nothing_but_the_code() -> None:
    error = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, place="produce to x-0")
    assert str(kafka_failure("topic x", "x", error)) == (
        "topic x: MESSAGE_TOO_LARGE: a record is larger than the topic's max.message.bytes"
    )


def test_a_code_without_advice_is_still_named() -> None:
    assert str(kafka_failure("group g", "g", KafkaError(ErrorCode.ILLEGAL_GENERATION))) == (
        "group g: ILLEGAL_GENERATION"
    )


def test_a_refused_connection_asks_for_a_node() -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    failure = connection_failure("localhost:9092", refused)
    assert str(failure) == "nothing listens on localhost:9092"
    assert failure.hint == "is a node running? next: odradek start"
    assert "in time" in str(connection_failure("h:1", TimeoutError()))


def test_one_failure_is_raised_as_it_is_and_several_together() -> None:
    raise_all([])
    with pytest.raises(Failure, match=r"^a$"):
        raise_all([Failure("a")])
    with pytest.raises(Failures, match="a; b") as caught:
        raise_all([Failure("a"), Failure("b")])
    assert [str(failure) for failure in caught.value.failures] == ["a", "b"]
