"""Published images never change, share what did not change, and stay cheap when there is much of it."""

import time
from typing import Any
from uuid import UUID

import pytest

from odradek.metadata.draft import _HANDLERS, ReplayError
from odradek.metadata.image import EMPTY_IMAGE, BrokerRegistration, MetadataImage
from odradek.metadata.records import (
    RECORD_TYPES,
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    NoOpRecord,
    OpaqueRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from odradek.metadata.replay import Replayer


def topic(n: int, name: str | None = None) -> TopicRecord:
    return TopicRecord(name=name or f"t{n}", topic_id=UUID(int=n + 1000))


def partition(n: int, index: int = 0) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=UUID(int=n + 1000),
        replicas=(1,),
        isr=(1,),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=(UUID(int=500),),
    )


def apply(replayer: Replayer, *records: Any) -> Any:
    offset = replayer.image.offset + len(records)
    return replayer.apply(records, last_offset=offset, epoch=1, timestamp_ms=0)


def test_a_published_image_is_not_touched_by_later_records() -> None:
    replayer = Replayer()
    apply(
        replayer,
        topic(0),
        partition(0),
        ConfigRecord(resource_type=2, resource_name="t0", name="a", value="1"),
    )
    before = replayer.image
    copy = MetadataImage(*(dict(x) if hasattr(x, "items") else x for x in before))
    partitions = dict(before.topics_by_name["t0"].partitions)
    apply(
        replayer,
        PartitionChangeRecord(partition_id=0, topic_id=UUID(int=1000), leader=-1),
        partition(0, 1),
        ConfigRecord(resource_type=2, resource_name="t0", name="a", value="2"),
        topic(1),
    )
    assert before == copy
    assert before.topics_by_name["t0"].partitions == partitions
    assert before.topic_config("t0") == {"a": "1"}
    assert replayer.image.topic_config("t0") == {"a": "2"}


def test_what_did_not_change_is_shared() -> None:
    replayer = Replayer()
    apply(replayer, topic(0), partition(0), topic(1), partition(1))
    before = replayer.image
    apply(replayer, NoOpRecord())
    assert replayer.image.topics_by_id is before.topics_by_id
    apply(replayer, partition(1, 1))
    assert replayer.image.topics_by_name["t0"] is before.topics_by_name["t0"]
    assert replayer.image.brokers is before.brokers


def test_a_change_of_one_partition_among_ten_thousand_is_quick() -> None:
    replayer = Replayer()
    apply(replayer, *(r for n in range(10_000) for r in (topic(n), partition(n))))
    best = float("inf")
    for _ in range(20):
        started = time.perf_counter()
        apply(replayer, PartitionChangeRecord(partition_id=0, topic_id=UUID(int=1000), isr=(1,)))
        best = min(best, time.perf_counter() - started)
    assert best < 0.005


def test_a_topic_created_and_removed_in_one_batch_leaves_no_trace() -> None:
    replayer = Replayer()
    delta = apply(replayer, topic(0), partition(0), RemoveTopicRecord(topic_id=UUID(int=1000)))
    assert delta.image.topics_by_id == {}
    assert (delta.changed_topics, delta.changed_partitions, delta.deleted_topics) == ([], [], [])


def test_a_delta_names_each_changed_partition_once_in_its_last_state() -> None:
    replayer = Replayer()
    apply(replayer, topic(0), partition(0))
    change = PartitionChangeRecord(partition_id=0, topic_id=UUID(int=1000), leader=1)
    delta = apply(replayer, change, change)
    ((changed, index, registration),) = delta.changed_partitions
    assert (changed.name, index, registration.leader_epoch, registration.partition_epoch) == ("t0", 0, 2, 2)
    assert delta.changed_topics == [UUID(int=1000)]


def test_records_of_a_transaction_take_effect_at_its_end() -> None:
    replayer = Replayer()
    apply(replayer, BeginTransactionRecord(name="x"), topic(0))
    assert replayer.image.topics_by_name == {}
    assert replayer.in_transaction
    apply(replayer, topic(1), EndTransactionRecord())
    assert sorted(replayer.image.topics_by_name) == ["t0", "t1"]
    apply(replayer, BeginTransactionRecord(name="y"), topic(2), AbortTransactionRecord(reason="z"), topic(3))
    assert sorted(replayer.image.topics_by_name) == ["t0", "t1", "t3"]


def test_a_record_that_contradicts_the_image_stops_the_batch_as_a_whole() -> None:
    replayer = Replayer()
    with pytest.raises(ReplayError):
        apply(replayer, topic(0), partition(7))
    assert replayer.image is EMPTY_IMAGE
    with pytest.raises(ReplayError):
        apply(replayer, EndTransactionRecord())
    with pytest.raises(ReplayError):
        apply(replayer, topic(0), topic(1, "t0"))


def test_producer_ids_never_go_back() -> None:
    replayer = Replayer()
    apply(replayer, ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=2000))
    with pytest.raises(ReplayError):
        apply(replayer, ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000))


def test_features_at_level_zero_are_gone() -> None:
    replayer = Replayer()
    apply(replayer, FeatureLevelRecord(name="group.version", feature_level=1))
    apply(replayer, FeatureLevelRecord(name="group.version", feature_level=0))
    assert replayer.image.features == {}


def test_records_nobody_acts_on_yet_survive() -> None:
    replayer = Replayer()
    quota = ClientQuotaRecord(
        entity=[EntityData(entity_type="user", entity_name="u")], key="producer_byte_rate", value=5.0
    )
    apply(replayer, quota)
    assert list(replayer.image.kept.values()) == [quota]
    gone = ClientQuotaRecord(entity=quota.entity, key=quota.key, value=0.0, remove=True)
    apply(replayer, gone)
    assert not replayer.image.kept


def test_every_record_type_is_replayed() -> None:
    assert {OpaqueRecord, *RECORD_TYPES.values()} == {
        *_HANDLERS,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
    }


def test_only_a_broker_that_is_not_fenced_has_an_epoch_to_compare() -> None:
    alive = BrokerRegistration(2, 40, UUID(int=1), {}, None, False, False, (), None, {})
    image = EMPTY_IMAGE._replace(brokers={2: alive, 3: alive._replace(id=3, fenced=True)})
    assert [image.alive_broker_epoch(broker_id) for broker_id in (2, 3, 4)] == [40, None, None]


def test_clearing_the_eligible_leaders_moves_the_partition_epoch_as_on_apaches_nodes() -> None:
    """A leader proposes its ISR at the partition epoch that it knows: all nodes must count alike."""
    replayer = Replayer()
    held = partition(0)
    held.eligible_leader_replicas = (2,)
    apply(replayer, topic(0), held, partition(0, 1))
    apply(replayer, ClearElrRecord(topic_name="t0"))
    partitions = replayer.image.topics_by_name["t0"].partitions
    assert (partitions[0].elr, partitions[0].partition_epoch, partitions[0].leader_epoch) == ((), 1, 0)
    assert partitions[1].partition_epoch == 0, "nothing was cleared there"
