"""Ready and pending replies behave in the same way."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.reply import Reply, start

REFUSED = KafkaError(ErrorCode.NOT_COORDINATOR)


def ready(value: Any) -> Reply[Any]:
    return Reply.failed(value) if isinstance(value, Exception) else Reply(value)


def to_come(value: Any) -> Reply[Any]:
    future = asyncio.get_running_loop().create_future()

    def complete() -> None:
        if isinstance(value, Exception):
            future.set_exception(value)
        else:
            future.set_result(value)

    asyncio.get_running_loop().call_soon(complete)
    return Reply.later(future)


both = pytest.mark.parametrize("make", [ready, to_come])


@both
def test_a_value_goes_through_its_steps(make: Callable[[Any], Reply[Any]]) -> None:
    async def story() -> None:
        reply = make(1).then(lambda value: value + 1).otherwise(lambda _: 0).then(str)
        assert reply.is_ready is (make is ready)
        assert await reply == "2"

    asyncio.run(story())


@both
def test_a_refusal_passes_what_is_made_of_values_and_may_become_one(
    make: Callable[[Any], Reply[Any]],
) -> None:
    async def story() -> None:
        assert await make(REFUSED).then(str).otherwise(lambda e: e.code) is ErrorCode.NOT_COORDINATOR
        with pytest.raises(KafkaError) as caught:
            await make(REFUSED).then(str)
        assert caught.value is REFUSED

    asyncio.run(story())


@both
def test_other_errors_are_not_taken_for_refusals(make: Callable[[Any], Reply[Any]]) -> None:
    async def story() -> None:
        with pytest.raises(ZeroDivisionError):
            await make(0).then(lambda value: 1 // value).otherwise(lambda _: 0)

    asyncio.run(story())


@both
def test_whoever_waits_is_called_once_with_a_ready_reply(make: Callable[[Any], Reply[Any]]) -> None:
    async def story() -> None:
        seen: list[Reply[Any]] = []
        make(1).then(lambda value: value + 1).when_ready(seen.append)
        make(REFUSED).when_ready(seen.append)
        await asyncio.sleep(0.01)
        assert [(r.is_ready, r.error) for r in seen] == [(True, None), (True, REFUSED)]
        assert seen[0].value == 2

    asyncio.run(story())


def test_whoever_waits_for_cancelled_work_hears_nothing() -> None:
    async def story() -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        seen: list[Reply[int]] = []
        Reply.later(future).when_ready(seen.append)
        future.cancel()
        await asyncio.sleep(0.01)
        assert seen == []

    asyncio.run(story())


def spawn(work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
    return asyncio.get_running_loop().create_task(work, name=name)


def test_work_that_need_not_wait_is_done_at_once_and_makes_no_task() -> None:
    async def quick(value: int) -> int:
        return await Reply(value) + 1

    async def story() -> None:
        reply = start(quick(1), spawn, "quick")
        assert reply.is_ready and reply.value == 2
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(story())


def test_work_that_has_to_wait_goes_on_where_it_stands() -> None:
    passed = []

    async def slow() -> str:
        passed.append("began")
        await asyncio.sleep(0)
        passed.append("slept")
        try:
            await to_come(REFUSED)
        except KafkaError as e:
            passed.append(e.code.name)
        return "done"

    async def story() -> None:
        reply = start(slow(), spawn, "slow")
        assert passed == ["began"] and not reply.is_ready
        assert await reply == "done"
        assert passed == ["began", "slept", "NOT_COORDINATOR"]

    asyncio.run(story())


def test_several_may_begin_to_wait_for_one_future() -> None:
    async def story() -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def wait(more: int) -> int:
            return await future + more

        replies = [start(wait(i), spawn, "wait") for i in range(3)]
        early = asyncio.ensure_future(wait(3))
        await asyncio.sleep(0)
        late = start(wait(4), spawn, "wait")
        future.set_result(10)
        assert [await reply for reply in replies] == [10, 11, 12]
        assert (await early, await late) == (13, 14)

    asyncio.run(story())


def test_work_that_is_cancelled_cleans_up() -> None:
    passed = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            passed.append("cleaned up")

    async def story() -> None:
        tasks = []

        def remember(work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
            tasks.append(spawn(work, name))
            return tasks[0]

        start(slow(), remember, "slow")
        await asyncio.sleep(0)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert passed == ["cleaned up"]

    asyncio.run(story())
