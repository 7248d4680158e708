"""A snapshot laid over a live image: subscribers hear of all that it changed, and of all that it lacks."""

from typing import Any
from uuid import UUID

from odradek.metadata.delta import MetadataDelta, delta_between, full_delta
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from odradek.metadata.replay import Replayer
from odradek.metadata.snapshot import image_records
from odradek.runtime.slices import at_once


def topic_id(n: int) -> UUID:
    return UUID(int=5000 + n)


def topic(n: int, name: str | None = None, partitions: int = 1) -> list[Any]:
    rows = [
        PartitionRecord(
            partition_id=i,
            topic_id=topic_id(n),
            replicas=(1, 2),
            isr=(1, 2),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(UUID(int=500), UUID(int=501)),
        )
        for i in range(partitions)
    ]
    return [TopicRecord(name=name or f"t{n}", topic_id=topic_id(n)), *rows]


def moved(n: int, leader: int, index: int = 0) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=index, topic_id=topic_id(n), leader=leader)


def config(name: str, key: str, value: str | None, kind: int = 2) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def image_of(*records: Any) -> MetadataImage:
    replayer = Replayer()
    replayer.apply(records, last_offset=len(records) - 1, epoch=1, timestamp_ms=0)
    return replayer.image


def loaded(image: MetadataImage) -> MetadataImage:
    """The same image, from a snapshot: it shares nothing with the live one."""
    replayer = Replayer()
    replayer.apply(image_records(image), last_offset=image.offset, epoch=image.epoch, timestamp_ms=0)
    return replayer.image


def between(previous: MetadataImage, image: MetadataImage) -> MetadataDelta:
    return at_once(delta_between(previous, loaded(image)))


def partitions(delta: MetadataDelta) -> list[tuple[str, int, int, int]]:
    return [(t.name, i, p.leader, p.leader_epoch) for t, i, p in delta.changed_partitions]


def test_the_same_image_changes_nothing() -> None:
    image = image_of(*topic(0, partitions=3), config("t0", "a", "1"), config("", "b", "2", 4))
    delta = between(image, image)
    assert delta.previous is image
    assert (delta.changed_topics, delta.deleted_topics, delta.changed_partitions) == ([], [], [])
    assert delta.changed_configs == []


def test_over_nothing_it_is_everything() -> None:
    image = image_of(*topic(0, partitions=2), *topic(1), config("t0", "a", "1"))
    delta, full = between(EMPTY_IMAGE, image), full_delta(image)
    assert delta.changed_topics == full.changed_topics
    assert delta.changed_partitions == full.changed_partitions
    assert delta.changed_configs == full.changed_configs


def test_a_topic_that_the_snapshot_lacks_is_deleted_with_its_configs() -> None:
    live = image_of(*topic(0), *topic(1), config("t0", "a", "1"))
    delta = between(live, image_of(*topic(1)))
    assert [t.id for t in delta.deleted_topics] == [topic_id(0)]
    assert delta.changed_topics == []
    assert delta.changed_configs == [(2, "t0")]


def test_a_topic_of_the_same_name_and_another_id_is_deleted_and_created() -> None:
    live = image_of(*topic(0, "t"))
    delta = between(live, image_of(*topic(1, "t")))
    assert [t.id for t in delta.deleted_topics] == [topic_id(0)]
    assert delta.changed_topics == [topic_id(1)]
    assert partitions(delta) == [("t", 0, 1, 0)]


def test_new_topics_new_partitions_and_changed_ones_are_named_and_no_others() -> None:
    live = image_of(*topic(0, partitions=2), *topic(1))
    delta = between(live, image_of(*topic(0, partitions=3), moved(0, 2, index=1), *topic(1), *topic(2)))
    assert delta.changed_topics == [topic_id(0), topic_id(2)]
    assert partitions(delta) == [("t0", 1, 2, 1), ("t0", 2, 1, 0), ("t2", 0, 1, 0)]


def test_leadership_that_went_and_came_back_is_another_epoch() -> None:
    live = image_of(*topic(0))
    there_and_back = image_of(*topic(0), moved(0, 2), moved(0, 1))
    assert partitions(between(live, there_and_back)) == [("t0", 0, 1, 2)]


def test_configs_that_were_set_changed_or_removed_are_named() -> None:
    live = image_of(
        *topic(0),
        config("t0", "a", "1"),
        config("t0", "b", "1"),
        config("1", "c", "1", 4),
        config("", "d", "1", 4),
    )
    image = image_of(*topic(0), config("t0", "a", "1"), config("", "d", "2", 4), config("g", "e", "1", 32))
    delta = between(live, image)
    assert set(delta.changed_configs) == {(2, "t0"), (4, ""), (32, "g"), (4, "1")}
    assert len(delta.changed_configs) == 4


def test_features_and_producer_ids_come_with_the_image() -> None:
    live = image_of(FeatureLevelRecord(name="group.version", feature_level=1))
    delta = between(live, image_of(FeatureLevelRecord(name="metadata.version", feature_level=30)))
    assert (dict(delta.previous.features), dict(delta.image.features)) == (
        {"group.version": 1},
        {"metadata.version": 30},
    )


def test_within_one_delta_of_records_a_topic_made_again_is_deleted_and_created() -> None:
    replayer = Replayer()
    replayer.apply(topic(0, "t"), last_offset=1, epoch=1, timestamp_ms=0)
    records = [
        moved(0, 2),
        RemoveTopicRecord(topic_id=topic_id(0)),
        *topic(1, "t"),
        RemoveTopicRecord(topic_id=topic_id(1)),
        *topic(2, "t", partitions=2),
        config("t", "a", "1"),
    ]
    delta = replayer.apply(records, last_offset=20, epoch=1, timestamp_ms=0)
    assert [t.id for t in delta.deleted_topics] == [topic_id(0)]
    assert delta.changed_topics == [topic_id(2)]
    assert partitions(delta) == [("t", 0, 1, 0), ("t", 1, 1, 0)]
    assert delta.changed_configs == [(2, "t")]


def test_within_one_delta_of_records_leadership_that_came_back_is_another_epoch() -> None:
    replayer = Replayer()
    replayer.apply(topic(0), last_offset=1, epoch=1, timestamp_ms=0)
    delta = replayer.apply([moved(0, 2), moved(0, 1)], last_offset=3, epoch=1, timestamp_ms=0)
    assert partitions(delta) == [("t0", 0, 1, 2)]
