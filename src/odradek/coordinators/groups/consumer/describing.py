"""ConsumerGroupDescribe: the description of a consumer group. Read only."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.coordinators.groups.commands import DescribeConsumerGroup
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.member import ConsumerMember
from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL
from odradek.coordinators.groups.replies import (
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedPartitions,
)
from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.metadata.image import MetadataImage
from odradek.runtime.slices import FEW, STEP, Paced

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

CLASSIC, CONSUMER = 0, 1


def describe(
    shard: "GroupShard", command: DescribeConsumerGroup, ticket: Ticket, now: Now
) -> Paced[CoordinatorResult]:
    group, image = shard.consumer_group(command.group_id), shard.image()
    members = []
    for member in group.members.values():
        members.append((yield from _member(group, member, image)))
        yield STEP
    return CoordinatorResult(
        DescribedConsumerGroup(
            group_id=group.group_id,
            group_state=group.state,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.preferred_assignor(shard.config.consumer_assignors[0]),
            members=members,
        )
    )


def _member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Paced[DescribedConsumer]:
    """A member still owns the partitions that it has to revoke."""
    has: dict[UUID, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, numbers in partitions.items():
            has.setdefault(topic_id, []).extend(sorted(numbers))
            yield 2 * FEW + len(numbers) // ENTRIES_PER_CALL
    assignment = yield from _assignment(has, image)
    target_assignment = yield from _assignment(group.target(member.member_id), image)
    return DescribedConsumer(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=assignment,
        target_assignment=target_assignment,
        member_type=CLASSIC if member.uses_classic_protocol else CONSUMER,
    )


def _assignment(
    partitions: Mapping[UUID, Collection[int]], image: MetadataImage
) -> Paced[DescribedAssignment]:
    """Deleted topics are omitted: they have no name."""
    rows = []
    for topic_id, numbers in partitions.items():
        topic = image.topics_by_id.get(topic_id)
        if topic is not None:
            # A list has assigned partitions before those to revoke, as in Apache Kafka. A set has no order.
            ordered = numbers if isinstance(numbers, list) else sorted(numbers)
            rows.append(DescribedPartitions(topic_id, topic.name, ordered))
        yield 2 * FEW + len(numbers) // ENTRIES_PER_CALL
    return DescribedAssignment(rows)
