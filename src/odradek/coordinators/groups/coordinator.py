"""The group coordinator of a node: passes commands to the shard of a group, and turns refusals into answers.

It is independent of protocol versions: `broker/handlers` turns requests into commands. A refusal is an answer
with Kafka's error code, not an exception.
"""

import asyncio
import logging
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, TypeVar

from odradek.coordinators.errors import TOO_LARGE, coordinator_error
from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.config import GroupConfig
from odradek.coordinators.groups.log_format import decode, decode_in_slices, encode, encode_in_slices
from odradek.coordinators.groups.replies import (
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    DescribedGroup,
    FetchedTopic,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    ListedGroup,
    SyncGroupResponse,
)
from odradek.coordinators.groups.shard import GroupShard
from odradek.coordinators.host import CoordinatorHost
from odradek.coordinators.shard import RecordFormat
from odradek.coordinators.slot import PartitionLog
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import GROUP_METADATA_TOPIC, coordinator_partition, uuid_to_text
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.runtime.api import Clock
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Paced, Slices

_log = logging.getLogger(__name__)

T = TypeVar("T")

NONE = ErrorCode.NONE


class GroupCoordinator:
    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        rng: random.Random,
        partition_count: Callable[[], int],
        image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE,
        slices: Slices | None = None,
    ) -> None:
        """`partition_count` is the number of partitions that `__consumer_offsets` has or will have."""
        self.config = config
        self.host = CoordinatorHost(
            GROUP_METADATA_TOPIC,
            lambda _: GroupShard(self.config, image),
            RecordFormat(encode, decode, encode_in_slices, decode_in_slices),
            clock,
            commit_timeout_ms=config.offsets_commit_timeout_ms,
            load_buffer_bytes=config.offsets_load_buffer_bytes,
            slices=slices,
        )
        self._rng = rng
        self._image = image
        self._partition_count = partition_count
        self._scope = Scope(
            lambda error: _log.error("A background task of the group coordinator failed", exc_info=error)
        )

    @property
    def serves_consumer_groups(self) -> bool:
        """Whether the cluster's features and this node's settings allow the consumer protocol (KIP-848)."""
        return self.config.consumer_protocol and self._image().group_version >= 1

    # --- life -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to remove expired offsets."""
        self._scope.spawn(self._sweep(), name="expire offsets")

    async def close(self) -> None:
        await self._scope.close()
        await self.host.close()

    def on_elected(self, partition_index: int, partition_log: PartitionLog) -> None:
        self.host.on_elected(partition_index, partition_log)

    def on_resigned(self, partition_index: int) -> None:
        self.host.on_resigned(partition_index)

    def on_topics_deleted(self, topics: Mapping[str, uuid.UUID]) -> None:
        """Remove the offsets of deleted topics."""
        self._scope.spawn(self._everywhere(c.ForgetTopics(topics)), name="forget offsets of deleted topics")

    def on_topics_changed(self, names: Set[str], *, has_new: bool) -> Paced[None]:
        """Groups that read these topics compute a new assignment, and regular expressions may match new
        topics."""
        for shard in list(self.host.all_shards()):
            assert isinstance(shard, GroupShard)
            yield from shard.topics_changed(names, has_new=has_new)

    def reconfigure(self, config: GroupConfig) -> None:
        """Apply settings that changed at run time."""
        self.config = config
        for shard in self.host.all_shards():
            assert isinstance(shard, GroupShard)
            shard.reconfigure(config)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self.config.offsets_retention_check_interval_ms / 1000)
            await self._everywhere(c.ExpireOffsets())

    async def _everywhere(self, command: Any) -> None:
        for partition_index in self.host.partitions:
            try:
                removed = await self.host.submit(partition_index, command)
            except KafkaError as e:
                _log.warning(
                    "%s on %s-%d: %s",
                    type(command).__name__,
                    GROUP_METADATA_TOPIC,
                    partition_index,
                    e.code.name,
                )
                continue
            if removed:
                _log.info("Wrote %d tombstones to %s-%d", removed, GROUP_METADATA_TOPIC, partition_index)

    # --- lookups --------------------------------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        return coordinator_partition(group_id, self._partition_count())

    def new_member_id(self, client_id: str, group_instance_id: str | None) -> str:
        name = client_id if group_instance_id is None else group_instance_id
        return f"{name}-{uuid.UUID(bytes=self._rng.randbytes(16), version=4)}"

    def new_consumer_id(self) -> str:
        """A random id in Kafka's text form of a Uuid, as its clients make it."""
        return uuid_to_text(uuid.UUID(bytes=self._rng.randbytes(16), version=4))

    def shards(self) -> Iterator[GroupShard]:
        """Every loaded shard, for reading only."""
        for shard in self.host.shards():
            assert isinstance(shard, GroupShard)
            yield shard

    # --- members --------------------------------------------------------------------------------------

    def join_group(self, command: c.JoinGroup) -> Reply[JoinGroupResponse]:
        member_id = command.member_id
        if not command.group_id:
            return Reply(JoinGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID, member_id=member_id))
        allowed = range(self.config.min_session_timeout_ms, self.config.max_session_timeout_ms + 1)
        if command.session_timeout_ms not in allowed:
            return Reply(JoinGroupResponse(error_code=ErrorCode.INVALID_SESSION_TIMEOUT, member_id=member_id))
        return self._ask(
            command.group_id,
            command,
            lambda e: JoinGroupResponse(error_code=coordinator_error(e.code)),
        )

    def sync_group(self, command: c.SyncGroup) -> Reply[SyncGroupResponse]:
        if not command.group_id:
            return Reply(SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return self._ask(
            command.group_id, command, lambda e: SyncGroupResponse(error_code=coordinator_error(e.code))
        )

    def heartbeat(self, command: c.Heartbeat) -> Reply[HeartbeatResponse]:
        if not command.group_id:
            return Reply(HeartbeatResponse(ErrorCode.INVALID_GROUP_ID))
        return self._ask(command.group_id, command, _failed_heartbeat)

    def leave_group(self, command: c.LeaveGroup) -> Reply[LeaveGroupResponse]:
        """The whole answer is UNKNOWN_MEMBER_ID if the group does not exist."""
        if not command.group_id:
            return Reply(LeaveGroupResponse(ErrorCode.INVALID_GROUP_ID))
        return self._ask(command.group_id, command, lambda e: LeaveGroupResponse(coordinator_error(e.code)))

    def consumer_heartbeat(self, command: c.ConsumerHeartbeat) -> Reply[ConsumerGroupHeartbeatResponse]:
        if command.server_assignor not in (None, *self.config.consumer_assignors):
            supported = ", ".join(self.config.consumer_assignors)
            refused = ConsumerGroupHeartbeatResponse(
                error_code=ErrorCode.UNSUPPORTED_ASSIGNOR,
                error_message=f"ServerAssignor {command.server_assignor} is not supported. Supported "
                f"assignors: {supported}.",
            )
            return Reply(refused)
        return self._ask(command.group_id, command, _failed_consumer_heartbeat)

    # --- offsets --------------------------------------------------------------------------------------

    def commit_offsets(self, command: c.CommitOffsets) -> Reply[list[int]]:
        """One error code per offset, in order."""

        def failed(error: KafkaError) -> list[int]:
            code = coordinator_error(error.code)
            if error.code in TOO_LARGE:
                code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
            return [code] * len(command.offsets)

        return self._ask(command.group_id, command, failed)

    def fetch_offsets(self, command: c.FetchOffsets) -> Reply[list[FetchedTopic] | ErrorCode]:
        """The requested offsets, or one error for the group."""
        return self._ask(command.group_id, command, lambda e: coordinator_error(e.code))

    def delete_offsets(self, command: c.DeleteOffsets) -> Reply[list[list[int]] | ErrorCode]:
        """A list of error codes per topic, or one error for the request."""
        if not command.group_id:
            return Reply(ErrorCode.INVALID_GROUP_ID)
        return self._ask(command.group_id, command, lambda e: coordinator_error(e.code))

    # --- administration -------------------------------------------------------------------------------

    async def list_groups(self, command: c.ListGroups) -> list[ListedGroup] | ErrorCode:
        """The groups of all shards of this node. An error while a shard is loading: the list would be
        incomplete."""
        found: list[ListedGroup] = []
        for partition_index in self.host.partitions:
            try:
                found += await self.host.submit(partition_index, command)
            except KafkaError as e:
                code = coordinator_error(e.code)
                if code is not ErrorCode.NOT_COORDINATOR:
                    return code
        return found

    def describe_group(self, group_id: str) -> Reply[DescribedGroup]:
        """An unknown group has state Dead, GROUP_ID_NOT_FOUND and a message."""

        def failed(error: KafkaError) -> DescribedGroup:
            not_found = error.code is ErrorCode.GROUP_ID_NOT_FOUND
            return DescribedGroup(
                group_id=group_id,
                error_code=coordinator_error(error.code),
                error_message=error.message if not_found else None,
                group_state=GroupState.DEAD.value if not_found else "",
            )

        return self._ask(group_id, c.DescribeGroup(group_id), failed)

    def describe_consumer_group(self, group_id: str) -> Reply[DescribedConsumerGroup]:
        def failed(error: KafkaError) -> DescribedConsumerGroup:
            code = coordinator_error(error.code)
            return DescribedConsumerGroup(group_id=group_id, error_code=code, error_message=error.message)

        if not group_id:
            return Reply(DescribedConsumerGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID))
        return self._ask(group_id, c.DescribeConsumerGroup(group_id), failed)

    def delete_group(self, group_id: str) -> Reply[ErrorCode]:
        return self._ask(group_id, c.DeleteGroup(group_id), lambda e: coordinator_error(e.code))

    # --- asking ---------------------------------------------------------------------------------------

    def _ask(self, group_id: str, command: Any, failed: Callable[[KafkaError], T]) -> Reply[T]:
        return self.host.submit(self.partition_for(group_id), command).otherwise(failed)


def _failed_heartbeat(error: KafkaError) -> HeartbeatResponse:
    """While the group is loading, the member counts as alive."""
    code = coordinator_error(error.code)
    return HeartbeatResponse(NONE if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code)


def _failed_consumer_heartbeat(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=coordinator_error(error.code), error_message=error.message
    )
