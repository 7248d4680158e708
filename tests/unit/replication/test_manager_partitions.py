"""How the manager finds, changes and deletes partitions."""

import asyncio
import errno
import uuid
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, ExhaustedError, StorageError
from odradek.core.metrics import Metrics
from odradek.core.types import TopicPartition
from odradek.log.manager import LogManager
from odradek.metadata.image import TopicImage
from odradek.replication.manager import ReplicaManager
from odradek.runtime.slices import SLICE_CALLS, STEP, at_once
from odradek.sim.world.disk import DiskFault, DiskFaults
from odradek.sim.world.volume import Volume
from tests.unit.log.support import VolumeRuntime, batch, config
from tests.unit.replication.support import (
    MAX_LAG_MS,
    ME,
    TOPIC,
    Poked,
    Surroundings,
    delta_of,
    followed,
    led,
    managed,
    refused,
    with_partition,
)

TP = TopicPartition(TOPIC.name, 0)
LED = TOPIC._replace(partitions={0: led()})


# --- lookups ----------------------------------------------------------------------------------------------


def test_a_partition_is_found_by_name_and_by_topic_id(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    partition = with_partition(replicas, led())
    assert replicas.partition(TP) is partition
    assert replicas.find("t", 0) is replicas.find(TOPIC.id, 0) is partition
    assert replicas.partition_of("t", 0) is replicas.partition_of(TOPIC.id, 0) is partition
    assert partition.broker_id == replicas.broker_id == ME
    assert partition.metrics is replicas._metrics.topic("t")


def test_what_is_not_here_is_unknown(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    with_partition(replicas, led())
    assert replicas.find("t", 1) is replicas.find(TOPIC.id, 1) is None
    for topic in ("t", "u", TOPIC.id):
        with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            replicas.partition_of(topic, 1)
    with refused(ErrorCode.UNKNOWN_TOPIC_ID):
        replicas.partition_of(uuid.UUID(int=99), 0)
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        replicas.partition(TopicPartition("u", 0))


def test_partitions_of_other_brokers_are_not_opened(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    theirs = led()._replace(replicas=(2, 3), isr=(2, 3), leader=2)
    changes = at_once(replicas.apply_delta(delta_of(TOPIC._replace(partitions={0: theirs}))))
    assert changes == ([], []) and replicas.partitions == {}


def test_a_partition_that_could_not_be_opened_says_why() -> None:
    faults = DiskFaults()
    logs = LogManager(VolumeRuntime(Volume(), faults=faults), ["/a"])
    logs.open()
    logs.load(lambda topic: config())
    replicas = ReplicaManager(ME, logs, Metrics(), lambda topic: config(), Surroundings().context)
    faults.rules.append(DiskFault(errno.EMFILE, ["open"]))
    assert at_once(replicas.apply_delta(delta_of(LED))).elected == []
    with pytest.raises(ExhaustedError, match="t-0 is not open yet"):
        replicas.partition_of(TOPIC.id, 0)
    assert replicas.waiting() == [(LED, 0, led())]
    replicas.is_stopping = True
    assert at_once(replicas.open_waiting()).elected == [] and replicas.waiting()
    replicas.is_stopping = False
    faults.rules.clear()
    (partition,) = at_once(replicas.open_waiting()).elected
    assert replicas.partition(TP) is partition and replicas.waiting() == []
    asyncio.run(logs.close())


def test_a_partition_that_waits_to_be_opened_may_be_deleted() -> None:
    faults = DiskFaults()
    logs = LogManager(VolumeRuntime(Volume(), faults=faults), ["/a"])
    logs.open()
    logs.load(lambda topic: config())
    replicas = ReplicaManager(ME, logs, Metrics(), lambda topic: config(), Surroundings().context)
    faults.rules.append(DiskFault(errno.EMFILE, ["open"]))
    at_once(replicas.apply_delta(delta_of(LED)))
    faults.rules.clear()
    assert at_once(replicas.apply_delta(delta_of(deleted=(LED,)))) == ([], [])
    assert replicas.waiting() == []
    asyncio.run(logs.close())


def test_a_failed_directory_takes_its_partitions_offline(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    partition = with_partition(replicas, led(1, 2))
    partition.append_as_leader([batch()], acks_all=True)
    seen: list[object] = []
    partition.require_leader().commit_waiters.add(1, lambda error: seen.append(error and error.code))
    gone: list[TopicPartition] = []
    at_once(replicas.take_offline("/elsewhere", "broken", gone.append))
    assert gone == [] and partition.is_leader
    at_once(replicas.take_offline(partition.log.directory, "broken", gone.append))
    assert gone == [TP] and seen == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert not partition.is_leader
    assert replicas.find("t", 0) is replicas.find(TOPIC.id, 0) is None
    for topic in ("t", TOPIC.id):
        with pytest.raises(StorageError, match="t-0 is offline: broken"):
            replicas.partition_of(topic, 0)
    changes = at_once(replicas.apply_delta(delta_of(TOPIC._replace(partitions={0: led(epoch=1, at=1)}))))
    assert changes.elected == [], "only a restart brings it back"
    at_once(replicas.apply_delta(delta_of(deleted=(LED,))))
    assert replicas.offline == {}


# --- metadata ---------------------------------------------------------------------------------------------


def test_who_was_elected_and_who_resigned(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    changes = at_once(replicas.apply_delta(delta_of(LED)))
    assert changes == ([replicas.partition(TP)], [])
    isr_only = TOPIC._replace(partitions={0: led(1, replicas=(1, 2), at=1)})
    assert at_once(replicas.apply_delta(delta_of(isr_only))) == ([], [])
    again = TOPIC._replace(partitions={0: led(epoch=1, at=2)})
    assert at_once(replicas.apply_delta(delta_of(again))) == ([replicas.partition(TP)], [TP])
    lost = TOPIC._replace(partitions={0: followed(2, epoch=2, at=3)})
    assert at_once(replicas.apply_delta(delta_of(lost))) == ([], [TP])
    next_leader = TOPIC._replace(partitions={0: followed(3, epoch=3, at=4)})
    assert at_once(replicas.apply_delta(delta_of(next_leader))) == ([], [])


def test_a_deleted_topic_is_gone_and_may_come_back_under_its_name(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    old = with_partition(replicas, led())
    old.append_as_leader([batch()], acks_all=True)
    fetch = Poked()
    old.fetch_waiters.add(fetch, fetch.partition)
    new = TopicImage("t", uuid.UUID(int=8), {0: led()})
    changes = at_once(replicas.apply_delta(delta_of(new, deleted=(LED,))))
    assert changes == ([replicas.partition(TP)], [TP])
    assert fetch.times == 1 and not old.is_leader
    assert replicas.partition(TP).log.log_end_offset == 0
    assert replicas.find(new.id, 0) is replicas.partition(TP)
    with refused(ErrorCode.UNKNOWN_TOPIC_ID):
        replicas.partition_of(TOPIC.id, 0)


def test_a_deleted_topic_that_was_followed_resigns_from_nothing(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    with_partition(replicas, followed())
    assert at_once(replicas.apply_delta(delta_of(deleted=(LED,)))) == ([], [])
    assert replicas.partitions == {} and replicas.logs.logs == {}


def test_counters_of_a_deleted_topic_are_forgotten(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    before = with_partition(replicas, led()).metrics
    at_once(replicas.apply_delta(delta_of(deleted=(LED,))))
    assert with_partition(replicas, led()).metrics is not before


def test_a_node_that_stops_opens_no_more_logs(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    partition = with_partition(replicas, led())
    replicas.is_stopping = True
    both = TOPIC._replace(partitions={0: followed(2, epoch=1), 1: led()})
    assert at_once(replicas.apply_delta(delta_of(both))) == ([], [TP])
    assert list(replicas.partitions.values()) == [partition]


def test_a_new_configuration_reaches_the_topics_partitions(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    at_once(replicas.configs_changed([LED]))
    partition = with_partition(replicas, led())
    other = TopicImage("u", uuid.UUID(int=9), {0: led()})
    at_once(replicas.apply_delta(delta_of(other)))
    replicas._topic_config = lambda topic: config(max_message_bytes=77)
    at_once(replicas.configs_changed([TOPIC._replace(partitions={0: led(), 1: led()})]))
    assert partition.rules.max_message_bytes == 77
    assert replicas.partition_of("u", 0).rules.max_message_bytes != 77


# --- records ----------------------------------------------------------------------------------------------


def test_records_are_deleted_up_to_the_high_watermark(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    partition, fetch = with_partition(replicas, led(1, 2)), Poked()
    partition.append_as_leader([batch(5)], acks_all=True)
    partition.record_fetch(2, 4)
    partition.fetch_waiters.add(fetch, fetch.partition)
    assert replicas.delete_records(TP, 0).low_watermark == 0
    assert replicas.delete_records(TP, 3).low_watermark == partition.log.log_start_offset == 3
    assert fetch.times == 1, "nothing moved the first time"
    for offset in (5, -2):
        with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
            replicas.delete_records(TP, offset)
    assert replicas.delete_records(TP, -1).low_watermark == 4, "-1 is the high watermark"
    partition.apply(followed(2, epoch=1))
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        replicas.delete_records(TP, 4)


def test_records_of_a_compacted_topic_are_not_deleted(tmp_path: Path) -> None:
    replicas = managed(tmp_path, cleanup_policy=("compact",))
    with_partition(replicas, led()).append_as_leader([batch(5)], acks_all=True)
    with refused(ErrorCode.POLICY_VIOLATION):
        replicas.delete_records(TP, 3)
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        replicas.delete_records(TopicPartition("u", 0), 3)


def test_lagging_followers_of_many_partitions_are_looked_for_in_slices(tmp_path: Path) -> None:
    around = Surroundings({1: 10, 2: 20})
    replicas = managed(tmp_path, around=around)
    count = 2 * SLICE_CALLS // STEP // 10
    topic = TOPIC._replace(partitions=dict.fromkeys(range(count), led(1, 2)))
    at_once(replicas.apply_delta(delta_of(topic)))
    around.clock.ms += MAX_LAG_MS + 1

    async def tick() -> None:
        ticking = replicas.tick_isrs()
        assert 0 < len(around.context.proposals) < count, "some of them at once"
        await ticking

    asyncio.run(tick())
    assert len(around.context.proposals) == count


def test_a_partition_that_fails_does_not_keep_others_from_being_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    around = Surroundings({1: 10, 2: 20})
    replicas = managed(tmp_path, around=around)
    broken = with_partition(replicas, led(1, 2), index=0)
    with_partition(replicas, led(1, 2), index=1)
    broken.log.metadata.topic_id = None
    around.clock.ms += MAX_LAG_MS + 1
    assert replicas.tick_isrs().is_ready
    assert len(around.context.proposals) == 1
    assert "Error looking for lagging followers of t-0" in caplog.text
