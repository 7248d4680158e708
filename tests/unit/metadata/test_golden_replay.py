"""Replaying what Apache Kafka wrote gives what Apache's own dump says."""

from typing import Any

import pytest

from odradek.core.types import uuid_to_text
from odradek.metadata.image import MetadataImage
from odradek.metadata.replay import Replayer
from odradek.metadata.snapshot import image_records
from tests.unit.metadata import golden_log


def expected_state(dump: list[tuple[int, str, dict[str, Any]]]) -> dict[str, Any]:
    """The same state, built from the dump's JSON by the plainest means."""
    topics: dict[str, dict[str, Any]] = {}
    configs: dict[tuple[int, str], dict[str, str]] = {}
    features: dict[str, int] = {}
    partitions: dict[tuple[str, int], dict[str, Any]] = {}
    for _, kind, data in dump:
        if kind == "TOPIC_RECORD":
            topics[data["topicId"]] = data
        elif kind == "REMOVE_TOPIC_RECORD":
            name = topics.pop(data["topicId"])["name"]
            configs.pop((2, name), None)
            partitions = {k: v for k, v in partitions.items() if k[0] != data["topicId"]}
        elif kind == "PARTITION_RECORD":
            partitions[data["topicId"], data["partitionId"]] = dict(data)
        elif kind == "PARTITION_CHANGE_RECORD":
            partition = partitions[data["topicId"], data["partitionId"]]
            partition["partitionEpoch"] += 1
            if "leader" in data:
                partition["leaderEpoch"] += 1
            partition.update(data)
        elif kind == "CONFIG_RECORD":
            configs.setdefault((data["resourceType"], data["resourceName"]), {})[data["name"]] = data["value"]
        elif kind == "FEATURE_LEVEL_RECORD":
            features[data["name"]] = data["featureLevel"]
    return {
        "topics": {t["name"]: i for i, t in topics.items()},
        "partitions": {
            (topics[topic]["name"], index): (
                tuple(p["replicas"]),
                tuple(p["isr"]),
                p["leader"],
                p["leaderEpoch"],
                p["partitionEpoch"],
                tuple(p.get("eligibleLeaderReplicas", ())),
                tuple(p.get("lastKnownElr", ())),
                p.get("leaderRecoveryState", 0),
                tuple(p["directories"]),
            )
            for (topic, index), p in partitions.items()
        },
        "configs": configs,
        "features": features,
    }


def actual_state(image: MetadataImage) -> dict[str, Any]:
    return {
        "topics": {t.name: uuid_to_text(t.id) for t in image.topics_by_name.values()},
        "partitions": {
            (t.name, index): (
                p.replicas,
                p.isr,
                p.leader,
                p.leader_epoch,
                p.partition_epoch,
                p.elr,
                p.last_known_elr,
                p.leader_recovery_state,
                tuple(uuid_to_text(d) for d in p.directories),
            )
            for t in image.topics_by_id.values()
            for index, p in t.partitions.items()
        },
        "configs": {key: dict(values) for key, values in image.configs.items()},
        "features": dict(image.features),
    }


@pytest.mark.parametrize(
    ("data", "dump"),
    [
        (golden_log.log_bytes, "__cluster_metadata-0.txt"),
        (golden_log.checkpoint_bytes, "cluster_metadata_checkpoint.txt"),
    ],
    ids=["log", "checkpoint"],
)
def test_replay_gives_the_state_that_apaches_dump_lists(data: Any, dump: str) -> None:
    image, _ = golden_log.replay(data())
    assert actual_state(image) == expected_state(golden_log.dumped(dump))


def test_the_broker_of_the_golden_log_is_fenced_in_controlled_shutdown_at_its_last_epoch() -> None:
    image, _ = golden_log.replay(golden_log.log_bytes())
    (broker,) = image.brokers.values()
    assert (broker.id, broker.epoch, broker.fenced, broker.in_controlled_shutdown) == (1, 287, True, True)
    assert broker.endpoints["PLAINTEXT"].port == 29092
    assert broker.cordoned_log_dirs == ()
    assert image.next_producer_id == 1000


def test_the_image_carries_offset_and_epoch_of_the_last_record() -> None:
    image, deltas = golden_log.replay(golden_log.log_bytes())
    assert (image.offset, image.epoch) == (368, 2)
    assert [d.image.offset for d in deltas] == sorted(d.image.offset for d in deltas)


def test_an_image_written_as_records_replays_to_an_equal_image() -> None:
    image, _ = golden_log.replay(golden_log.log_bytes())
    again = Replayer()
    delta = again.apply(
        image_records(image), last_offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms
    )
    assert delta.image == image


def test_the_checkpoint_and_the_log_tail_give_the_image_of_the_whole_log() -> None:
    whole, _ = golden_log.replay(golden_log.log_bytes())
    at_204, _ = golden_log.replay(golden_log.checkpoint_bytes())
    image, _ = golden_log.replay(golden_log.log_bytes(), at_204, from_offset=204)
    assert image == whole
