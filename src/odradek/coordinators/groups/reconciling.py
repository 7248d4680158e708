"""How a member gets from what it has to what it shall have, one step per heartbeat. Pure.

    STABLE ------------------> UNREVOKED_PARTITIONS: must give up some; keeps its epoch, the clock runs
      |  ^                         |
      |  |    has given them up    v
      |  +---------------------- the target's epoch: what is free is assigned at once
      |                            |
      +--> UNRELEASED_PARTITIONS <-+ others still hold some; asks again with every heartbeat

A partition is given to its next owner only when the last one has said that it is rid of it: no partition is
ever owned twice.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from odradek.coordinators.groups.assignors import Assignment
from odradek.coordinators.groups.consumer_member import ConsumerMember, MemberState, PartitionEpochs
from odradek.core.errors import ErrorCode, KafkaError

Owned = Mapping[UUID, frozenset[int]]


class Goal(NamedTuple):
    """Where a member shall get."""

    epoch: int
    target: Assignment
    subscribed: frozenset[UUID]
    """The topics it subscribes to: of others it gets nothing, whatever the target says."""
    is_held: Callable[[UUID, int], bool]
    """Whether some member still has a partition."""


def reconcile(
    member: ConsumerMember, goal: Goal, owned: Owned | None, subscription_changed: bool
) -> ConsumerMember:
    """The member's next state; `owned` is what it says it has, None where it does not say."""
    if member.state is MemberState.STABLE:
        if member.member_epoch != goal.epoch:
            return _advance(member, goal, owned)
        return _drop_unsubscribed(member, goal, owned) if subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _owns_any(owned, member.pending_revocation):
            return _drop_unsubscribed(member, goal, owned) if subscription_changed else member
        return _advance(member, goal, owned)
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return _advance(member, goal, owned)
    if owned is None or owned:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions "
            "and rejoin.",
        )
    return _advance(member._replace(member_epoch=goal.epoch), goal, owned)


def _owns_any(owned: Owned | None, partitions: PartitionEpochs) -> bool:
    """A member that does not say what it owns may own them all."""
    return owned is None or any(
        partition in partitions.get(topic_id, {}) for topic_id, some in owned.items() for partition in some
    )


def _advance(member: ConsumerMember, goal: Goal, owned: Owned | None) -> ConsumerMember:
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
        comes = []
        for partition in sorted(target - stays.keys()):
            # What waits to be revoked from this very member is its own to take back.
            if goal.is_held(topic_id, partition) and partition not in to_revoke:
                waits = True
            else:
                comes.append(partition)
        if stays:
            kept[topic_id] = stays
        if goes:
            revoked[topic_id] = goes
        if comes:
            gained[topic_id] = comes
    if revoked and _owns_any(owned, revoked):
        return member.at_epoch(member.member_epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
        )
    for topic_id, partitions in gained.items():
        kept[topic_id] = {**kept.get(topic_id, {}), **dict.fromkeys(partitions, goal.epoch)}
    return member.at_epoch(goal.epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        assigned=kept,
        pending_revocation={},
    )


def _drop_unsubscribed(member: ConsumerMember, goal: Goal, owned: Owned | None) -> ConsumerMember:
    """The target is not yet up to a changed subscription: what it ends is given up before."""
    kept = {t: partitions for t, partitions in member.assigned.items() if t in goal.subscribed}
    if len(kept) == len(member.assigned):
        return member
    revoked = dict(member.pending_revocation)
    for topic_id, partitions in member.assigned.items():
        if topic_id not in goal.subscribed:
            revoked[topic_id] = {**revoked.get(topic_id, {}), **partitions}
    member = member.at_epoch(member.member_epoch)._replace(assigned=kept)
    if _owns_any(owned, revoked):
        return member._replace(state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=revoked)
    return member
