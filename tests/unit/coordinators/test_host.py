"""The host: answers leave when they are committed, leadership comes and goes, time passes."""

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from odradek.coordinators.groups.log_format import decode, encode
from odradek.coordinators.host import REPLY_CALLS, CoordinatorHost
from odradek.coordinators.records import GroupMetadataKey
from odradek.coordinators.shard import CoordinatorResult, Now, RecordFormat
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.reply import Reply
from odradek.runtime.slices import SLICE_CALLS, Paced
from tests.unit.coordinators.fake_log import FakeLog


class Clock:
    def now_ms(self) -> int:
        return 1_700_000_000_000


class Put(NamedTuple):
    """Write a record; answered with its text."""

    text: str
    then: str | None = None
    atomic: bool = True


class LongPut(NamedTuple):
    """The same, known to take long."""

    text: str
    then: str | None = None
    atomic: bool = True
    is_long: bool = True


class Read(NamedTuple):
    """Answered with what was replayed."""


class Park(NamedTuple):
    """Waits until `Wake`."""


class Wake(NamedTuple):
    answer: str


class Refuse(NamedTuple):
    pass


class ToyShard:
    """Keeps the keys of its records. Enough of a shard to show what a host does with any."""

    def __init__(self) -> None:
        self.replayed: list[tuple[str, int]] = []
        self.parked: list[int] = []
        self.active = False
        self.deadline_ms: int | None = None
        self.ticks = 0
        self.tick_steps = 0
        self.failures: list[ErrorCode] = []

    def handle(self, command: Any, ticket: int, now: Now) -> CoordinatorResult:
        if isinstance(command, Put | LongPut):
            result = CoordinatorResult(
                command.text, [(group_key(t), None) for t in command.text.split(",")], atomic=command.atomic
            )
            result.failed = self.on_failed
            if command.then is not None:
                text = command.then
                result.response = None
                result.then = lambda now: CoordinatorResult(f"{text} after {len(self.replayed)}")
            return result
        if isinstance(command, Park):
            self.parked.append(ticket)
            return CoordinatorResult()
        if isinstance(command, Wake):
            result = CoordinatorResult("woke")
            result.replies = [(parked, command.answer) for parked in self.parked]
            self.parked = []
            return result
        if isinstance(command, Refuse):
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return CoordinatorResult([key for key, _ in self.replayed])

    def on_failed(self, error: KafkaError, now: Now) -> CoordinatorResult:
        self.failures.append(error.code)
        return CoordinatorResult()

    def replay(self, key: Any, value: Any, offset: int, producer_id: int) -> None:
        self.replayed.append((key.group, offset))

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        raise AssertionError

    def activate(self, now: Now) -> CoordinatorResult:
        self.active = True
        return CoordinatorResult()

    def tick(self, now: Now) -> CoordinatorResult | Paced[CoordinatorResult] | None:
        if self.deadline_ms is None or now.steady_ms < self.deadline_ms:
            return None
        self.deadline_ms = None
        return self._tick_in_steps() if self.tick_steps else self._tick()

    def _tick(self) -> CoordinatorResult:
        self.replayed.append((f"tick after {len(self.replayed)}", -1))
        self.ticks += 1
        return CoordinatorResult()

    def _tick_in_steps(self) -> Paced[CoordinatorResult]:
        for _ in range(self.tick_steps):
            yield SLICE_CALLS
        return self._tick()

    def next_deadline_ms(self) -> int | None:
        return self.deadline_ms


def group_key(text: str) -> Any:
    return GroupMetadataKey(group=text)


class Bench:
    def __init__(self, **options: Any) -> None:
        self.shards: list[ToyShard] = []
        self.host = CoordinatorHost(
            "__topic",
            self._new_shard,
            RecordFormat(encode, decode),
            Clock(),
            **{"commit_timeout_ms": 50, "load_buffer_bytes": 1_000, **options},
        )

    def _new_shard(self, leader_epoch: int) -> ToyShard:
        self.shards.append(ToyShard())
        return self.shards[-1]

    def ask(self, partition_index: int, command: Any) -> Any:
        """An answer that has to be there at once."""
        reply = self.host.submit(partition_index, command)
        assert reply.is_ready
        if reply.error is not None:
            raise reply.error
        return reply.value


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def answer(reply: Reply[Any]) -> Any:
    return await reply


async def turns(n: int = 5) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


def test_a_committed_answer_is_there_at_once() -> None:
    async def scenario() -> None:
        bench = Bench()
        log = FakeLog()
        bench.host.on_elected(0, log)
        assert bench.ask(0, Put("a,b")) == "a,b"
        assert bench.shards[0].replayed == [("a", 0), ("b", 1)]
        assert log.log_end_offset == 2
        await bench.host.close()

    run(scenario())


def test_an_answer_waits_for_the_high_watermark() -> None:
    async def scenario() -> None:
        bench = Bench(commit_timeout_ms=5_000)
        log = FakeLog(held=True)
        bench.host.on_elected(0, log)
        write = asyncio.ensure_future(bench.host.submit(0, Put("a")))
        assert bench.shards[0].replayed == [("a", 0)], "replayed at once"
        read = asyncio.ensure_future(bench.host.submit(0, Read()))
        await turns()
        assert not write.done()
        assert not read.done(), "a read must not tell what could still be lost"
        log.commit()
        assert await write == "a"
        assert await read == ["a"]
        assert bench.ask(0, Read()) == ["a"]
        await bench.host.close()

    run(scenario())


def test_a_wait_that_takes_too_long_ends_with_a_timeout() -> None:
    async def scenario() -> None:
        bench = Bench(commit_timeout_ms=10)
        bench.host.on_elected(0, FakeLog(held=True))
        with pytest.raises(KafkaError) as e:
            await bench.host.submit(0, Put("a"))
        assert e.value.code == ErrorCode.REQUEST_TIMED_OUT
        await bench.host.close()

    run(scenario())


def test_work_goes_on_once_its_records_are_replayed() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        assert bench.ask(0, Put("a,b", then="more")) == "more after 2"
        await bench.host.close()

    run(scenario())


def test_an_append_that_fails_changes_nothing() -> None:
    async def scenario() -> None:
        bench = Bench()
        log = FakeLog()
        bench.host.on_elected(0, log)
        log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        with pytest.raises(KafkaError) as e:
            bench.ask(0, Put("a"))
        assert e.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert bench.shards[0].replayed == []
        assert bench.shards[0].failures == [ErrorCode.NOT_ENOUGH_REPLICAS]
        await bench.host.close()

    run(scenario())


def test_a_refused_command_raises() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        with pytest.raises(KafkaError) as e:
            bench.ask(0, Refuse())
        assert e.value.code == ErrorCode.ILLEGAL_GENERATION
        await bench.host.close()

    run(scenario())


def test_what_need_not_stay_together_goes_in_batches() -> None:
    async def scenario() -> None:
        bench = Bench()
        log = FakeLog()
        bench.host.on_elected(0, log)
        text = ",".join("x" * 1_000 for _ in range(600))
        await bench.host.submit(0, Put(text, atomic=False))
        assert len(log.batches) == 3
        assert [offset for _, offset in bench.shards[0].replayed] == list(range(600))
        await bench.host.submit(0, Put(text))
        assert len(log.batches) == 4
        await bench.host.close()

    run(scenario())


def long_text(name: str) -> str:
    return ",".join(f"{name}{i}" for i in range(500))


def test_nobody_sees_a_shard_between_two_slices_of_a_command() -> None:
    async def scenario() -> None:
        bench = Bench()
        log = FakeLog()
        bench.host.on_elected(0, log)
        long = asyncio.ensure_future(bench.host.submit(0, Put(long_text("a"))))
        read = asyncio.ensure_future(bench.host.submit(0, Read()))
        await asyncio.sleep(0)
        assert not long.done() and not read.done()
        assert len(await read) == 500
        assert await long == long_text("a")
        assert len(log.batches) == 1, "one command, one batch"
        await bench.host.close()

    run(scenario())


def test_short_commands_go_ahead_of_long_ones_that_wait() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        ended: list[str] = []

        def submit(name: str, command: Any) -> None:
            bench.host.submit(0, command).when_ready(lambda _: ended.append(name))

        submit("first", Put(long_text("a")))
        submit("second", LongPut(long_text("b")))
        submit("third", LongPut(long_text("c")))
        submit("short", Put("d"))
        while len(ended) < 4:
            await asyncio.sleep(0)
        assert ended == ["first", "short", "second", "third"]
        keys = [key for key, _ in bench.shards[0].replayed]
        assert keys == [
            *long_text("a").split(","),
            "d",
            *long_text("b").split(","),
            *long_text("c").split(","),
        ]
        await bench.host.close()

    run(scenario())


def test_a_command_that_loses_its_leadership_between_two_slices_writes_nothing() -> None:
    async def scenario() -> None:
        bench = Bench()
        log = FakeLog()
        bench.host.on_elected(0, log)
        long = asyncio.ensure_future(bench.host.submit(0, Put(long_text("a"))))
        waiting = asyncio.ensure_future(bench.host.submit(0, Read()))
        bench.host.on_resigned(0)
        for reply in (long, waiting):
            with pytest.raises(KafkaError) as e:
                await reply
            assert e.value.code is ErrorCode.NOT_COORDINATOR
        assert log.batches == []
        await bench.host.close()

    run(scenario())


def test_what_is_too_large_for_one_batch_is_refused_before_it_is_built() -> None:
    async def scenario() -> None:
        bench = Bench()
        log = FakeLog()
        log.max_batch_bytes = 1_000
        bench.host.on_elected(0, log)
        with pytest.raises(KafkaError) as e:
            await bench.host.submit(0, Put(long_text("a")))
        assert e.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
        assert log.batches == [] and bench.ask(0, Read()) == []
        await bench.host.close()

    run(scenario())


def test_a_command_that_waits_is_answered_by_another() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        first = asyncio.ensure_future(bench.host.submit(0, Park()))
        second = asyncio.ensure_future(bench.host.submit(0, Park()))
        await turns()
        assert bench.ask(0, Wake("now")) == "woke"
        assert await first == "now"
        assert await second == "now"
        await bench.host.close()

    run(scenario())


def test_many_who_wait_are_answered_over_several_turns() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        parked = [asyncio.ensure_future(bench.host.submit(0, Park())) for _ in range(500)]
        await turns()
        wake = asyncio.ensure_future(bench.host.submit(0, Wake("now")))
        answered = []
        while not wake.done():
            await asyncio.sleep(0)
            answered.append(sum(future.done() for future in parked))
        await turns()
        most = max(after - before for before, after in pairwise(answered))
        assert most <= SLICE_CALLS / REPLY_CALLS + 1
        assert {await future for future in parked} == {"now"}
        await bench.host.close()

    run(scenario())


@pytest.mark.parametrize("held", [False, True])
def test_who_is_not_answered_yet_when_the_leadership_is_lost_is_sent_elsewhere(held: bool) -> None:
    async def scenario() -> None:
        bench = Bench(commit_timeout_ms=5_000)
        log = FakeLog(held=held)
        bench.host.on_elected(0, log)
        parked = [asyncio.ensure_future(bench.host.submit(0, Park())) for _ in range(500)]
        write = asyncio.ensure_future(bench.host.submit(0, Put("a")))
        await turns()
        wake = asyncio.ensure_future(bench.host.submit(0, Wake("now")))
        wake.add_done_callback(lambda done: done.exception())
        log.commit()
        while not any(future.done() for future in parked):
            await asyncio.sleep(0)
        before = sum(future.done() for future in parked)
        assert before < 500
        bench.host.on_resigned(0)
        outcomes = await asyncio.gather(*parked, return_exceptions=True)
        assert await write == "a"
        codes = [outcome.code for outcome in outcomes if isinstance(outcome, KafkaError)]
        assert set(codes) == {ErrorCode.NOT_COORDINATOR}
        assert outcomes.count("now") == 500 - len(codes) >= before
        await bench.host.close()

    run(scenario())


def test_replies_wait_for_the_high_watermark_too() -> None:
    async def scenario() -> None:
        bench = Bench(commit_timeout_ms=5_000)
        log = FakeLog(held=True)
        bench.host.on_elected(0, log)
        parked = asyncio.ensure_future(bench.host.submit(0, Park()))
        write = asyncio.ensure_future(bench.host.submit(0, Put("a")))
        wake = asyncio.ensure_future(bench.host.submit(0, Wake("now")))
        await turns()
        assert not parked.done()
        log.commit()
        assert (await parked, await write, await wake) == ("now", "a", "woke")
        await bench.host.close()

    run(scenario())


def test_a_client_that_is_gone_is_not_waited_for() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        parked = asyncio.ensure_future(bench.host.submit(0, Park()))
        await turns()
        parked.cancel()
        await turns()
        assert bench.ask(0, Wake("now")) == "woke"
        await bench.host.close()

    run(scenario())


def test_losing_the_leadership_sends_everybody_elsewhere() -> None:
    async def scenario() -> None:
        bench = Bench(commit_timeout_ms=5_000)
        log = FakeLog(held=True)
        bench.host.on_elected(3, log)
        parked = asyncio.ensure_future(bench.host.submit(3, Park()))
        write = asyncio.ensure_future(bench.host.submit(3, Put("a")))
        await turns()
        log.lose_leadership()
        bench.host.on_resigned(3)
        for future, code in [(parked, ErrorCode.NOT_COORDINATOR), (write, ErrorCode.NOT_LEADER_OR_FOLLOWER)]:
            with pytest.raises(KafkaError) as e:
                await future
            assert e.value.code == code
        with pytest.raises(KafkaError) as e:
            bench.ask(3, Read())
        assert e.value.code == ErrorCode.NOT_COORDINATOR
        await bench.host.close()

    run(scenario())


def test_an_election_loads_the_log_in_chunks_and_says_so_meanwhile() -> None:
    async def scenario() -> None:
        bench = Bench(load_buffer_bytes=300)
        log = FakeLog()
        bench.host.on_elected(0, log)
        for i in range(20):
            bench.ask(0, Put(f"record {i}"))
        bench.host.on_resigned(0)
        log.reads = 0
        bench.host.on_elected(0, log)
        with pytest.raises(KafkaError) as e:
            bench.ask(0, Read())
        assert e.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await turns(50)
        assert bench.ask(0, Read()) == [f"record {i}" for i in range(20)]
        assert log.reads > 5
        assert bench.shards[1].active
        await bench.host.close()

    run(scenario())


def test_what_is_loaded_is_told_when_it_is_committed() -> None:
    async def scenario() -> None:
        bench = Bench(commit_timeout_ms=5_000)
        log = FakeLog()
        bench.host.on_elected(0, log)
        bench.ask(0, Put("a"))
        log.high_watermark = 0
        bench.host.on_elected(0, log)
        await turns()
        read = asyncio.ensure_future(bench.host.submit(0, Read()))
        await turns()
        assert not read.done()
        log.commit()
        assert await read == ["a"]
        await bench.host.close()

    run(scenario())


def test_a_log_that_cannot_be_read_is_not_coordinated(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        bench = Bench()
        log = FakeLog()
        log.append_batch(b"\0" * 100, 1)
        log.read = lambda offset, max_bytes: b"\0" * 10  # type: ignore[method-assign]
        bench.host.on_elected(0, log)
        await turns()
        with pytest.raises(KafkaError) as e:
            bench.ask(0, Read())
        assert e.value.code == ErrorCode.NOT_COORDINATOR
        await bench.host.close()

    run(scenario())
    assert "Failed to load __topic-0" in caplog.text


def test_a_log_whose_last_records_were_compacted_away_is_loaded_to_its_end() -> None:
    async def scenario() -> None:
        bench = Bench()
        log = FakeLog()
        log.append_batch(b"\0" * 100, 1)
        log.commit()
        log.read = lambda offset, max_bytes: b""  # type: ignore[method-assign]
        bench.host.on_elected(0, log)
        await turns()
        assert bench.ask(0, Read()) == []
        await bench.host.close()

    run(scenario())


def test_a_resignation_during_the_load_ends_it() -> None:
    async def scenario() -> None:
        bench = Bench()
        log = FakeLog()
        bench.host.on_elected(0, log)
        bench.ask(0, Put("a"))
        bench.host.on_elected(0, log)
        bench.host.on_resigned(0)
        await turns()
        assert not bench.shards[1].active
        assert bench.host.partitions == []
        await bench.host.close()

    run(scenario())


def test_a_deadline_wakes_the_shard() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        shard = bench.shards[0]
        shard.deadline_ms = int(asyncio.get_running_loop().time() * 1000) + 20
        bench.ask(0, Read())
        while not shard.ticks:
            await asyncio.sleep(0.005)
        assert asyncio.get_running_loop().time() * 1000 >= shard.ticks
        await bench.host.close()

    run(scenario())


def test_after_a_stall_the_sockets_are_read_before_anybody_is_declared_dead() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        shard = bench.shards[0]
        loop = asyncio.get_running_loop()
        shard.deadline_ms = int(loop.time() * 1000) + 10
        bench.ask(0, Read())
        stall_until = loop.time() + 0.2
        while loop.time() < stall_until:
            pass
        await turns()
        assert shard.ticks == 0, "a heartbeat may be waiting in a socket"
        while not shard.ticks:
            await asyncio.sleep(0.01)
        await bench.host.close()

    run(scenario())


def test_nobody_sees_a_shard_between_two_slices_of_a_deadline() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        shard = bench.shards[0]
        shard.tick_steps = 5
        shard.deadline_ms = int(asyncio.get_running_loop().time() * 1000)
        bench.ask(0, Read())
        while shard.deadline_ms is not None:
            await asyncio.sleep(0)
        put = bench.host.submit(0, Put("a"))
        assert not put.is_ready and not shard.ticks
        await put
        assert [key for key, _ in shard.replayed] == ["tick after 0", "a"]
        await bench.host.close()

    run(scenario())


def test_deadlines_wait_for_commands_that_wait() -> None:
    """A heartbeat that came in time is not to be taken for silence."""

    async def scenario() -> None:
        bench = Bench()
        bench.host.on_elected(0, FakeLog())
        shard = bench.shards[0]
        long = asyncio.ensure_future(bench.host.submit(0, Put(long_text("a"))))
        waiting = [asyncio.ensure_future(bench.host.submit(0, Put(f"b{i}"))) for i in range(20)]
        shard.deadline_ms = int(asyncio.get_running_loop().time() * 1000)
        await asyncio.gather(long, *waiting)
        while not shard.ticks:
            await asyncio.sleep(0.005)
        keys = [key for key, _ in shard.replayed]
        assert keys == [
            *long_text("a").split(","),
            *(f"b{i}" for i in range(20)),
            f"tick after {len(keys) - 1}",
        ]
        await bench.host.close()

    run(scenario())
