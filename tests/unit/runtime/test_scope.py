"""Proves what runtime.scope promises: order of birth, nothing outlives the scope, no failure is lost."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.runtime.scope import Scope


async def _forever(name: str, log: list[str]) -> None:
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        log.append(name)


async def _fail(error: Exception) -> None:
    raise error


def test_children_end_in_order_of_birth() -> None:
    log: list[str] = []

    async def main() -> None:
        async with Scope() as scope:
            for i in range(50):
                scope.spawn(_forever(f"{i:02}", log))
            await asyncio.sleep(0)

    asyncio.run(main())
    assert log == sorted(log)
    assert len(log) == 50


def test_child_failure_interrupts_the_block_and_leaves_it() -> None:
    log: list[str] = []

    async def main() -> None:
        async with Scope() as scope:
            scope.spawn(_forever("sibling", log))
            scope.spawn(_fail(ValueError("broken")))
            await asyncio.get_running_loop().create_future()

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(main())
    assert log == ["sibling"]


def test_interrupted_task_is_not_left_cancelled() -> None:
    async def main() -> int:
        try:
            async with Scope() as scope:
                scope.spawn(_fail(ValueError()))
                await asyncio.get_running_loop().create_future()
        except ValueError:
            pass
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert asyncio.run(main()) == 0


def test_error_of_the_block_wins_and_the_childs_is_reported() -> None:
    reported: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context["exception"])
        )

        async def stubborn() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                raise ValueError("child")

        async with Scope() as scope:
            scope.spawn(stubborn())
            await asyncio.sleep(0)
            raise KeyError("block")

    with pytest.raises(KeyError, match="block"):
        asyncio.run(main())
    assert [str(e) for e in reported] == ["child"]


def test_outer_cancellation_waits_for_slow_children() -> None:
    log: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            log.append("cleaned up")

    async def main() -> None:
        async def block() -> None:
            async with Scope() as scope:
                scope.spawn(slow())
                await asyncio.get_running_loop().create_future()

        task = asyncio.create_task(block())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["cleaned up"]

    asyncio.run(main())


def test_join_waits_for_children_born_meanwhile() -> None:
    log: list[str] = []

    async def main() -> None:
        async with Scope() as scope:

            async def child(depth: int) -> None:
                await asyncio.sleep(0)
                log.append(str(depth))
                if depth:
                    scope.spawn(child(depth - 1))

            scope.spawn(child(3))
            await scope.join()

    asyncio.run(main())
    assert log == ["3", "2", "1", "0"]


def _with_long_lived(body: Callable[[Scope], Coroutine[Any, Any, None]], scope: Scope) -> None:
    asyncio.run(body(scope))


def test_long_lived_scope_hands_every_failure_to_its_owner() -> None:
    failures: list[str] = []

    async def body(scope: Scope) -> None:
        scope.spawn(_fail(ValueError("first")))
        scope.spawn(_fail(ValueError("second")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await scope.close()

    _with_long_lived(body, Scope(lambda e: failures.append(str(e))))
    assert failures == ["first", "second"]


def test_close_raises_a_failure_nobody_was_told_of() -> None:
    async def body(scope: Scope) -> None:
        scope.spawn(_fail(ValueError("unseen")))
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="unseen"):
            await scope.close()
        await scope.close()

    _with_long_lived(body, Scope())


def test_nothing_is_spawned_once_closing() -> None:
    async def body(scope: Scope) -> None:
        await scope.close()
        with pytest.raises(RuntimeError, match="late"):
            scope.spawn(_forever("late", []), name="late")

    _with_long_lived(body, Scope())


def test_cancelling_one_child_is_no_failure() -> None:
    log: list[str] = []

    async def main() -> None:
        async with Scope() as scope:
            task = scope.spawn(_forever("one", log))
            await asyncio.sleep(0)
            task.cancel()
            await scope.join()
            assert len(scope) == 0

    asyncio.run(main())
    assert log == ["one"]
