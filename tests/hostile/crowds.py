"""Groups of many members, on a few connections: how they join, sync, and ask again."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from odradek.wire.api_keys import ApiKey
from odradek.wire.consumer_protocol import (
    Assignment,
    MemberPartitions,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from odradek.wire.headers import encode_request, parse_response_header
from odradek.wire.messages import request_types, response_decoder
from tests.hostile.stage import Client
from tests.hostile.world import StagedWorld

CONNECTIONS = 6
SUBSCRIPTION = encode_subscription(Subscription(topics=["wide"]), 1)
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION = 3, 3, 1
SESSION_MS = 30_000


class Person(NamedTuple):
    """A member and where it speaks."""

    client: Client
    member_id: str


class Crowd:
    """Clients that ask as the many members of a group; each connection has many of them."""

    def __init__(self, world: StagedWorld, group: str, clients: Sequence[Client]) -> None:
        self.world = world
        self.group = group
        self.clients = clients
        self.generation_id = -1
        self.people: list[Person] = []
        self.leader_id = ""

    def ask(self, client: Client, api_key: ApiKey, version: int, name: str, **fields: Any) -> None:
        """Send a request, and do not wait."""
        message = getattr(request_types(api_key), name)(group_id=self.group, **fields)
        client.send(encode_request(api_key, version, 1, "crowd", message))

    def answers(self, client: Client, api_key: ApiKey, version: int, count: int) -> list[Any]:
        """So many answers on a connection, when they are there."""
        frames: list[bytes] = []

        def are_there() -> bool:
            while (frame := client.answer()) is not None:
                frames.append(frame)
            return len(frames) >= count

        self.world.stage.until(are_there)
        decode = response_decoder(api_key, version)
        found = []
        for frame in frames:
            _, position = parse_response_header(frame, 0, api_key, version)
            found.append(decode(frame, position)[0])
        assert len(found) == count
        return found

    # --- the classic protocol -------------------------------------------------------------------------

    def join(self, client: Client, member_id: str = "") -> None:
        types = request_types(ApiKey.JOIN_GROUP)
        self.ask(
            client,
            ApiKey.JOIN_GROUP,
            JOIN_VERSION,
            "JoinGroupRequest",
            session_timeout=SESSION_MS,
            rebalance_timeout=SESSION_MS,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[types.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )

    def joined(self, counts: dict[Client, int]) -> None:
        """Take the answers to so many JoinGroups on each connection: a generation has begun."""
        people = []
        for client, count in counts.items():
            for answer in self.answers(client, ApiKey.JOIN_GROUP, JOIN_VERSION, count):
                assert answer.error_code == 0, answer
                self.generation_id, self.leader_id = answer.generation_id, answer.leader
                people.append(Person(client, answer.member_id))
                if answer.member_id == answer.leader:
                    assert len(answer.members) == sum(counts.values())
        self.people = people

    def join_all(self, count: int) -> dict[Client, int]:
        """So many new members, who wait for the first generation."""
        counts = dict.fromkeys(self.clients, 0)
        for i in range(count):
            client = self.clients[i % len(self.clients)]
            counts[client] += 1
            self.join(client)
        self.world.stage.wait_until_idle()
        return counts

    def rejoin(self, people: Sequence[Person]) -> None:
        for person in people:
            self.join(person.client, person.member_id)
        self.world.stage.wait_until_idle()

    def counts(self) -> dict[Client, int]:
        counts = dict.fromkeys(self.clients, 0)
        for person in self.people:
            counts[person.client] += 1
        return counts

    @property
    def leader(self) -> Person:
        return next(person for person in self.people if person.member_id == self.leader_id)

    @property
    def followers(self) -> list[Person]:
        return [person for person in self.people if person.member_id != self.leader_id]

    def sync(self, person: Person, assignments: Sequence[tuple[str, bytes]] = ()) -> None:
        types = request_types(ApiKey.SYNC_GROUP)
        rows = [types.SyncGroupRequestAssignment(member_id=m, assignment=data) for m, data in assignments]
        self.ask(
            person.client,
            ApiKey.SYNC_GROUP,
            SYNC_VERSION,
            "SyncGroupRequest",
            generation_id=self.generation_id,
            member_id=person.member_id,
            assignments=rows,
        )

    def assign(self) -> None:
        """The leader hands in what everybody gets: a partition each."""
        assignments = []
        for i, person in enumerate(self.people):
            rows = [MemberPartitions(topic="wide", partitions=(i,))]
            assignment = encode_assignment(Assignment(assigned_partitions=rows), 1)
            assignments.append((person.member_id, assignment))
        self.sync(self.leader, assignments)

    def synced(self, code: int = 0) -> None:
        for client, count in self.counts().items():
            for answer in self.answers(client, ApiKey.SYNC_GROUP, SYNC_VERSION, count):
                assert answer.error_code == code, answer

    # --- the consumer protocol ------------------------------------------------------------------------

    def heartbeat(self, client: Client, member_id: str, epoch: int, **fields: Any) -> Any:
        self.ask(
            client,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            HEARTBEAT_VERSION,
            "ConsumerGroupHeartbeatRequest",
            member_id=member_id,
            member_epoch=epoch,
            **fields,
        )
        (answer,) = self.answers(client, ApiKey.CONSUMER_GROUP_HEARTBEAT, HEARTBEAT_VERSION, 1)
        assert answer.error_code == 0, answer
        return answer

    def subscribe(self, client: Client, member_id: str, *topics: str) -> int:
        """Join; the member's epoch."""
        answer = self.heartbeat(
            client,
            member_id,
            0,
            rebalance_timeout=SESSION_MS,
            subscribed_topic_names=list(topics),
            topic_partitions=[],
        )
        epoch: int = answer.member_epoch
        return epoch


@contextmanager
def crowd(world: StagedWorld) -> Iterator[Crowd]:
    """A group of its own."""
    with ExitStack() as stack:
        clients = [stack.enter_context(world.stage.client()) for _ in range(CONNECTIONS)]
        yield Crowd(world, world.fresh("crowd"), clients)
