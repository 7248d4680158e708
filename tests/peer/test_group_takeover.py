"""A data directory with a running consumer group, handed from Apache Kafka to Odradek and back.

Members continue at their epochs: both brokers read the same state from the log, and compute the same hash of
the group's topics.
"""

import time

import pytest

from odradek.runtime.ports import free_port
from tests.support import peer
from tests.support.consumer import CONSUMER_GROUP_DESCRIBE, Consumer, beat_until_assigned, prepare_group
from tests.support.node import running
from tests.support.raw import Connection
from tests.support.topics import create_topic

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

LOADING = (14, 15, 16)


def described(bootstrap):
    with Connection(bootstrap) as connection:
        found = connection.call(
            CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": ["group"], "include_authorized_operations": False}
        ).groups[0]
    return found.group_state, found.group_epoch, found.assignment_epoch


def stable(bootstrap, *consumers, timeout_s=20):
    """What is described once there is no assignment left to make: Apache makes them after it has answered."""
    deadline = time.monotonic() + timeout_s
    while True:
        beat_until_assigned(*consumers, expected=4)
        if (state := described(bootstrap))[0] == "Stable":
            return state
        assert time.monotonic() < deadline, state
        time.sleep(0.1)


def move(bootstrap, consumers):
    """The same members at another broker, each with what it had."""
    moved = []
    for consumer in consumers:
        consumer.connection.close()
        consumer.connection = Connection(bootstrap)
        before = (consumer.epoch, dict(consumer.assigned))
        deadline = time.monotonic() + 30
        while (answer := consumer.beat()).error_code in LOADING:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert answer.error_code == 0, answer
        assert (consumer.epoch, consumer.assigned) == before
        moved.append(consumer)
    return moved


def test_a_consumer_group_moves_between_apache_and_odradek(tmp_path):
    directory = tmp_path / "apache"
    bootstrap = peer.start(directory, free_port())
    try:
        create_topic(bootstrap, "topic", 4)
        prepare_group(bootstrap, "group")
        names = Consumer(bootstrap, "group", "names", ["topic"], instance_id="instance")
        regex = Consumer(bootstrap, "group", "regex")
        names.join()
        regex.join(subscribed_topic_names=None, subscribed_topic_regex="top[ic]+")
        state = stable(bootstrap, names, regex)
    finally:
        peer.stop(directory)
    with running(directory / "node-1" / "data") as node:
        move(node.bootstrap, [names, regex])
        assert described(node.bootstrap) == state, "nothing has changed, so no epoch has"
        third = Consumer(node.bootstrap, "group", "third", ["topic"])
        third.join()
        state = stable(node.bootstrap, names, regex, third)
    peer.command("restart", directory, "all")
    try:
        move(bootstrap, [names, regex, third])
        assert described(bootstrap) == state
        third.leave()
        beat_until_assigned(names, regex, expected=4)
    finally:
        peer.stop(directory)
        for consumer in (names, regex, third):
            consumer.connection.close()
