"""Members with the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

The server assigns their partitions, as for all members. Each one joins, syncs and revokes at its own pace. A
JoinGroup is answered at once, with the member's epoch as generation and without a leader. A SyncGroup returns
the assignment. A Heartbeat makes the member rejoin when it must revoke partitions or can get some.
"""

import logging
from typing import TYPE_CHECKING

from odradek.coordinators.groups.classic.subscription import CONSUMER_PROTOCOL_TYPE
from odradek.coordinators.groups.commands import Heartbeat, JoinGroup, LeaveGroup, LeavingMember, SyncGroup
from odradek.coordinators.groups.consumer import fencing, migrating, regexes, targeting
from odradek.coordinators.groups.consumer.draft import GroupDraft
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.heartbeating import check_room
from odradek.coordinators.groups.consumer.member import ClassicSession, ConsumerMember, MemberState
from odradek.coordinators.groups.consumer.reconciling import Owned
from odradek.coordinators.groups.consumer.records import member_record
from odradek.coordinators.groups.consumer.static_members import replace_static, validate_instance
from odradek.coordinators.groups.replies import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    LeaveGroupResponseMember,
    SyncGroupResponse,
)
from odradek.coordinators.shard import CoordinatorResult, Now
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire.consumer_protocol import Subscription, decode_subscription

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)


def join(shard: "GroupShard", group: ConsumerGroup, command: JoinGroup, now: Now) -> Paced[CoordinatorResult]:
    if shard.config.consumer_migration_policy == "disabled":
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member_id = command.member_id or command.new_member_id
    check_room(shard, group, member_id)
    yield from _check_protocols(group, command)
    instance_id = command.group_instance_id
    if not command.member_id and instance_id is None and command.known_member_required:
        return CoordinatorResult(
            JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        )
    subscription = _subscription(command)
    image = shard.image()
    draft = GroupDraft(group)
    yield 2 * FEW * len(subscription.topics)
    replaced = None if instance_id is None else group.static_member(instance_id)
    member = yield from _member(draft, command, member_id, replaced)
    updated = _updated(member, command, subscription)
    names_changed = updated.subscribed_topic_names != member.subscribed_topic_names
    if updated != member:
        yield from draft.add(member_record(group.group_id, updated))
    regex_change = yield from regexes.change(draft, member, updated)
    bump = names_changed or regex_change is not regexes.RegexChange.NONE
    if bump or not group.metadata_is_fresh:
        yield from targeting.update_group_epoch(shard, draft, bump, image)
    owned = migrating.partitions_by_id(subscription.owned_partitions, image)
    yield 2 * FEW * len(subscription.owned_partitions)
    if replaced is not None and _is_last(shard, group, replaced):
        return (yield from _downgrade(shard, draft, updated, owned, bump, now))
    yield from targeting.update_target(shard, draft, image, now)
    updated = yield from targeting.reconcile_member(draft, updated, bump, owned, image)
    result = CoordinatorResult(_joined(updated), draft.records)
    result.is_long = True

    def replayed(now: Now) -> Paced[CoordinatorResult]:
        converted = shard.consumer_group(command.group_id)
        # Topics may have changed between two steps: then the next heartbeat checks them again.
        converted.metadata_is_fresh = shard.image() is image
        yield from converted.collect_topics()
        joined = converted.members[member_id]
        shard.cancel_classic_join(converted, member_id)
        shard.start_consumer_session(converted, joined, now)
        shard.expect_classic_sync(converted, joined, now)
        return CoordinatorResult()

    result.then = replayed
    return result


def _check_protocols(group: ConsumerGroup, command: JoinGroup) -> Paced[None]:
    """All classic members must have a protocol in common, so that they could form a classic group."""
    common = frozenset([protocol.name for protocol in command.protocols])
    for member in group.members.values():
        if member.classic is not None:
            common &= frozenset([protocol.name for protocol in member.classic.protocols])
            yield 2
    if command.protocol_type != CONSUMER_PROTOCOL_TYPE or not common:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _subscription(command: JoinGroup) -> Subscription:
    try:
        return decode_subscription(command.protocols[0].metadata)
    except ProtocolError as e:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Malformed embedded consumer protocol in subscription deserialization.",
        ) from e


def _member(
    draft: GroupDraft, command: JoinGroup, member_id: str, replaced: ConsumerMember | None
) -> Paced[ConsumerMember]:
    instance_id = command.group_instance_id
    if instance_id is not None and command.member_id:
        return validate_instance(draft.group, member_id, instance_id)
    if replaced is not None:
        return (yield from replace_static(draft, replaced, member_id))
    return draft.group.members.get(member_id) or ConsumerMember(member_id)


def _updated(member: ConsumerMember, command: JoinGroup, subscription: Subscription) -> ConsumerMember:
    return member._replace(
        instance_id=command.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=command.client_id,
        client_host=command.client_host,
        classic=ClassicSession(command.session_timeout_ms, command.protocols),
    )


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0].name,
    )


def _is_last(shard: "GroupShard", group: ConsumerGroup, replaced: ConsumerMember) -> bool:
    """Whether the replaced static member is the last one that does not use the classic protocol."""
    return (
        group.all_classic_without(frozenset({replaced.member_id}))
        and shard.config.consumer_downgrades
        and len(group.members) <= shard.config.max_size
    )


def _downgrade(
    shard: "GroupShard",
    draft: GroupDraft,
    joining: ConsumerMember,
    owned: Owned,
    bumped: bool,
    now: Now,
) -> Paced[CoordinatorResult]:
    """Convert the group to a classic one. Its assignment stays valid unless the group epoch is newer."""
    group = draft.group
    is_stale = group.assignment_epoch < group.group_epoch
    if not is_stale:
        joining = yield from targeting.reconcile_member(draft, joining, bumped, owned, shard.image())
    result = CoordinatorResult(_joined(joining), draft.records + (yield from draft.group.tombstones()))
    reason = "group is downgraded with a stale assignment" if is_stale else None
    members = list(draft.group.members.values())
    yield from migrating.to_classic(shard, draft.group, members, result, reason, now)
    return result


# --- members that have joined -------------------------------------------------------------------------------


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicSession]:
    member = (
        group.member(member_id) if instance_id is None else validate_instance(group, member_id, instance_id)
    )
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
        )
    if member.member_epoch != generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def sync(shard: "GroupShard", group: ConsumerGroup, command: SyncGroup, now: Now) -> Paced[CoordinatorResult]:
    member, classic = _classic_member(
        group, command.member_id, command.group_instance_id, command.generation_id
    )
    chosen = classic.protocols[0]
    if command.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if command.protocol_name not in (None, chosen.name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_behind = group.assignment_epoch > member.member_epoch
    if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
        shard.expect_classic_join(group, member, now)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    shard.cancel_classic_sync(group, member.member_id)
    shard.start_consumer_session(group, member, now)
    assignment = migrating.classic_assignment(member.assigned, chosen.metadata, shard.image())
    yield 3 * FEW * len(member.assigned)
    return CoordinatorResult(
        SyncGroupResponse(
            protocol_type=command.protocol_type, protocol_name=command.protocol_name, assignment=assignment
        )
    )


def heartbeat(
    shard: "GroupShard", group: ConsumerGroup, command: Heartbeat, now: Now
) -> Paced[CoordinatorResult]:
    member, _ = _classic_member(group, command.member_id, command.group_instance_id, command.generation_id)
    shard.start_consumer_session(group, member, now)
    is_unreleased = member.state is MemberState.UNRELEASED_PARTITIONS
    can_get_more = is_unreleased and not (yield from group.waits_for_others(member))
    is_behind = member.member_epoch < group.assignment_epoch
    if is_behind or can_get_more or member.state is MemberState.UNREVOKED_PARTITIONS:
        shard.expect_classic_join(group, member, now)
        return CoordinatorResult(HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS))
    return CoordinatorResult(HeartbeatResponse())


def leave(
    shard: "GroupShard", group: ConsumerGroup, command: LeaveGroup, now: Now
) -> Paced[CoordinatorResult]:
    """Remove members, of either protocol."""
    answers, gone = [], []
    for leaving in command.members:
        code = ErrorCode.NONE
        try:
            gone.append(_leaving(group, leaving))
        except KafkaError as e:
            code = e.code
        answers.append(LeaveGroupResponseMember(leaving.member_id, leaving.group_instance_id, code))
        yield 2 * STEP
    return (yield from fencing.fence(shard, group, gone, LeaveGroupResponse(members=answers), now))


def _leaving(group: ConsumerGroup, leaving: LeavingMember) -> ConsumerMember:
    _log.info(
        "Member %r leaves consumer group %r by LeaveGroup; client reason: %r",
        leaving.member_id or leaving.group_instance_id,
        group.group_id,
        leaving.reason or "not provided",
    )
    if leaving.group_instance_id is None:
        return group.member(leaving.member_id)
    member = group.static_member(leaving.group_instance_id)
    if member is None or leaving.member_id:
        return validate_instance(group, leaving.member_id, leaving.group_instance_id)
    return member
