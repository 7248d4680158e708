"""Moves a member from its current to its target assignment, one step per heartbeat. Pure.

    STABLE ------------------> UNREVOKED_PARTITIONS: must revoke some; keeps its epoch, with a timeout
      |  ^                         |
      |  |    has revoked them     v
      |  +---------------------- the target's epoch: what is free is assigned at once
      |                            |
      +--> UNRELEASED_PARTITIONS <-+ others still own some; tries again with every heartbeat

A partition goes to its next owner only after the last owner has reported that it revoked it. So no partition
has two owners at any time.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from odradek.coordinators.groups.consumer.assignors import Assignment
from odradek.coordinators.groups.consumer.member import ConsumerMember, MemberState, PartitionEpochs
from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL, have_common
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import FEW, STEP, Paced

Owned = Mapping[UUID, frozenset[int]]


class Goal(NamedTuple):
    """The goal of a member."""

    epoch: int
    target: Assignment
    subscribed: frozenset[UUID]
    """The topics that it subscribes to. It gets no partitions of other topics, even if the target has
    them."""
    owners_of: Callable[[UUID], Mapping[int, str]]
    """The owned partitions of a topic, with their owners."""


def reconcile(
    member: ConsumerMember, goal: Goal, owned: Owned | None, subscription_changed: bool
) -> Paced[ConsumerMember]:
    """The member's next state. `owned` is what it reports, or None if it reports nothing."""
    if member.state is MemberState.STABLE:
        if member.member_epoch != goal.epoch:
            return (yield from _advance(member, goal, owned))
        return (yield from _drop_unsubscribed(member, goal, owned)) if subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if (yield from _owns_any(owned, member.pending_revocation)):
            return (yield from _drop_unsubscribed(member, goal, owned)) if subscription_changed else member
        return (yield from _advance(member, goal, owned))
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return (yield from _advance(member, goal, owned))
    if owned is None or owned:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions "
            "and rejoin.",
        )
    return (yield from _advance(member._replace(member_epoch=goal.epoch), goal, owned))


def _owns_any(owned: Owned | None, partitions: PartitionEpochs) -> Paced[bool]:
    """A member that does not report its partitions may own all of them."""
    return owned is None or (yield from have_common(owned, partitions))


def _advance(member: ConsumerMember, goal: Goal, owned: Owned | None) -> Paced[ConsumerMember]:
    kept: dict[UUID, dict[int, int]] = {}
    revoked: dict[UUID, dict[int, int]] = {}
    gained: dict[UUID, list[int]] = {}
    waits = False
    for topic_id in dict.fromkeys((*goal.target, *member.assigned)):
        target = goal.target.get(topic_id, frozenset()) if topic_id in goal.subscribed else frozenset()
        has = member.assigned.get(topic_id, {})
        stays = {p: epoch for p, epoch in has.items() if p in target}
        goes = {p: epoch for p, epoch in has.items() if p not in target}
        to_revoke = member.pending_revocation.get(topic_id, {})
        owners = goal.owners_of(topic_id)
        # The member may take back partitions that it has to revoke.
        wanted = sorted(target - stays.keys())
        comes = [p for p in wanted if p not in owners or p in to_revoke]
        waits |= len(comes) < len(wanted)
        yield STEP + 4 * (len(target) + len(has)) // ENTRIES_PER_CALL
        if stays:
            kept[topic_id] = stays
        if goes:
            revoked[topic_id] = goes
        if comes:
            gained[topic_id] = comes
    if revoked and (yield from _owns_any(owned, revoked)):
        return member.at_epoch(member.member_epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
        )
    for topic_id, partitions in gained.items():
        kept[topic_id] = {**kept.get(topic_id, {}), **dict.fromkeys(partitions, goal.epoch)}
        yield 2 * FEW + len(partitions) // ENTRIES_PER_CALL
    return member.at_epoch(goal.epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        assigned=kept,
        pending_revocation={},
    )


def _drop_unsubscribed(member: ConsumerMember, goal: Goal, owned: Owned | None) -> Paced[ConsumerMember]:
    """Revoke partitions of topics that the member no longer subscribes to, before the target is updated."""
    kept: dict[UUID, Mapping[int, int]] = {}
    revoked: dict[UUID, Mapping[int, int]] = dict(member.pending_revocation)
    for topic_id, partitions in member.assigned.items():
        if topic_id in goal.subscribed:
            kept[topic_id] = partitions
        else:
            revoked[topic_id] = {**revoked.get(topic_id, {}), **partitions}
        yield 2 * FEW + len(partitions) // ENTRIES_PER_CALL
    if len(kept) == len(member.assigned):
        return member
    member = member.at_epoch(member.member_epoch)._replace(assigned=kept)
    if (yield from _owns_any(owned, revoked)):
        return member._replace(state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=revoked)
    return member
