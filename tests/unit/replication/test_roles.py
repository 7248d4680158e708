"""The roles of a node's partitions follow the metadata: who is fetched, from whom, and what goes."""

import uuid
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.types import NO_LEADER, TopicPartition
from odradek.metadata.image import PartitionRegistration, TopicImage
from odradek.replication.manager import ReplicaManager
from odradek.runtime.slices import at_once
from tests.unit.replication.fetching.support import batches
from tests.unit.replication.support import ME, TOPIC, Poked, delta_of, followed, led, managed, refused

TP = TopicPartition(TOPIC.name, 0)


def apply(replicas: ReplicaManager, registration: PartitionRegistration, topic: TopicImage = TOPIC) -> None:
    at_once(replicas.apply_delta(delta_of(topic._replace(partitions={0: registration}))))


def fetched_from(replicas: ReplicaManager) -> int | None:
    found = replicas.fetchers.fetcher_of(TP)
    return None if found is None else found[0]


def test_a_follower_is_fetched_and_a_leader_is_not(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    apply(replicas, followed(2))
    assert fetched_from(replicas) == 2
    follower = replicas.partition(TP).follower
    assert follower is not None and (follower.leader_id, follower.leader_epoch) == (2, 1)
    apply(replicas, led(ME, 2, epoch=2, at=2))
    assert fetched_from(replicas) is None and replicas.partition(TP).follower is None
    apply(replicas, followed(2, epoch=3, at=3))
    assert fetched_from(replicas) == 2 and replicas.partition(TP).leader is None


def test_a_partition_without_a_leader_is_not_fetched(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    apply(replicas, followed(2))
    apply(replicas, followed(NO_LEADER, epoch=2, at=2))
    assert fetched_from(replicas) is None and replicas.partition(TP).follower is None


def test_an_unchanged_leader_epoch_resets_nothing(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    apply(replicas, followed(2))
    follower = replicas.partition(TP).follower
    apply(replicas, followed(2, epoch=1, at=2))
    assert replicas.partition(TP).follower is follower and fetched_from(replicas) == 2


def test_a_new_epoch_of_the_same_leader_has_a_new_follower(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    apply(replicas, followed(2))
    apply(replicas, followed(2, epoch=2, at=2))
    follower = replicas.partition(TP).follower
    assert follower is not None and follower.leader_epoch == 2


@pytest.mark.parametrize("registration", [led(ME, 2), followed(2)])
def test_a_removed_replica_has_no_fetcher_no_role_and_no_log(
    tmp_path: Path, registration: PartitionRegistration
) -> None:
    replicas = managed(tmp_path)
    apply(replicas, registration)
    waiter = Poked()
    replicas.partition(TP).fetch_waiters.add(waiter)
    elsewhere = PartitionRegistration((2, 3), (2, 3), leader=2, leader_epoch=4, partition_epoch=9)
    apply(replicas, elsewhere)
    assert fetched_from(replicas) is None and TP not in replicas.partitions and waiter.times == 1
    assert replicas.logs.get(TP) is None
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        replicas.partition(TP)
    apply(replicas, elsewhere._replace(replicas=(2, 3, ME), leader_epoch=5, partition_epoch=10))
    assert fetched_from(replicas) == 2 and replicas.partition(TP).log.log_end_offset == 0


def test_a_topic_made_again_under_its_name_is_fetched_into_a_new_log(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    apply(replicas, followed(2))
    first = replicas.partition(TP)
    assert first.follower is not None
    first.follower.append(batches(0, epoch=1), 1, 0)
    old = TOPIC._replace(partitions={0: followed(2)})
    new = TOPIC._replace(id=uuid.UUID(int=8), partitions={0: followed(3, epoch=0, at=0)})
    at_once(replicas.apply_delta(delta_of(new, deleted=(old,))))
    second = replicas.partition(TP)
    assert second is not first and second.log.log_end_offset == 0 and fetched_from(replicas) == 3


def test_a_partition_of_an_offline_directory_is_not_fetched(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    apply(replicas, followed(2))
    directory = replicas.partition(TP).log.directory
    at_once(replicas.take_offline(directory, "broken", lambda tp: None))
    assert fetched_from(replicas) is None
    apply(replicas, followed(3, epoch=2, at=2))
    assert fetched_from(replicas) is None


def test_a_replica_that_is_removed_while_its_directory_is_offline_is_forgotten(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    apply(replicas, followed(2))
    at_once(replicas.take_offline(replicas.partition(TP).log.directory, "broken", lambda tp: None))
    apply(replicas, PartitionRegistration((2, 3), (2, 3), leader=2, leader_epoch=4, partition_epoch=9))
    assert TP not in replicas.offline
