"""Which fetcher has which partition, and when fetchers begin and end."""

from pathlib import Path

from odradek.core.types import TopicPartition
from odradek.replication.fetching.fetcher import Fetcher
from odradek.replication.fetching.manager import FetcherManager, FetcherSettings
from odradek.replication.follower import PartitionFollower
from odradek.runtime.slices import at_once
from tests.unit.replication.fetching.support import TOPIC_ID, follower_of


class Running:
    def __init__(self, fetcher: Fetcher) -> None:
        self.fetcher = fetcher
        self.wakes = 0
        self.is_closed = False

    def wake(self) -> None:
        assert not self.is_closed
        self.wakes += 1

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


class Stage:
    def __init__(self, fetchers: int = 1) -> None:
        self.started: list[Running] = []
        self.manager = FetcherManager(FetcherSettings(fetchers), self._start)

    def _start(self, fetcher: Fetcher) -> Running:
        self.started.append(Running(fetcher))
        return self.started[-1]

    def add(self, follower: PartitionFollower) -> None:
        self.manager.add(TOPIC_ID, follower)

    def fetched(self) -> dict[tuple[int, int], list[int]]:
        """The partitions of each open fetcher, by leader and index."""
        return {
            (r.fetcher.leader_id, r.fetcher.index): sorted(index for _, index in r.fetcher.partitions)
            for r in self.started
            if not r.is_closed
        }


def led_by(leader_id: int, follower: PartitionFollower) -> PartitionFollower:
    return PartitionFollower(follower.log, leader_id, follower.leader_epoch + 1)


def test_partitions_of_one_leader_share_a_fetcher_which_wakes_once(tmp_path: Path) -> None:
    stage = Stage()
    for index in range(3):
        stage.add(follower_of(tmp_path, index))
    assert [running.wakes for running in stage.started] == [0]
    stage.manager.wake()
    stage.manager.wake()
    assert stage.fetched() == {(2, 0): [0, 1, 2]} and stage.started[0].wakes == 1


def test_several_fetchers_share_the_partitions_of_a_leader(tmp_path: Path) -> None:
    stage = Stage(3)
    for index in range(9):
        stage.add(follower_of(tmp_path, index))
    assert [len(indexes) for indexes in stage.fetched().values()] == [3, 3, 3]


def test_another_leader_takes_a_partition_from_its_fetcher_which_ends_after_the_last(tmp_path: Path) -> None:
    stage, follower = Stage(), follower_of(tmp_path)
    stage.add(follower)
    stage.manager.wake()
    stage.add(led_by(3, follower))
    stage.manager.wake()
    assert stage.fetched() == {(3, 0): [0]}
    stage.manager.remove(TopicPartition("orders", 0))
    stage.manager.wake()
    assert stage.fetched() == {}
    stage.add(follower)
    stage.manager.wake()
    assert stage.fetched() == {(2, 0): [0]} and len(stage.started) == 3


def test_another_number_of_fetchers_moves_the_partitions(tmp_path: Path) -> None:
    stage = Stage()
    for index in range(8):
        stage.add(follower_of(tmp_path, index))
    at_once(stage.manager.resize(4))
    assert [len(indexes) for indexes in stage.fetched().values()] == [2, 2, 2, 2]
    at_once(stage.manager.resize(1))
    assert stage.fetched() == {(2, 0): list(range(8))}


def test_a_flush_wakes_the_fetcher_that_may_wait_for_it(tmp_path: Path) -> None:
    stage = Stage()
    stage.add(follower_of(tmp_path))
    stage.manager.settled(TopicPartition("orders", 0))
    stage.manager.settled(TopicPartition("orders", 7))
    assert stage.started[0].wakes == 1


def test_nothing_is_fetched_after_the_end(tmp_path: Path) -> None:
    stage = Stage()
    stage.add(follower_of(tmp_path, 0))
    stage.manager.close()
    assert stage.started[0].is_closed and not stage.started[0].fetcher.partitions
    stage.add(follower_of(tmp_path, 1))
    stage.manager.remove(TopicPartition("orders", 0))
    stage.manager.wake()
    assert len(stage.started) == 1
