"""GroupShard: the groups and offsets of one partition of `__consumer_offsets`. Commands in, results out.

Each command has its own file. This file has their common state, its timers, and `replay`, the only place that
changes replicated state.
"""

from collections.abc import Callable, Set
from typing import Any, NamedTuple

from odradek.coordinators.groups import admin, commands
from odradek.coordinators.groups.classic import joining, leaving, rebalance, syncing
from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.member import ClassicGroupMember
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.config import GroupConfig
from odradek.coordinators.groups.consumer import describing as consumer_admin
from odradek.coordinators.groups.consumer import fencing, heartbeating
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.member import LEFT_FOR_A_WHILE, ConsumerMember, MemberState
from odradek.coordinators.groups.consumer.topic_hashes import TopicHashes
from odradek.coordinators.groups.group_settings import GroupSettings
from odradek.coordinators.groups.log_format import ModernKey
from odradek.coordinators.groups.modern import ModernGroup
from odradek.coordinators.groups.offsets import committing
from odradek.coordinators.groups.offsets.offsets import CommittedOffset, OffsetStore
from odradek.coordinators.records import (
    ConsumerGroupMemberMetadataKey,
    CoordinatorKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.coordinators.timers import Timers
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.runtime.slices import FEW, STEP, Paced, gathered

Group = ClassicGroup | ConsumerGroup | ModernGroup
Handler = Callable[["GroupShard", Any, Ticket, Now], CoordinatorResult | Paced[CoordinatorResult]]

_HANDLERS: dict[type, Handler] = {
    commands.JoinGroup: joining.join,
    commands.SyncGroup: syncing.sync,
    commands.Heartbeat: syncing.heartbeat,
    commands.LeaveGroup: leaving.leave,
    commands.CommitOffsets: committing.commit,
    commands.FetchOffsets: committing.fetch,
    commands.DeleteOffsets: committing.delete,
    commands.ListGroups: admin.list_groups,
    commands.DescribeGroup: admin.describe,
    commands.DeleteGroup: admin.delete,
    commands.ExpireOffsets: admin.expire,
    commands.ForgetTopics: admin.forget_topics,
    commands.ConsumerHeartbeat: heartbeating.heartbeat,
    commands.DescribeConsumerGroup: consumer_admin.describe,
}


class TimerKey(NamedTuple):
    """What a timer waits for: the heartbeat of a member, or the JoinGroups or SyncGroups of all members.

    In a consumer group every member has its own timers, and one for partitions that it must revoke
    (`rebalance`).
    """

    group_id: str
    member_id: str | None
    phase: str = "session"


class GroupShard:
    """Implements coordinators.shard.Shard."""

    __slots__ = (
        "config",
        "groups",
        "image",
        "is_active",
        "new_topics_version",
        "offsets",
        "settings",
        "timers",
        "topic_hashes",
    )

    def __init__(self, config: GroupConfig, image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE) -> None:
        """`image` returns the cluster's current metadata."""
        self.config = config
        self.image = image
        self.settings = GroupSettings(config, image)
        self.topic_hashes = TopicHashes()
        self.new_topics_version = image().offset
        """The metadata offset at which a topic was last created. Regular expressions resolved before it are
        stale."""
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.timers: Timers[TimerKey] = Timers()
        self.is_active = False

    def handle(self, command: Any, ticket: Ticket, now: Now) -> CoordinatorResult | Paced[CoordinatorResult]:
        assert self.is_active
        return _HANDLERS[type(command)](self, command, ticket, now)

    # --- replay ---------------------------------------------------------------------------------------

    def replay(self, key: Any, value: Any | None, offset: int, producer_id: int) -> Paced[None] | None:
        if isinstance(key, OffsetCommitKey):
            self._replay_offset(key, value, offset, producer_id)
            return None
        if isinstance(key, GroupMetadataKey):
            return gathered(self._replay_group(key.group, value))
        if isinstance(key, ModernKey):
            self._replay_modern(key, value)
            return None
        return gathered(self._replay_consumer(key, value))

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed)

    def _replay_offset(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer_id: int
    ) -> None:
        if value is None:
            self.offsets.remove(key.group, key.topic, key.partition)
            return
        if key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(key.group)  # a simple group: offsets, no members
        committed = CommittedOffset(
            key.partition,
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            offset,
        )
        self.offsets.put(producer_id, key.group, key.topic, key.partition, committed)

    def _replay_group(self, group_id: str, value: GroupMetadataValue | None) -> Paced[None]:
        yield 2 * STEP
        group = self.groups.get(group_id)
        if value is None:
            if isinstance(group, ClassicGroup):
                yield from self._drop(group)
            return
        if isinstance(group, ClassicGroup) and self.is_active:
            yield from group.adopt(value)
            return
        group = self.groups[group_id] = ClassicGroup(group_id)
        yield from group.hydrate(value)

    def _drop(self, group: ClassicGroup) -> Paced[None]:
        del self.groups[group.group_id]
        for member_id in (*group.members, *group.pending_join):
            self.end_session(group, member_id)
            yield FEW
        self.cancel_join(group)
        self.cancel_sync(group)
        group.transition(GroupState.DEAD, group.state_since_ms)

    def _replay_consumer(self, key: CoordinatorKey, value: Any | None) -> Paced[None]:
        group_id: str = key.group_id  # type: ignore[attr-defined]
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self.groups[group_id] = ConsumerGroup(group_id)
        yield from group.apply(key, value)
        if isinstance(key, ConsumerGroupMemberMetadataKey) and value is None:
            self._forget_member(group_id, key.member_id)
        if group.is_deleted:
            del self.groups[group_id]
            for member_id in group.members:
                self._forget_member(group_id, member_id)
                yield STEP // 2

    def _forget_member(self, group_id: str, member_id: str) -> None:
        for phase in ("session", "rebalance", "join", "sync"):
            self.timers.cancel(TimerKey(group_id, member_id, phase))

    def _replay_modern(self, key: ModernKey, value: bytes | None) -> None:
        group = self.groups.get(key.group)
        if not isinstance(group, ModernGroup):
            if value is None:
                return
            group = self.groups[key.group] = ModernGroup(key.group, key.record_type)
        group.apply(key, value)
        if not group.records:
            del self.groups[key.group]

    # --- time -----------------------------------------------------------------------------------------

    def activate(self, now: Now) -> Paced[CoordinatorResult]:
        """Every member gets a full session timeout. A group above the maximum size must rebalance."""
        self.is_active = True
        out = CoordinatorResult()
        for group in self.groups.values():
            yield FEW
            if isinstance(group, ConsumerGroup):
                yield from self.start_consumer_sessions(group, now)
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                self.start_session(group, member, now)
                yield 2 * FEW
            if len(group.members) > self.config.max_size:
                yield from rebalance.prepare(
                    self, group, out, now, f"freshly loaded, over {self.config.max_size} members"
                )
        return out

    def next_deadline_ms(self) -> int | None:
        return self.timers.next_deadline_ms()

    def tick(self, now: Now) -> Paced[CoordinatorResult] | None:
        key = self.timers.pop(now.steady_ms)
        if key is None:
            return None
        group = self.groups[key.group_id]
        if isinstance(group, ConsumerGroup):
            assert key.member_id is not None
            return fencing.time_is_up(self, group, key.member_id, key.phase, now)
        assert isinstance(group, ClassicGroup), "other groups have no timers"
        return self._time_is_up(group, key, now)

    def _time_is_up(self, group: ClassicGroup, key: TimerKey, now: Now) -> Paced[CoordinatorResult]:
        out = CoordinatorResult()
        if key.member_id is not None:
            yield from rebalance.session_is_over(self, group, key.member_id, out, now)
        elif key.phase == "join":
            yield from rebalance.join_time_is_up(self, group, out, now)
        else:
            yield from rebalance.sync_time_is_up(self, group, out, now)
        return out

    def reconfigure(self, config: GroupConfig) -> None:
        """Apply settings that changed at run time."""
        self.config = config
        self.settings = GroupSettings(config, self.image)

    def start_session(
        self, group: ClassicGroup, member: ClassicGroupMember, now: Now, timeout_ms: int | None = None
    ) -> None:
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.timers.schedule(TimerKey(group.group_id, member.member_id), now.steady_ms + timeout_ms)

    def expect_return(self, group: ClassicGroup, member_id: str, now: Now, timeout_ms: int) -> None:
        self.timers.schedule(TimerKey(group.group_id, member_id), now.steady_ms + timeout_ms)

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        self.timers.cancel(TimerKey(group.group_id, member_id))

    def schedule_join(self, group: ClassicGroup, now: Now, timeout_ms: int) -> None:
        self.timers.schedule(TimerKey(group.group_id, None, "join"), now.steady_ms + timeout_ms)

    def cancel_join(self, group: ClassicGroup) -> None:
        self.timers.cancel(TimerKey(group.group_id, None, "join"))

    def schedule_sync(self, group: ClassicGroup, now: Now, timeout_ms: int) -> None:
        self.timers.schedule(TimerKey(group.group_id, None, "sync"), now.steady_ms + timeout_ms)

    def cancel_sync(self, group: ClassicGroup) -> None:
        self.timers.cancel(TimerKey(group.group_id, None, "sync"))

    # --- consumer groups ------------------------------------------------------------------------------

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    def topics_changed(self, names: Set[str], *, has_new: bool) -> Paced[None]:
        """Topics were created, deleted or got partitions. Groups that read them check them at the next
        heartbeat."""
        self.topic_hashes.forget(names)
        if has_new:
            self.new_topics_version = self.image().offset
        for group in list(self.groups.values()):
            yield FEW
            if isinstance(group, ConsumerGroup):
                topics = group.topics_if_known
                if topics is None or not names.isdisjoint(topics):
                    group.metadata_is_fresh = False

    def start_consumer_sessions(self, group: ConsumerGroup, now: Now) -> Paced[None]:
        for member in group.members.values():
            self.start_consumer_session(group, member, now)
            self.watch_revocation(group, member, now)
            yield STEP

    def start_consumer_session(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        timeout_ms = self.settings.consumer_session_timeout_ms(group.group_id)
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        self.timers.schedule(TimerKey(group.group_id, member.member_id), now.steady_ms + timeout_ms)

    def watch_revocation(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        """A member must revoke partitions within its rebalance timeout."""
        if (
            member.state is MemberState.UNREVOKED_PARTITIONS
            and not member.uses_classic_protocol
            and member.member_epoch != LEFT_FOR_A_WHILE
        ):
            self._expect(group, member, "rebalance", now)
        else:
            self.forget_revocation(group, member.member_id)

    def forget_revocation(self, group: ConsumerGroup, member_id: str) -> None:
        self.timers.cancel(TimerKey(group.group_id, member_id, "rebalance"))

    def expect_classic_join(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        if TimerKey(group.group_id, member.member_id, "join") not in self.timers:
            self._expect(group, member, "join", now)

    def cancel_classic_join(self, group: ConsumerGroup, member_id: str) -> None:
        self.timers.cancel(TimerKey(group.group_id, member_id, "join"))

    def expect_classic_sync(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        self._expect(group, member, "sync", now)

    def cancel_classic_sync(self, group: ConsumerGroup, member_id: str) -> None:
        self.timers.cancel(TimerKey(group.group_id, member_id, "sync"))

    def _expect(self, group: ConsumerGroup, member: ConsumerMember, phase: str, now: Now) -> None:
        key = TimerKey(group.group_id, member.member_id, phase)
        self.timers.schedule(key, now.steady_ms + member.rebalance_timeout_ms)
