"""A shard without a host: appends to a list, replays at once, keeps time by hand. The shard is real."""

from collections.abc import Callable
from typing import Any

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.config import GroupConfig
from odradek.coordinators.groups.log_format import decode, decode_in_slices, encode, encode_in_slices
from odradek.coordinators.groups.replies import JoinGroupResponse, SyncGroupResponse
from odradek.coordinators.groups.shard import GroupShard
from odradek.coordinators.shard import CoordinatorResult, Now, Record
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_PRODUCER_ID, ZERO_UUID
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.runtime.slices import at_once

START_MS = 1_700_000_000_000


def subscription(*topics: str) -> bytes:
    """A consumer's subscription to topics, version 0."""
    body = b"".join(len(t).to_bytes(2, "big") + t.encode() for t in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + body + b"\xff\xff\xff\xff"


RANGE = (c.MemberProtocol("range", subscription("t")),)


class Harness:
    """Give commands to `handle`; what waits is in `waiting`, what was answered later in `answers`."""

    def __init__(self, **config: Any) -> None:
        config.setdefault("initial_rebalance_delay_ms", 0)
        self.config = GroupConfig(**config)
        self.image = EMPTY_IMAGE
        self.shard = GroupShard(self.config, lambda: self.image)
        self.log: list[Record] = []
        self.now = Now(START_MS, 5_000)
        self.answers: dict[int, Any] = {}
        self.tickets = 0
        self.ids = 0
        self.append_error: KafkaError | None = None
        self.run(at_once(self.shard.activate(self.now)), None)

    def handle(self, command: Any) -> Any:
        """The response, or None when the command waits; then its ticket is `self.tickets`."""
        self.tickets += 1
        ticket = self.tickets
        outcome = self.shard.handle(command, ticket, self.now)
        result = outcome if isinstance(outcome, CoordinatorResult) else at_once(outcome)
        answer = self.run(result, ticket)
        self.check()
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def run(self, result: CoordinatorResult, ticket: int | None) -> Any:
        answer: Any = None
        while True:
            follow: Any = result.then
            if result.response is not None:
                answer = result.response
            if result.records and self.append_error is not None:
                answer = self.append_error
                failed = result.failed
                follow = None if failed is None else lambda now, failed=failed: failed(self.append_error, now)
            else:
                for key, value in result.records:
                    self.append(key, value)
            for waiting, reply in result.replies:
                if waiting == ticket:
                    answer = reply
                else:
                    assert waiting not in self.answers, "a request is answered once"
                    self.answers[waiting] = reply
            if follow is None:
                return answer
            try:
                followed = follow(self.now)
                result = followed if isinstance(followed, CoordinatorResult) else at_once(followed)
            except KafkaError as e:
                return e

    def append(self, key: Any, value: Any, producer_id: int = NO_PRODUCER_ID) -> None:
        encoded = encode((key, value))
        assert decode(*encoded) == (key, value), "a record survives its bytes"
        assert at_once(encode_in_slices((key, value))) == encoded, "in slices it is the same"
        assert encoded[1] is None or at_once(decode_in_slices(*encoded)) == (key, value)
        self.log.append((key, value))
        replay(self.shard, key, value, len(self.log) - 1, producer_id)

    def advance(self, ms: int) -> None:
        """Let time pass, firing timers one by one at their own time."""
        end_ms = self.now.steady_ms + ms
        while (deadline_ms := self.shard.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self._move(max(deadline_ms, self.now.steady_ms))
            while (outcome := self.shard.tick(self.now)) is not None:
                self.run(at_once(outcome), None)
                self.check()
        self._move(end_ms)

    def _move(self, steady_ms: int) -> None:
        self.now = Now(self.now.wall_ms + steady_ms - self.now.steady_ms, steady_ms)

    def reload(self) -> None:
        """The leadership moves away and back: nothing but the log survives."""
        self.shard = replayed(self.log, self.config, lambda: self.image)
        self.run(at_once(self.shard.activate(self.now)), None)
        self.check()

    def check(self) -> None:
        for group in self.shard.groups.values():
            if isinstance(group, ClassicGroup):
                group.check()

    # --- shorthands -----------------------------------------------------------------------------------

    def group(self, group_id: str = "g") -> ClassicGroup:
        group = self.shard.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def join_command(self, group_id: str = "g", **fields: Any) -> c.JoinGroup:
        self.ids += 1
        defaults: dict[str, Any] = {
            "member_id": "",
            "group_instance_id": None,
            "client_id": "client",
            "client_host": "/127.0.0.1",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": RANGE,
            "new_member_id": f"member-{self.ids}",
            "known_member_required": False,
            "can_skip_assignment": True,
        }
        return c.JoinGroup(group_id=group_id, **{**defaults, **fields})

    def join(self, group_id: str = "g", **fields: Any) -> JoinGroupResponse | None:
        answer = self.handle(self.join_command(group_id, **fields))
        assert answer is None or isinstance(answer, JoinGroupResponse)
        return answer

    def sync(self, member_id: str, generation_id: int, group_id: str = "g", **fields: Any) -> Any:
        defaults: dict[str, Any] = {
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": (),
        }
        command = c.SyncGroup(
            group_id=group_id,
            member_id=member_id,
            generation_id=generation_id,
            **{**defaults, **fields},
        )
        return self.handle(command)

    def heartbeat(
        self, member_id: str, generation_id: int, group_id: str = "g", instance: str | None = None
    ) -> int:
        return self.code(c.Heartbeat(group_id, member_id, instance, generation_id))

    def leave(self, *members: str | c.LeavingMember, group_id: str = "g") -> list[int]:
        leaving = [m if isinstance(m, c.LeavingMember) else c.LeavingMember(m, None) for m in members]
        return [m.error_code for m in self.handle(c.LeaveGroup(group_id, leaving)).members]

    def code(self, command: Any) -> int:
        """The error code, raised or answered."""
        try:
            answer = self.handle(command)
        except KafkaError as e:
            return e.code
        return int(getattr(answer, "error_code", ErrorCode.NONE))

    def commit(
        self,
        offset: int,
        member_id: str = "",
        generation_id: int = -1,
        group_id: str = "g",
        topic: str = "t",
        partition: int = 0,
        **fields: Any,
    ) -> int:
        """Commit one offset; its error code, or the one of the whole."""
        wanted = c.OffsetToCommit(topic, ZERO_UUID, partition, offset, -1, fields.pop("metadata", ""))
        instance = fields.pop("instance", None)
        command = c.CommitOffsets(group_id, member_id, instance, generation_id, [wanted], **fields)
        try:
            (code,) = self.handle(command)
        except KafkaError as e:
            return e.code
        return int(code)

    def committed(self, group_id: str = "g", topic: str = "t", partition: int = 0) -> int:
        wanted = [c.WantedTopic(topic, ZERO_UUID, [partition])]
        (answer,) = self.handle(c.FetchOffsets(group_id, wanted, False))
        (row,) = answer.partitions
        assert row.error_code == ErrorCode.NONE
        return int(row.committed_offset)

    def stable(self, members: int = 1, group_id: str = "g", **fields: Any) -> list[str]:
        """A group of so many members in a stable generation; their ids, the leader first."""
        tickets = []
        for _ in range(members):
            assert self.join(group_id, **fields) is None
            tickets.append(self.tickets)
        self.advance(self.config.initial_rebalance_delay_ms)
        ids = [self.answers[ticket].member_id for ticket in tickets]
        group = self.group(group_id)
        assert group.leader_id == ids[0]
        for member_id in ids[1:]:
            assert self.sync(member_id, group.generation_id, group_id, protocol_type=None) is None
        given = [(member_id, f"for {member_id}".encode()) for member_id in ids]
        answer = self.sync(ids[0], group.generation_id, group_id, protocol_type=None, assignments=given)
        assert isinstance(answer, SyncGroupResponse)
        assert answer.error_code == ErrorCode.NONE
        return ids


def replayed(
    log: list[Record], config: GroupConfig, image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE
) -> GroupShard:
    shard = GroupShard(config, image)
    for offset, (key, value) in enumerate(log):
        replay(shard, key, value, offset)
    return shard


def replay(shard: GroupShard, key: Any, value: Any, offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
    """Apply one record, to the end."""
    steps = shard.replay(key, value, offset, producer_id)
    if steps is not None:
        at_once(steps)
