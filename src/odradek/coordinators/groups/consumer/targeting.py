"""Updates the group's epoch, its target assignment, and the members. Adds records to a draft.

All of this is paced work with one image of the cluster, which the caller passes in.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.coordinators.groups.consumer import records as r
from odradek.coordinators.groups.consumer.assignors import ASSIGNORS, Assignment, GroupSpec
from odradek.coordinators.groups.consumer.draft import GroupDraft
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.member import ConsumerMember
from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL, are_same
from odradek.coordinators.groups.consumer.reconciling import Goal, Owned, reconcile
from odradek.coordinators.shard import Now, Record
from odradek.metadata.image import MetadataImage
from odradek.runtime.slices import FEW, STEP, Paced, gathered

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)


def update_group_epoch(
    shard: "GroupShard", draft: GroupDraft, bump: bool, image: MetadataImage
) -> Paced[None]:
    """Bump the group's epoch if its members changed (`bump`) or their topics did."""
    group = draft.group
    topics = yield from group.collect_topics()
    metadata_hash = yield from gathered(shard.topic_hashes.of_group(topics, image))
    if bump or metadata_hash != group.metadata_hash:
        yield from bump_group_epoch(draft, metadata_hash)
    if group.has_partition_metadata:
        yield from draft.add(r.partition_metadata_tombstone(group.group_id))


def bump_group_epoch(draft: GroupDraft, metadata_hash: int) -> Paced[None]:
    group_id, epoch = draft.group.group_id, draft.group.group_epoch + 1
    yield from draft.add(r.epoch_record(group_id, epoch, metadata_hash))
    _log.info("Bumped epoch of group %r to %d with metadata hash %d", group_id, epoch, metadata_hash)


def update_target(shard: "GroupShard", draft: GroupDraft, image: MetadataImage, now: Now) -> Paced[None]:
    """Compute a new target if the group's epoch is newer than the assignment's, and the minimum interval has
    passed."""
    group = draft.group
    if group.group_epoch <= group.assignment_epoch or not _may_assign(shard, group, now):
        return
    default = shard.config.consumer_assignors[0]
    name = group.preferred_assignor(default)
    if name not in shard.config.consumer_assignors:
        name = default
    group_id, epoch = group.group_id, group.group_epoch
    spec = yield from gathered(_spec(group, image))
    targets = yield from gathered(ASSIGNORS[name](spec))
    yield from gathered(draft.extend((yield from gathered(_changed(group, targets)))))
    yield from draft.add(r.target_epoch_record(group_id, epoch, now.wall_ms))
    _log.info("Computed a new target assignment of group %r for epoch %d with %s", group_id, epoch, name)


def _changed(group: ConsumerGroup, targets: Mapping[str, Assignment]) -> Paced[list[Record]]:
    """A record for each member whose target changed."""
    records: list[Record] = []
    for member_id, target in targets.items():
        known = group.targets.get(member_id)
        if known is None or not (yield from are_same(known, target)):
            records.append((yield from r.target_record(group.group_id, member_id, target)))
        yield FEW
    return records


def _may_assign(shard: "GroupShard", group: ConsumerGroup, now: Now) -> bool:
    """Whether the interval has passed. A timestamp in the future is ignored: the clock was set back."""
    last_ms = group.assignment_timestamp_ms
    interval_ms = shard.settings.consumer_assignment_interval_ms(group.group_id)
    return last_ms == 0 or not last_ms <= now.wall_ms < last_ms + interval_ms


def _spec(group: ConsumerGroup, image: MetadataImage) -> Paced[GroupSpec]:
    """The input of the assignor. Members with the same topics share one set of topic ids."""
    known: dict[frozenset[str], frozenset[UUID]] = {}
    subscriptions: dict[str, frozenset[UUID]] = {}
    counts: dict[UUID, int] = {}
    for member in group.members.values():
        names = group.topics_of(member)
        ids = known.get(names)
        if ids is None:
            ids = known[names] = yield from _ids(names, image)
            for topic_id in ids:
                counts[topic_id] = len(image.topics_by_id[topic_id].partitions)
                yield FEW
        subscriptions[member.member_id] = ids
        yield FEW + len(names) // ENTRIES_PER_CALL
    instance_ids = {member_id: instance_id for instance_id, member_id in group.static_members.items()}
    return GroupSpec(subscriptions, group.targets, counts, instance_ids)


def _ids(names: Iterable[str], image: MetadataImage) -> Paced[frozenset[UUID]]:
    """The ids of the topics that exist."""
    known = image.topics_by_name
    ids = set()
    for name in names:
        if name in known:
            ids.add(known[name].id)
        yield FEW
    return frozenset(ids)


def reconcile_member(
    draft: GroupDraft,
    member: ConsumerMember,
    subscription_changed: bool,
    owned: Owned | None,
    image: MetadataImage,
) -> Paced[ConsumerMember]:
    """Move the member one step towards its target. Returns the same object if nothing changed."""
    group = draft.group
    if not subscription_changed and member.is_reconciled_to(group.assignment_epoch):
        return member
    subscribed = yield from gathered(_ids(group.topics_of(member), image))
    goal = Goal(group.assignment_epoch, group.target(member.member_id), subscribed, group.owners_of)
    updated = yield from gathered(reconcile(member, goal, owned, subscription_changed))
    yield STEP
    if (yield from _is_unchanged(member, updated)):
        return member
    yield from draft.add((yield from r.current_record(group.group_id, updated)))
    return updated


def _is_unchanged(member: ConsumerMember, updated: ConsumerMember) -> Paced[bool]:
    same_maps = updated._replace(assigned=member.assigned, pending_revocation=member.pending_revocation)
    return (
        same_maps == member
        and (yield from are_same(member.assigned, updated.assigned))
        and (yield from are_same(member.pending_revocation, updated.pending_revocation))
    )
