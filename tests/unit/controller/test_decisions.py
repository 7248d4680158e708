"""Decisions come one after the other, and brokers before clients, the short before the long."""

import asyncio

import pytest

from odradek.controller.decisions import Decisions, Rank, rank_of
from odradek.controller.metrics import ControllerMetrics
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import Paced, Slices
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types


def small_slices() -> Slices:
    return Slices(slice_calls=10, short_calls=5)


def deciding(name: str, steps: int, seen: list[str]) -> Paced[str]:
    for _ in range(steps):
        seen.append(name)
        yield 5
    return name


def test_a_short_decision_is_made_where_it_begins() -> None:
    async def story() -> None:
        metrics, seen = ControllerMetrics(), list[str]()
        reply = Decisions(small_slices(), metrics).run(lambda: deciding("short", 0, seen), Rank.SHORT)
        assert reply.is_ready and reply.value == "short"
        assert metrics.queue.count == metrics.processing.count == 1

    asyncio.run(story())


def test_the_time_that_a_decision_waits_and_takes_is_counted() -> None:
    async def story() -> None:
        metrics, seen = ControllerMetrics(), list[str]()
        decisions = Decisions(small_slices(), metrics)
        replies = [
            decisions.run(lambda name=name: deciding(name, 8, seen), Rank.LONG)  # type: ignore[misc]
            for name in ("a", "b")
        ]
        assert metrics.queue.count == 1 and metrics.processing.count == 0
        for reply in replies:
            await reply
        assert metrics.queue.count == metrics.processing.count == 2
        assert 0 < metrics.queue.total_us < metrics.processing.total_us

    asyncio.run(story())


def test_short_calls_go_ahead_of_long_ones_and_brokers_ahead_of_all() -> None:
    async def story() -> None:
        seen: list[str] = []
        decisions = Decisions(small_slices())
        replies = [
            decisions.run(lambda name=name: deciding(name, 4, seen), rank)  # type: ignore[misc]
            for name, rank in (
                ("first", Rank.LONG),
                ("long", Rank.LONG),
                ("short", Rank.SHORT),
                ("tick", Rank.TICK),
                ("heartbeat", Rank.BROKER),
            )
        ]
        assert not any(reply.is_ready for reply in replies)
        for reply in replies:
            await reply
        order = ["first", "heartbeat", "tick", "short", "long"]
        assert seen == [name for name in order for _ in range(4)], "one after the other, to the end"

    asyncio.run(story())


def test_what_comes_while_others_wait_does_not_overtake_its_betters() -> None:
    async def story() -> None:
        seen: list[str] = []
        decisions = Decisions(small_slices())
        first = decisions.run(lambda: deciding("first", 3, seen), Rank.LONG)
        heartbeat = decisions.run(lambda: deciding("heartbeat", 1, seen), Rank.BROKER)
        late = first.then(lambda _: decisions.run(lambda: deciding("late", 1, seen), Rank.SHORT))
        await (await late)
        await heartbeat
        assert seen == ["first"] * 3 + ["heartbeat", "late"]

    asyncio.run(story())


def test_a_decision_goes_on_when_whoever_asked_is_gone_and_one_that_failed_lets_the_next_begin() -> None:
    async def story() -> None:
        seen: list[str] = []
        decisions = Decisions(small_slices())

        def failing() -> Paced[None]:
            yield 50
            raise KafkaError(ErrorCode.INVALID_REQUEST)

        async def ask(name: str) -> None:
            await decisions.run(lambda: deciding(name, 5, seen), Rank.LONG)

        gone = asyncio.ensure_future(ask("gone"))
        await asyncio.sleep(0)
        gone.cancel()
        never = asyncio.ensure_future(ask("never begun"))
        await asyncio.sleep(0)
        never.cancel()
        failed = decisions.run(failing, Rank.LONG)
        last = decisions.run(lambda: deciding("last", 1, seen), Rank.LONG)
        with pytest.raises(KafkaError):
            await failed
        assert await last == "last"
        assert seen == ["gone"] * 5 + ["last"]

    asyncio.run(story())


def test_at_the_end_what_has_begun_is_finished_and_who_waits_is_refused() -> None:
    async def story() -> None:
        seen: list[str] = []
        decisions = Decisions(small_slices())
        begun = decisions.run(lambda: deciding("begun", 9, seen), Rank.LONG)
        waiting = decisions.run(lambda: deciding("waiting", 1, seen), Rank.SHORT)
        await decisions.close()
        assert seen == ["begun"] * 9
        assert await begun == "begun"
        for refused in (waiting, decisions.run(lambda: deciding("late", 1, seen), Rank.BROKER)):
            with pytest.raises(KafkaError) as e:
                await refused
            assert e.value.code is ErrorCode.NOT_CONTROLLER

    asyncio.run(story())


def test_the_rank_of_a_request_is_by_its_entries() -> None:
    types = request_types(ApiKey.CREATE_TOPICS)

    def creating(topics: int, partitions: int) -> Rank:
        made = [
            types.CreatableTopic(name=f"t{i}", num_partitions=partitions, assignments=[], configs=[])
            for i in range(topics)
        ]
        return rank_of(ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=made))

    assert creating(1, 3) is creating(1, -1) is Rank.SHORT
    assert creating(1, 10_000) is creating(100, 1) is Rank.LONG
    heartbeat = request_types(ApiKey.BROKER_HEARTBEAT).BrokerHeartbeatRequest()
    assert rank_of(ApiKey.BROKER_HEARTBEAT, heartbeat) is Rank.BROKER
