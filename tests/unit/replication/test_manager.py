"""The partitions of a node follow the metadata, one by one."""

import asyncio
import errno
import shutil
import uuid
from pathlib import Path

from odradek.core.metrics import Metrics
from odradek.core.types import TopicPartition
from odradek.log.manager import LogManager
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import EMPTY_IMAGE, PartitionRegistration, TopicImage
from odradek.replication.manager import ReplicaManager
from odradek.runtime.slices import at_once
from odradek.sim.world.disk import DiskFault, DiskFaults
from odradek.sim.world.volume import Volume
from tests.unit.log.support import LogRuntime, VolumeRuntime, config
from tests.unit.replication.support import Surroundings

LED = PartitionRegistration(replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0)


def delta_of(*topics: TopicImage) -> MetadataDelta:
    delta = MetadataDelta(EMPTY_IMAGE, EMPTY_IMAGE)
    delta.changed_partitions = [(t, index, p) for t in topics for index, p in t.partitions.items()]
    return delta


def test_who_goes_offline_while_waiting_partitions_are_opened_was_not_elected() -> None:
    """Descriptors are there again, but the disk is broken by then: the second partition finds out."""
    faults = DiskFaults()
    logs = LogManager(VolumeRuntime(Volume(), faults=faults), ["/a", "/b"])
    logs.open()
    logs.load(lambda topic: config())
    replicas = ReplicaManager(1, logs, Metrics(), lambda topic: config(), Surroundings().context)
    gone: list[TopicPartition] = []
    logs.on_offline = lambda path, failure: at_once(replicas.take_offline(path, str(failure), gone.append))
    topic = TopicImage("t", uuid.UUID(int=1), dict.fromkeys(range(2), LED))
    faults.rules.append(DiskFault(errno.EMFILE, ["open"]))
    assert at_once(replicas.apply_delta(delta_of(topic))).elected == []
    assert [index for _, index, _ in replicas.waiting()] == [0, 1]
    faults.rules[:] = [DiskFault(errno.EIO, ["open"], "/a/t-1/*")]
    assert at_once(replicas.open_waiting()).elected == []
    assert replicas.waiting() == []
    assert sorted(tp.partition for tp in replicas.offline) == [0, 1]
    assert gone == [TopicPartition("t", 0)]
    asyncio.run(logs.close())


def test_who_goes_offline_while_a_delta_is_applied_was_not_elected(tmp_path: Path) -> None:
    """The second partition brings the directory down in which the first one has just been elected."""
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    logs = LogManager(LogRuntime(), paths)
    logs.open()
    logs.load(lambda topic: config())
    replicas = ReplicaManager(1, logs, Metrics(), lambda topic: config(), Surroundings().context)
    gone: list[TopicPartition] = []
    logs.on_offline = lambda path, failure: at_once(replicas.take_offline(path, str(failure), gone.append))
    topic = TopicImage("t", uuid.UUID(int=1), dict.fromkeys(range(4), LED))
    for index in topic.partitions:
        logs.get_or_create(TopicPartition("t", index), topic.id, config())
    lost = logs.logs[TopicPartition("t", 3)]
    lost.metadata.topic_id = None  # as after a start that found no partition.metadata
    shutil.rmtree(lost.path)
    changes = at_once(replicas.apply_delta(delta_of(topic)))
    assert [d.failure is None for d in logs.directories] == [True, False]
    assert [p.topic_partition.partition for p in changes.elected] == [0, 2]
    assert sorted(tp.partition for tp in replicas.offline) == [1, 3]
    assert gone == [TopicPartition("t", 1)]  # the other one was never opened
    asyncio.run(logs.close())


def test_who_waits_to_be_taken_offline_was_not_elected_and_may_be_deleted(tmp_path: Path) -> None:
    """The directory fails between two steps of a delta; its partitions are taken offline only later."""
    logs = LogManager(LogRuntime(), [str(tmp_path / "a"), str(tmp_path / "b")])
    logs.open()
    logs.load(lambda topic: config())
    replicas = ReplicaManager(1, logs, Metrics(), lambda topic: config(), Surroundings().context)
    topic = TopicImage("t", uuid.UUID(int=1), dict.fromkeys(range(4), LED))
    applying = replicas.apply_delta(delta_of(topic))
    for _ in topic.partitions:
        next(applying)
    lost = [tp for tp, log in logs.logs.items() if log.directory.endswith("/b")]
    logs.logs[lost[0]].fail(OSError(errno.EIO, "I/O error"), "testing")
    changes = at_once(applying)
    assert [p.topic_partition for p in changes.elected] == [tp for tp in logs.logs if tp not in lost]
    gone: list[TopicPartition] = []
    leaving = replicas.take_offline(str(tmp_path / "b"), "broken", gone.append)
    next(leaving)
    deletion = MetadataDelta(EMPTY_IMAGE, EMPTY_IMAGE)
    deletion.deleted_topics = [topic]
    at_once(replicas.apply_delta(deletion))
    at_once(leaving)
    assert gone == [] and replicas.partitions == replicas.offline == {}
    asyncio.run(logs.close())
