"""A subscription by a regular expression that is cheap to send and dear to resolve."""

from odradek.wire.api_keys import ApiKey
from tests.hostile.world import Client, World


def long_names(count: int) -> list[str]:
    """Topics over which an expression of many choices has to be followed to the end."""
    return [("ab" * 120)[: 240 - i] for i in range(count)]


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
        subscribed_topic_regex=f"([ab]?){{{repeats}}}" * 4,
        topic_partitions=[],
    )
    assert answer.error_code == 0, answer
