"""A harness with topics and members of consumer groups. Each member reports what it owns, and keeps its
assignment."""

import uuid
from typing import Any

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.log_format import encode
from odradek.coordinators.groups.replies import ConsumerGroupHeartbeatResponse
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import RESOURCE_GROUP, PartitionRegistration, TopicImage
from odradek.runtime.slices import at_once
from tests.unit.coordinators.groups.harness import Harness, replayed

HARD_STATE = (
    *("group_epoch", "metadata_hash", "assignment_epoch", "assignment_timestamp_ms", "members", "owners"),
    *("static_members", "targets", "regexes", "has_partition_metadata", "is_deleted"),
)


def topic_id(name: str, incarnation: int = 0) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{name}/{incarnation}")


class ConsumerHarness(Harness):
    def __init__(self, **config: Any) -> None:
        config.setdefault("consumer_assignment_interval_ms", 0)
        super().__init__(**config)
        self._incarnations: dict[str, int] = {}

    # --- topics ---------------------------------------------------------------------------------------

    def topic(self, name: str, partitions: int) -> uuid.UUID:
        """Create a topic, let it grow, or delete it with 0 partitions; its id is new with each creation."""
        topics = dict(self.image.topics_by_name)
        known = topics.pop(name, None)
        if known is None:
            self._incarnations[name] = self._incarnations.get(name, 0) + 1
        identifier = topic_id(name, self._incarnations[name])
        if partitions:
            rows = {i: PartitionRegistration((1,), (1,), 1, 0, 0) for i in range(partitions)}
            topics[name] = TopicImage(name, identifier, rows)
        self.image = self.image._replace(
            offset=self.image.offset + 1,
            topics_by_name=topics,
            topics_by_id={topic.id: topic for topic in topics.values()},
        )
        at_once(self.shard.topics_changed({name}, has_new=known is None))
        return identifier

    def set_group(self, group_id: str, **configs: str) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.image = self.image._replace(configs={(RESOURCE_GROUP, group_id): named})

    # --- groups ---------------------------------------------------------------------------------------

    def consumer_group(self, group_id: str = "g") -> ConsumerGroup:
        group = self.shard.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def member(self, member_id: str, *topics: str, group_id: str = "g", **fields: Any) -> "FakeConsumer":
        return FakeConsumer(self, group_id, member_id, topics, fields)

    def check(self) -> None:
        """No partition is owned twice, and a reload would give the very same groups."""
        super().check()
        for group in self.shard.groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            held = [
                (topic, partition)
                for member in group.members.values()
                for partitions in (member.assigned, member.pending_revocation)
                for topic, numbers in partitions.items()
                for partition in numbers
            ]
            assert len(held) == len(set(held)), "a partition is owned by two members"
            assert set(held) == {(topic_id, p) for topic_id, owners in group.owners.items() for p in owners}
            assert group.assignment_epoch <= group.group_epoch
            for member in group.members.values():
                assert member.member_epoch <= group.assignment_epoch

    def left_by_compaction(self) -> list[str]:
        """The kinds of records whose newest value is no tombstone."""
        newest: dict[bytes, tuple[Any, Any]] = {}
        for key, value in self.log:
            newest[encode((key, value))[0]] = key, value
        return [type(key).__name__ for key, value in newest.values() if value is not None]

    def check_reload(self) -> None:
        other = replayed(self.log, self.config, lambda: self.image)
        for group_id, group in self.shard.groups.items():
            if isinstance(group, ConsumerGroup):
                loaded = other.groups[group_id]
                assert isinstance(loaded, ConsumerGroup)
                for name in HARD_STATE:
                    assert getattr(loaded, name) == getattr(group, name), name


class FakeConsumer:
    """What a client keeps: its epoch, what it was assigned, what it still works on."""

    def __init__(
        self,
        h: ConsumerHarness,
        group_id: str,
        member_id: str,
        topics: tuple[str, ...],
        fields: dict[str, Any],
    ) -> None:
        self.h, self.group_id, self.member_id = h, group_id, member_id
        self.topics, self.fields = topics, fields
        self.epoch = 0
        self.assigned: dict[uuid.UUID, frozenset[int]] = {}

    def send(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        command = c.ConsumerHeartbeat(
            **{
                "group_id": self.group_id,
                "member_id": self.member_id,
                "client_id": "client",
                "client_host": "/127.0.0.1",
                **fields,
            }
        )
        answer = self.h.handle(command)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = {r.topic_id: frozenset(r.partitions) for r in answer.assignment.topic_partitions}
        return answer

    def join(self, **over: Any) -> "FakeConsumer":
        values = {
            "rebalance_timeout_ms": 10_000,
            "subscribed_topic_names": self.topics,
            "owned": {},
            **self.fields,
        }
        self.send(member_epoch=0, **{**values, **over})
        return self

    def beat(self, **over: Any) -> ConsumerGroupHeartbeatResponse:
        instance = {k: v for k, v in self.fields.items() if k == "instance_id"}
        return self.send(member_epoch=self.epoch, **{"owned": self.assigned, **instance, **over})

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        instance = {k: v for k, v in self.fields.items() if k == "instance_id"}
        return self.send(member_epoch=epoch, **instance)

    def code(self, **fields: Any) -> ErrorCode:
        try:
            self.send(**{"member_epoch": self.epoch, **fields})
        except KafkaError as e:
            return e.code
        return ErrorCode.NONE

    @property
    def partitions(self) -> list[int]:
        return sorted(partition for numbers in self.assigned.values() for partition in numbers)


def beat_in_turns(*members: FakeConsumer) -> None:
    for _ in range(6):
        for member in members:
            member.beat()
