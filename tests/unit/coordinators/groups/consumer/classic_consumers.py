"""Members of the classic protocol beside consumers: a client that joins with what it owns, syncs, goes on."""

from typing import Any

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.replies import JoinGroupResponse, SyncGroupResponse
from odradek.core.errors import ErrorCode
from odradek.wire import consumer_protocol as wire
from tests.unit.coordinators.groups.consumers import ConsumerHarness, FakeConsumer


def subscription(*topics: str, owned: dict[str, list[int]] | None = None) -> bytes:
    rows = [wire.MemberPartitions(topic=t, partitions=tuple(p)) for t, p in (owned or {}).items()]
    return wire.encode_subscription(wire.Subscription(topics=topics, owned_partitions=rows))


def assignment(**topics: list[int]) -> bytes:
    rows = [wire.MemberPartitions(topic=t, partitions=tuple(p)) for t, p in topics.items()]
    return wire.encode_assignment(wire.Assignment(assigned_partitions=rows))


def assigned(answer: SyncGroupResponse) -> dict[str, list[int]]:
    found = wire.decode_assignment(answer.assignment)
    return {row.topic: list(row.partitions) for row in found.assigned_partitions}


class ClassicConsumer:
    """A cooperative member of the classic protocol: joins with what it owns, syncs, goes on."""

    def __init__(self, h: ConsumerHarness, member_id: str = "", **fields: Any) -> None:
        self.h, self.member_id, self.fields = h, member_id, fields
        self.generation = -1
        self.owned: dict[str, list[int]] = {}

    def join(self, *topics: str, **over: Any) -> JoinGroupResponse | None:
        protocols = (c.MemberProtocol("range", subscription(*(topics or ("t",)), owned=self.owned)),)
        answer = self.h.join(**{"member_id": self.member_id, "protocols": protocols, **self.fields, **over})
        return None if answer is None else self.joined(answer)

    def joined(self, answer: JoinGroupResponse) -> JoinGroupResponse:
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
        if answer.error_code == ErrorCode.NONE:
            self.generation = answer.generation_id
        return answer

    def sync(self, assignments: list[tuple[str, bytes]] | None = None) -> SyncGroupResponse:
        answer = self.h.sync(self.member_id, self.generation, assignments=assignments or [])
        assert isinstance(answer, SyncGroupResponse)
        if answer.error_code == ErrorCode.NONE:
            self.owned = assigned(answer)
        return answer

    def beat(self) -> ErrorCode:
        return ErrorCode(self.h.heartbeat(self.member_id, self.generation))

    def follow(self) -> None:
        """What a client does after a heartbeat: rejoin and sync when it is told to."""
        if self.beat() is ErrorCode.REBALANCE_IN_PROGRESS:
            answer = self.join()
            assert answer is not None
            assert answer.error_code == ErrorCode.NONE, answer
            self.sync()


def classic_group(h: ConsumerHarness, data: bytes = assignment(t=[0, 1]), **fields: Any) -> ClassicConsumer:
    """A stable classic group of one member that has partitions 0 and 1 of `t`, or what `data` says."""
    member = ClassicConsumer(h, **fields)
    answer = member.join()
    if answer is None:
        h.advance(0)
        answer = member.joined(h.answers[h.tickets])
    member.sync([(member.member_id, data)])
    assert h.group().state is GroupState.STABLE
    return member


def consumer_group_with_classic(h: ConsumerHarness, **fields: Any) -> tuple[FakeConsumer, ClassicConsumer]:
    """One member of each protocol, with a partition each."""
    h.topic("t", 2)
    new = h.member("a", "t").join()
    old = ClassicConsumer(h, member_id=fields.pop("member_id", "z"), **fields)
    answer = old.join()
    assert answer is not None
    assert answer.error_code == ErrorCode.NONE
    old.sync()
    for _ in range(4):
        new.beat()
        old.follow()
    assert (new.partitions, old.owned) == ([0], {"t": [1]})
    return new, old
