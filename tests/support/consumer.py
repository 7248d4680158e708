"""A member of a consumer group (KIP-848), by hand: every heartbeat is a step of the test."""

import time
import uuid
from collections.abc import Iterable
from typing import Any

from tests.support.group import Member
from tests.support.raw import Connection

CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE, INCREMENTAL_ALTER_CONFIGS = 68, 69, 44
GROUP_RESOURCE = 32

Partitions = dict[uuid.UUID, list[int]]


def heartbeat_values(group: str, member_id: str, epoch: int, **over: Any) -> dict[str, Any]:
    """A heartbeat that says nothing but that the member lives."""
    return {
        "group_id": group,
        "member_id": member_id,
        "member_epoch": epoch,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout": -1,
        "subscribed_topic_names": None,
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": None,
        **over,
    }


def joining_values(group: str, member_id: str, topics: Iterable[str], **over: Any) -> dict[str, Any]:
    fields = {"rebalance_timeout": 10_000, "subscribed_topic_names": list(topics), "topic_partitions": []}
    return heartbeat_values(group, member_id, 0, **{**fields, **over})


def owned(partitions: Partitions) -> list[dict[str, Any]]:
    return [{"topic_id": topic_id, "partitions": numbers} for topic_id, numbers in partitions.items()]


def set_group_config(bootstrap: str, group: str, **configs: str) -> None:
    """Settings of the group itself; dots are underscores in their names."""
    entries = [
        {"name": name.replace("_", "."), "config_operation": 0, "value": value}
        for name, value in configs.items()
    ]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": entries}
    with Connection(bootstrap) as connection:
        answer = connection.call(
            INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": False}
        )
    assert answer.responses[0].error_code == 0, answer


def prepare_group(bootstrap: str, group: str) -> None:
    """Have a coordinator for the group, which assigns without delay."""
    with Member(bootstrap, group):
        set_group_config(bootstrap, group, consumer_assignment_interval_ms="0")


class Consumer:
    """One member on its own connection: keeps its epoch and what it was assigned."""

    def __init__(
        self, bootstrap: str, group: str, member_id: str, topics: Iterable[str] = (), **fields: Any
    ) -> None:
        self.connection = Connection(bootstrap)
        self.group, self.member_id, self.topics = group, member_id, list(topics)
        self.fields = fields
        self.epoch = 0
        self.assigned: Partitions = {}

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def call(self, values: dict[str, Any], version: int = 1) -> Any:
        answer = self.connection.call(CONSUMER_GROUP_HEARTBEAT, version, {**values, **self.fields})
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {
                    row.topic_id: sorted(row.partitions) for row in answer.assignment.topic_partitions
                }
        return answer

    def join(self, **over: Any) -> Any:
        return self.call(joining_values(self.group, self.member_id, self.topics, **over))

    def beat(self, **over: Any) -> Any:
        """Say that it lives, and that it owns what it was last assigned."""
        fields = {"topic_partitions": owned(self.assigned), **over}
        return self.call(heartbeat_values(self.group, self.member_id, self.epoch, **fields))

    def leave(self, epoch: int = -1) -> Any:
        return self.call(heartbeat_values(self.group, self.member_id, epoch))

    @property
    def partitions(self) -> list[int]:
        """Of all topics together."""
        return sorted(partition for numbers in self.assigned.values() for partition in numbers)


def beat_until_assigned(*consumers: Consumer, expected: int, timeout_s: float = 20) -> None:
    """Let members beat until they have `expected` partitions between them, all in one epoch."""
    deadline = time.monotonic() + timeout_s
    while True:
        for consumer in consumers:
            answer = consumer.beat()
            assert answer.error_code == 0, answer
        held = sum(len(consumer.partitions) for consumer in consumers)
        if held == expected and len({consumer.epoch for consumer in consumers}) == 1:
            return
        assert time.monotonic() < deadline, [(c.member_id, c.epoch, c.partitions) for c in consumers]
        time.sleep(0.05)
