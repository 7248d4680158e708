"""Static members of a consumer group: checks instance ids, and replaces a member with its next
incarnation."""

from odradek.coordinators.groups.consumer.draft import GroupDraft
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.member import ConsumerMember
from odradek.coordinators.groups.consumer.records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import Paced


def validate_instance(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """Raises UNKNOWN_MEMBER_ID for an unknown instance id, FENCED_INSTANCE_ID if another member has it."""
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def replace_static(draft: GroupDraft, old: ConsumerMember, member_id: str) -> Paced[ConsumerMember]:
    """The next incarnation takes over the current and target assignment under its own member id."""
    group_id, target = draft.group.group_id, draft.group.target(old.member_id)
    successor = old._replace(member_id=member_id, member_epoch=0, previous_member_epoch=0)
    yield from draft.extend(member_tombstones(group_id, old.member_id))
    yield from draft.add(
        member_record(group_id, successor),
        (yield from target_record(group_id, member_id, target)),
        (yield from current_record(group_id, successor)),
    )
    return successor
