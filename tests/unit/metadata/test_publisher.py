"""Deltas are applied in slices and in order, and a failing subscriber does not stop the others."""

import asyncio
import logging

import pytest

from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import EMPTY_IMAGE
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.slices import Paced, Slices


def deltas(count: int) -> list[MetadataDelta]:
    image, made = EMPTY_IMAGE, []
    for offset in range(count):
        made.append(MetadataDelta(image, image._replace(offset=offset)))
        image = made[-1].image
    return made


def small_publisher() -> MetadataPublisher:
    return MetadataPublisher(Slices(slice_calls=10, short_calls=5))


class Slow:
    """A subscriber that takes some slices for each delta."""

    def __init__(self, seen: list[tuple[str, int]], name: str, steps: int) -> None:
        self.seen, self.name, self.steps = seen, name, steps

    def __call__(self, delta: MetadataDelta) -> Paced[None]:
        for _ in range(self.steps):
            self.seen.append((self.name, delta.image.offset))
            yield 10


def test_a_delta_of_little_work_is_applied_at_once() -> None:
    publisher, seen = MetadataPublisher(), list[tuple[str, int]]()
    publisher.subscribe(Slow(seen, "a", 0))
    (delta,) = deltas(1)
    publisher.publish(delta)
    assert (publisher.image, publisher.applied_offset) == (delta.image, 0)


def test_the_image_changes_first_and_the_next_delta_waits_for_all_subscribers() -> None:
    async def story() -> None:
        publisher, seen = small_publisher(), list[tuple[str, int]]()
        applied: list[int] = []
        publisher.on_applied = applied.append
        publisher.subscribe(Slow(seen, "a", 3))
        publisher.subscribe(Slow(seen, "b", 2))
        first, second, third = deltas(3)
        publisher.publish(first)
        publisher.publish(second)
        assert publisher.image is first.image and publisher.applied_offset == -1
        await asyncio.sleep(0)
        publisher.publish(third)
        assert not applied and publisher.image is first.image
        await publisher.drain()
        assert seen == [(name, offset) for offset in range(3) for name in "aaabb"]
        assert applied == [0, 1, 2] and publisher.image is third.image
        await publisher.drain()

    asyncio.run(story())


def test_a_subscriber_that_fails_is_reported_and_keeps_nobody_from_the_delta(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def failing(delta: MetadataDelta) -> Paced[None]:
        yield 50
        raise ValueError("no good")

    async def story() -> None:
        publisher, seen = small_publisher(), list[tuple[str, int]]()
        publisher.subscribe(failing)
        publisher.subscribe(Slow(seen, "a", 1))
        for delta in deltas(2):
            publisher.publish(delta)
        await publisher.drain()
        assert seen == [("a", 0), ("a", 1)]
        assert publisher.applied_offset == 1

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert [r.getMessage() for r in caplog.records] == [
        "Error applying the metadata up to offset 0",
        "Error applying the metadata up to offset 1",
    ]


def test_who_subscribes_while_a_delta_is_applied_gets_it_once() -> None:
    async def story() -> None:
        publisher, seen = small_publisher(), list[tuple[str, int]]()
        publisher.subscribe(Slow([], "a", 3))
        first, second = deltas(2)
        publisher.publish(first)
        publisher.publish(second)
        publisher.subscribe(Slow(seen, "late", 1))
        await publisher.drain()
        assert seen == [("late", 0), ("late", 1)]

    asyncio.run(story())
