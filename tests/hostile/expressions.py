"""A subscription by a regular expression that is cheap to send and dear to resolve."""

import random

from odradek.wire.api_keys import ApiKey
from tests.hostile.world import Client, World

LETTERS = "abcdefghijklmnop"
"""Several, since what an expression does on a letter is remembered."""


def long_names(count: int) -> list[str]:
    """Topics over which an expression of many choices has to be followed to the end; the same every time."""
    rng = random.Random(1)
    return ["".join(rng.choices(LETTERS, k=240)) for _ in range(count)]


def subscribe(world: World, client: Client, group: str, repeats: int) -> None:
    """Join a group with an expression that the broker accepts."""
    answer = world.call(
        client,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        group_id=group,
        member_id="member",
        member_epoch=0,
        rebalance_timeout=30_000,
        subscribed_topic_names=None,
        subscribed_topic_regex=f"([{LETTERS[0]}-{LETTERS[-1]}]?){{{repeats}}}" * 4,
        topic_partitions=[],
    )
    assert answer.error_code == 0, answer
