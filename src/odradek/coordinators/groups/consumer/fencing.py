"""Removes members of a consumer group: they left, timed out, or an administrator removed them."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odradek.coordinators.groups.consumer import migrating, targeting
from odradek.coordinators.groups.consumer.draft import GroupDraft
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.member import ConsumerMember
from odradek.coordinators.groups.consumer.records import member_tombstones, regex_tombstone
from odradek.coordinators.shard import CoordinatorResult, Now
from odradek.runtime.slices import Paced, gathered

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)


def fence(
    shard: "GroupShard", group: ConsumerGroup, members: Sequence[ConsumerMember], response: Any, now: Now
) -> Paced[CoordinatorResult]:
    """Remove members, and bump the group's epoch for a new assignment. If only classic members are left, the
    group becomes classic."""
    if not members:
        return CoordinatorResult(response)
    gone = frozenset(member.member_id for member in members)
    if migrating.can_downgrade(shard, group, gone):
        return (yield from migrating.downgrade_without(shard, group, gone, response, now))
    draft = GroupDraft(group)
    for member_id in gone_in_order(members):
        yield from draft.extend(member_tombstones(group.group_id, member_id))
    subscribed = draft.group.subscribed_regexes
    yield from draft.extend(
        [regex_tombstone(group.group_id, regex) for regex in group.regexes if regex not in subscribed]
    )
    topics = yield from draft.group.collect_topics()
    metadata_hash = yield from gathered(shard.topic_hashes.of_group(topics, shard.image()))
    yield from targeting.bump_group_epoch(draft, metadata_hash)
    return CoordinatorResult(response, draft.records)


def gone_in_order(members: Sequence[ConsumerMember]) -> list[str]:
    return list(dict.fromkeys(member.member_id for member in members))


def time_is_up(
    shard: "GroupShard", group: ConsumerGroup, member_id: str, phase: str, now: Now
) -> Paced[CoordinatorResult]:
    member = group.members.get(member_id)
    if member is None:
        return CoordinatorResult()
    _log.info("Member %r is fenced from consumer group %r: %s timeout", member_id, group.group_id, phase)
    return (yield from fence(shard, group, [member], None, now))
