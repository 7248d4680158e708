"""Stray logs on a disk, and the leaders of the others."""

from uuid import UUID

import pytest

from odradek.core.types import NO_LEADER, TopicPartition
from odradek.metadata.image import EMPTY_IMAGE, PartitionRegistration, TopicImage
from odradek.metadata.strays import is_stray

HERE, ELSEWHERE = 1, 2
ID, OTHER_ID = UUID(int=0x1111_2222_3333_4444), UUID(int=0x9999_8888_7777_6666)
PARTITIONS = {
    0: PartitionRegistration((HERE, ELSEWHERE), (HERE,), HERE, 0, 0),
    1: PartitionRegistration((ELSEWHERE,), (ELSEWHERE,), ELSEWHERE, 0, 0),
    2: PartitionRegistration((HERE,), (HERE,), NO_LEADER, 0, 0),
}
TOPIC = TopicImage("t", ID, PARTITIONS)
IMAGE = EMPTY_IMAGE._replace(topics_by_name={"t": TOPIC}, topics_by_id={ID: TOPIC})


@pytest.mark.parametrize(
    ("topic", "index", "topic_id", "stray"),
    [
        ("t", 0, ID, False),
        ("t", 0, None, False),
        ("t", 2, ID, False),
        ("t", 0, OTHER_ID, True),
        ("t", 1, ID, True),
        ("t", 9, ID, True),
        ("u", 0, ID, True),
    ],
)
def test_a_log_is_stray_where_the_image_does_not_give_it_to_this_broker(
    topic: str, index: int, topic_id: UUID | None, stray: bool
) -> None:
    assert is_stray(IMAGE, HERE, TopicPartition(topic, index), topic_id) is stray


def test_a_partition_that_is_gone_is_told_from_one_without_a_leader() -> None:
    leaders = [IMAGE.leader_of(TopicPartition("t", index)) for index in (0, 1, 2, 9)]
    assert leaders == [HERE, ELSEWHERE, NO_LEADER, None]
    assert IMAGE.leader_of(TopicPartition("u", 0)) is None
