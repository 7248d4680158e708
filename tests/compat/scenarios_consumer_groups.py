"""Conversations about consumer groups as KIP-848 has them: one per API, see world.py."""

from collections.abc import Iterator
from typing import Any

from tests.compat.world import World, scenario
from tests.support.consumer import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    Consumer,
    heartbeat_values,
    joining_values,
    owned,
    prepare_group,
)

STATIC = "instance"


@scenario(CONSUMER_GROUP_HEARTBEAT)
def consumer_group_heartbeat(world: World, version: int) -> Iterator[dict[str, Any]]:
    prepare_group(world.bootstrap, world.group)

    def beat(name: str, epoch: int, **over: Any) -> dict[str, Any]:
        return heartbeat_values(world.group, name, epoch, **over)

    def join(name: str, **over: Any) -> dict[str, Any]:
        return joining_values(world.group, name, [world.topic], **over)

    def has(answer: Any) -> list[dict[str, Any]]:
        rows = answer.assignment.topic_partitions
        return [{"topic_id": row.topic_id, "partitions": list(row.partitions)} for row in rows]

    # What no group takes.
    yield {**join("member-a"), "group_id": ""}
    yield {**join("member-a"), "group_id": " "}
    yield {**join(""), "group_id": world.group + "-other"}
    yield beat("", 5)
    yield beat("", -1)
    yield join("member-a", instance_id="")
    yield join("member-a", rack_id=" ")
    yield join("member-a", rebalance_timeout=-1)
    yield join("member-a", topic_partitions=None)
    yield join("member-a", topic_partitions=owned({world.topic_id: [0]}))
    yield join("member-a", subscribed_topic_names=None)
    yield join("member-a", server_assignor="no.such")
    yield beat("member-a", -2)
    yield beat("member-a", -3)
    # A group that is not there, and what it takes to make it.
    unknown = world.unique("group")
    yield {**beat("member-a", 1), "group_id": unknown}
    yield {**beat("member-a", -1), "group_id": unknown}
    yield beat("member-a", -1)
    first = yield join("member-a")
    epoch = first.member_epoch
    yield beat("member-a", epoch)
    yield beat("member-a", epoch, topic_partitions=owned({world.topic_id: [0, 1]}))
    yield {**join("member-a", topic_partitions=owned({world.topic_id: [0, 1]})), "member_epoch": epoch}
    yield beat("member-a", epoch + 1)
    yield beat("member-a", epoch - 1)
    yield beat("member-a", epoch, instance_id="nobody")
    yield beat("member-x", epoch)
    yield beat("member-x", -1)
    # A second member: what the first gives up goes to it, and not before.
    second = yield join("member-b", server_assignor="range", rack_id="rack")
    left = yield beat("member-a", epoch, topic_partitions=owned({world.topic_id: [0, 1]}))
    yield beat("member-b", second.member_epoch, topic_partitions=[])
    yield beat("member-a", epoch)
    yield beat("member-a", epoch, topic_partitions=has(left))
    yield beat("member-b", second.member_epoch, topic_partitions=[])
    yield beat("member-a", epoch, topic_partitions=has(left))
    yield beat("member-a", epoch, topic_partitions=owned({world.topic_id: [0, 1]}))
    # It joins again, it subscribes to something else, it leaves.
    again = yield join("member-b")
    changed = yield beat("member-b", again.member_epoch, subscribed_topic_names=[world.other])
    yield beat("member-b", changed.member_epoch, topic_partitions=[])
    yield beat("member-b", -1)
    yield beat("member-b", changed.member_epoch)
    # Static members.
    static = yield join("member-s", instance_id=STATIC)
    yield join("member-t", instance_id=STATIC)
    yield beat("member-t", static.member_epoch, instance_id=STATIC)
    yield beat("member-t", -1, instance_id=STATIC)
    yield beat("member-s", static.member_epoch + 7, instance_id=STATIC)
    yield beat("member-s", static.member_epoch, instance_id=STATIC, topic_partitions=[])
    yield beat("member-s", -2, instance_id=STATIC)
    yield beat("member-s", static.member_epoch, instance_id=STATIC)
    yield join("member-t", instance_id=STATIC)
    yield beat("member-s", static.member_epoch, instance_id=STATIC)
    yield beat("member-s", static.member_epoch)
    yield beat("member-t", -1, instance_id=STATIC)
    # Other kinds of groups.
    with world.member() as classic:
        classic.group = world.unique("group")
        classic.stabilise()
        yield {**beat("member-a", 1), "group_id": classic.group}
        yield {**beat("member-a", -1), "group_id": classic.group}
    if version >= 1:
        yield join("member-r", subscribed_topic_names=None, subscribed_topic_regex="(?=no)")
        yield join("member-r", subscribed_topic_names=None, subscribed_topic_regex="no-such-topic")
        yield beat("member-r", -1)


@scenario(CONSUMER_GROUP_DESCRIBE)
def consumer_group_describe(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(*groups: str, operations: bool = False) -> dict[str, Any]:
        return {"group_ids": list(groups), "include_authorized_operations": operations}

    prepare_group(world.bootstrap, world.group)
    yield values(world.unique("group"))
    yield values("")
    yield values()
    one = Consumer(world.bootstrap, world.group, "member-a", [world.topic, world.other], rack_id="rack")
    two = Consumer(
        world.bootstrap, world.group, "member-b", [world.topic], server_assignor="range", instance_id=STATIC
    )
    with one, two:
        one.join()
        yield values(world.group)
        two.join()
        yield values(world.group, operations=True)
        one.beat()
        yield values(world.group)
        one.beat()
        two.beat()
        yield values(world.group, world.unique("group"))
        two.leave(-2)
        yield values(world.group)
        one.leave()
        two.leave()
        yield values(world.group)
        with world.member() as classic:
            classic.group = world.unique("group")
            classic.stabilise()
            yield values(classic.group)
