"""Many produces of one connection that wait for a follower: one waiter, one timer, joined replies."""

import dataclasses
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode
from odradek.metadata.image import PartitionRegistration
from odradek.replication.partition import Partition
from odradek.runtime.slices import SLICE_CALLS
from tests.counts.probe import Calls
from tests.hostile.stage import Client, Stage, staged
from tests.unit.broker.test_replicated_produce import (
    REPLICAS,
    change_isr,
    fetch_frame,
    fetched,
    produce_frame,
    produced,
    replicated,
)

RUN = 100


def warm(stage: Stage, client: Client, follower: Client) -> Partition:
    """A partition with a follower in the ISR, and a producer whose route is known."""
    partition = replicated(stage, client, 1, 2)
    client.send(produce_frame())
    stage.wait_until_idle()
    stage.ask(follower, fetch_frame(2, 1))
    stage.wait_until_idle()
    assert produced(client.answer()) == (0, 0)
    return partition


def answers(stage: Stage, client: Client) -> list[tuple[int, int]]:
    stage.wait_until_idle()
    found = []
    while (frame := client.answer()) is not None:
        found.append(produced(frame))
    return found


def test_a_run_of_produces_has_one_waiter_and_few_calls(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as follower:
        partition = warm(stage, client, follower)
        leader = partition.require_leader()
        stage.node.slices.resize(SLICE_CALLS)  # as of a node: enough for the whole run in one turn
        client.send(produce_frame() * RUN)
        meter = Calls()
        meter.begin()
        try:
            stage.wait_until_idle()
        finally:
            calls = meter.end()
        assert len(leader.commit_waiters) == 1
        assert fetched(stage.ask(follower, fetch_frame(2, 1))).records
        follower.send(fetch_frame(2, 1 + RUN))
        meter.begin()
        try:
            stage.wait_until_idle()
        finally:
            calls += meter.end()
        assert answers(stage, client) == [(0, 1 + number) for number in range(RUN)]
        assert len(leader.commit_waiters) == 0
        assert calls / RUN < 12, calls / RUN


def test_those_that_are_committed_are_answered_before_the_rest(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as follower:
        warm(stage, client, follower)
        client.send(produce_frame() * 5)
        stage.wait_until_idle()
        for end in (1, 3, 4):
            stage.ask(follower, fetch_frame(2, end))
        assert answers(stage, client) == [(0, 1), (0, 2), (0, 3)]
        stage.ask(follower, fetch_frame(2, 6))
        assert answers(stage, client) == [(0, 4), (0, 5)]


def test_runs_and_other_requests_are_answered_in_their_order(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as follower:
        warm(stage, client, follower)
        for acks in (-1, 1, -1):
            client.send(produce_frame(acks) * 2)
            stage.wait_until_idle()
        assert answers(stage, client) == []
        stage.ask(follower, fetch_frame(2, 6))
        assert answers(stage, client) == [(0, offset) for offset in range(1, 6)], "half of the last run"
        stage.ask(follower, fetch_frame(2, 7))
        assert answers(stage, client) == [(0, 6)]


def test_a_run_fails_where_its_leader_resigns(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as follower:
        partition = warm(stage, client, follower)
        client.send(produce_frame() * 3)
        stage.wait_until_idle()
        stage.ask(follower, fetch_frame(2, 2))
        next_epoch = PartitionRegistration(REPLICAS, (2,), 2, partition.leader_epoch + 1, 10)
        stage.loop.call_soon(partition.apply, next_epoch)
        assert answers(stage, client) == [(0, 1), *[(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)] * 2]


def test_a_run_times_out(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as follower:
        warm(stage, client, follower)
        client.send(produce_frame() * 3)
        stage.wait_until_idle()
        stage.ask(follower, fetch_frame(2, 2))
        stage.loop.pass_time(60)
        assert answers(stage, client) == [(0, 1), *[(ErrorCode.REQUEST_TIMED_OUT, -1)] * 2]
        stage.ask(follower, fetch_frame(2, 4))
        assert answers(stage, client) == []


@pytest.mark.parametrize("committed", [1, 3])
def test_the_rest_of_a_run_waits_under_min_isr(tmp_path: Path, committed: int) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as follower:
        partition = warm(stage, client, follower)
        client.send(produce_frame() * 3)
        stage.wait_until_idle()
        stage.ask(follower, fetch_frame(2, 1 + committed))
        partition.configure(dataclasses.replace(partition.log.config, min_insync_replicas=2))
        stage.loop.call_soon(change_isr, partition, 1)
        assert answers(stage, client) == [(0, 1 + number) for number in range(committed)]
