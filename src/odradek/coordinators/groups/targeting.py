"""The group's epoch, its target assignment, and a member's way to it. Adds to a draft; appends nothing."""

import logging
from typing import TYPE_CHECKING

from odradek.coordinators.groups import consumer_records as r
from odradek.coordinators.groups.assignors import ASSIGNORS, Spec
from odradek.coordinators.groups.consumer_group import ConsumerGroup
from odradek.coordinators.groups.consumer_member import ConsumerMember
from odradek.coordinators.groups.draft import Draft
from odradek.coordinators.groups.reconciling import Goal, Owned, reconcile
from odradek.coordinators.shard import Now
from odradek.metadata.image import MetadataImage

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

log = logging.getLogger("odradek.coordinators.groups")


def update_group_epoch(shard: "GroupShard", draft: Draft, bump: bool) -> None:
    """A new epoch if the members ask for one, or if their topics are not what they were."""
    group = draft.group
    metadata_hash = shard.topic_hashes.of_group(group.subscribed_topics, shard.image())
    if bump or metadata_hash != group.metadata_hash:
        bump_group_epoch(draft, metadata_hash)
    if group.has_partition_metadata:
        draft.add(r.partition_metadata_tombstone(group.group_id))


def bump_group_epoch(draft: Draft, metadata_hash: int) -> None:
    group_id, epoch = draft.group.group_id, draft.group.group_epoch + 1
    draft.add(r.epoch_record(group_id, epoch, metadata_hash))
    log.info("Bumped epoch of group %r to %d with metadata hash %d", group_id, epoch, metadata_hash)


def update_target(shard: "GroupShard", draft: Draft, now: Now) -> None:
    """Assign anew when the group is ahead of its assignment, but not more often than the interval allows."""
    group = draft.group
    if group.group_epoch <= group.assignment_epoch or not _may_assign(shard, group, now):
        return
    default = shard.config.consumer_assignors[0]
    name = group.preferred_assignor(default)
    if name not in shard.config.consumer_assignors:
        name = default
    group_id, epoch = group.group_id, group.group_epoch
    targets = ASSIGNORS[name](_spec(group, shard.image()))
    changed = [
        r.target_record(group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    draft.add(*changed, r.target_epoch_record(group_id, epoch, now.wall_ms))
    log.info("Computed a new target assignment of group %r for epoch %d with %s", group_id, epoch, name)


def _may_assign(shard: "GroupShard", group: ConsumerGroup, now: Now) -> bool:
    """An assignment from the future means that the clock was set back: it does not count."""
    last_ms = group.assignment_timestamp_ms
    interval_ms = shard.settings.consumer_assignment_interval_ms(group.group_id)
    return last_ms == 0 or not last_ms <= now.wall_ms < last_ms + interval_ms


def _spec(group: ConsumerGroup, image: MetadataImage) -> Spec:
    known = image.topics_by_name
    subscriptions = {
        member.member_id: frozenset(known[name].id for name in group.topics_of(member) if name in known)
        for member in group.members.values()
    }
    counts = {
        topic_id: len(image.topics_by_id[topic_id].partitions)
        for topics in subscriptions.values()
        for topic_id in topics
    }
    instance_ids = {member_id: instance_id for instance_id, member_id in group.static_members.items()}
    return Spec(subscriptions, group.targets, counts, instance_ids)


def reconcile_member(
    shard: "GroupShard",
    draft: Draft,
    member: ConsumerMember,
    subscription_changed: bool,
    owned: Owned | None,
) -> ConsumerMember:
    """Take the member a step towards its target; gives it as it then is."""
    group, known = draft.group, shard.image().topics_by_name
    if not subscription_changed and member.is_reconciled_to(group.assignment_epoch):
        return member
    goal = Goal(
        group.assignment_epoch,
        group.target(member.member_id),
        frozenset(known[name].id for name in group.topics_of(member) if name in known),
        group.is_held,
    )
    updated = reconcile(member, goal, owned, subscription_changed)
    if updated != member:
        draft.add(r.current_record(group.group_id, updated))
    return updated
