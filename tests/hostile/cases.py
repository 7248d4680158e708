"""All served APIs in all shapes at their oldest and newest versions, each case some twenty slices long."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from odradek.broker.apis import REFUSED_BELOW, SERVED
from odradek.wire.api_keys import ApiKey
from tests.hostile.limits import CASE, LIMIT, LONGEST_MS, turn_limit
from tests.hostile.preparing import names_for
from tests.hostile.shapes import Shape, frame, shapes_of
from tests.hostile.work import Callback
from tests.hostile.world import Client, StagedWorld, World

FEW, MORE = 4, 24
MOST_BYTES = 128 << 10


class Case(NamedTuple):
    """A request of a shape. `given` are values of fields in place of the usual ones."""

    api_key: ApiKey
    version: int
    shape: Shape
    given: Mapping[str, Any] = MappingProxyType({})

    def __str__(self) -> str:
        return f"{self.api_key.name.lower()}-v{self.version}-{self.shape}"

    def frame(self, world: World, client: Client, count: int) -> bytes:
        """The request with so many entries, after what has to come before it."""
        names = names_for(world, client, self.api_key, self.version, self.shape.path, count, self.given)
        return frame(self.api_key, self.version, self.shape, count, names)

    def frame_of(self, world: World, client: Client, size: int) -> bytes:
        """The request with about so many bytes."""
        few, more = (len(self.frame(world, client, count)) for count in (FEW, MORE))
        return self.frame(world, client, max(int((size - few) * (MORE - FEW) / (more - few)), MORE))


class Measured(NamedTuple):
    """What a request took, from its first byte until the node had nothing left to do."""

    what: str
    request_bytes: int
    answer_bytes: int
    total: int
    busiest_turn: int
    worst: Callback
    longest: Callback
    busiest: str

    def __str__(self) -> str:
        return (
            f"{self.what}: {self.request_bytes:,} bytes, answered with {self.answer_bytes:,}; "
            f"{self.total:,} events in all, {self.busiest_turn:,} in one turn; "
            f"{self.longest.ms:.0f} ms in one callback ({self.longest.name})"
        )

    def check(self, connections: int = 1) -> None:
        """Fail where one callback, or one turn, did too much."""
        assert self.worst.events <= LIMIT, (
            f"{self.worst.name}: {self.worst.events:,} events in one callback, allowed {LIMIT:,}\n{self.more}"
        )
        assert self.busiest_turn <= turn_limit(connections), (
            f"{self.busiest_turn:,} events in one turn, allowed {turn_limit(connections):,}\n{self.more}"
        )
        assert self.longest.ms <= LONGEST_MS, str(self)

    @property
    def more(self) -> str:
        return f"{self}\nmost events were spent in\n{self.busiest}"


def all_cases() -> Iterator[Case]:
    for api_key, versions in SERVED.items():
        for version in sorted({max(versions.min, REFUSED_BELOW.get(api_key, 0)), versions.max}):
            for shape in shapes_of(api_key, version):
                yield Case(api_key, version, shape)


def newest_cases() -> Iterator[Case]:
    for case in all_cases():
        if case.version == SERVED[case.api_key].max:
            yield case


def ask(world: StagedWorld, case: Case, count: int) -> Measured:
    """Send a case with so many entries."""
    with world.stage.client() as client:
        sent = case.frame(world, client, count)
        return measure(world, f"{case} of {count:,} entries", sent)


def measure(world: StagedWorld, what: str, sent: bytes) -> Measured:
    """Send a frame on a connection of its own."""
    stage = world.stage
    with stage.client() as client, stage.work.counting():
        answer = stage.ask(client, sent)
        stage.wait_until_idle()
        return taken(world, what, len(sent), len(answer or b""))


def taken(world: StagedWorld, what: str, request_bytes: int = 0, answer_bytes: int = 0) -> Measured:
    """What was counted so far."""
    work = world.stage.work
    return Measured(
        what,
        request_bytes,
        answer_bytes,
        work.total,
        work.busiest_turn,
        work.worst,
        work.longest,
        work.busiest(),
    )


def twenty_slices(world: StagedWorld, case: Case) -> Measured:
    """A case so long that it takes twenty slices, as far as its bytes allow it."""
    if case[:2] not in world.warm:  # a handler and its codecs are made when they are first asked for
        ask(world, case, 1)
        world.warm.add(case[:2])
    few, more = ask(world, case, FEW), ask(world, case, MORE)
    each = max((more.total - few.total) / (MORE - FEW), 0.01)
    each_bytes = max((more.request_bytes - few.request_bytes) / (MORE - FEW), 1)
    count = min((CASE - few.total) / each, MOST_BYTES / each_bytes)
    return ask(world, case, max(int(count), MORE))
