"""The pieces of an exposition are, joined, what prometheus-client writes in one go."""

import asyncio
import sys
from collections.abc import Iterator

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest

from odradek.broker.node import Node
from odradek.client.blocking import BlockingClient
from odradek.core.types import TopicPartition
from odradek.http.exposition import SAMPLES_AT_ONCE, pieces, render
from odradek.http.families import families
from odradek.http.lags import Lags
from odradek.http.rows import ROWS_AT_ONCE
from odradek.runtime.slices import SLICE_CALLS
from odradek.testing import Broker

PARTITIONS = 3_000


class Registry:
    def collect(self):
        many = GaugeMetricFamily("many", "a gauge of many", labels=["topic", "partition"])
        for i in range(3 * SAMPLES_AT_ONCE + 1):
            many.add_metric(['a "quoted"\nname', str(i)], i)
        stalls = HistogramMetricFamily("stalls", "a histogram")
        stalls.add_metric([], [("0.1", 1), ("+Inf", 2)], 3.5)
        return [CounterMetricFamily("one", "a counter", 1), many, stalls, GaugeMetricFamily("none", "empty")]


def test_joined_they_are_the_whole():
    assert b"".join(pieces(Registry().collect())) == generate_latest(Registry())


def test_a_large_family_is_cut():
    assert len(list(pieces(Registry().collect()))) >= 4 + 5


def test_rendering_lets_the_loop_run_between_pieces():
    async def run():
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(count())
        text = await render(Registry().collect())
        other.cancel()
        assert text == generate_latest(Registry())
        assert turns >= 9

    asyncio.run(run())


def test_a_pause_among_the_families_is_a_piece_without_text():
    with_pauses = [None, *Registry().collect(), None]
    assert b"".join(pieces(with_pauses)) == generate_latest(Registry())
    assert list(pieces([None])) == [b""]


@pytest.fixture(scope="module")
def crowded() -> Iterator[Broker]:
    """Many partitions, and a group that has committed in all of them."""
    topics = {f"t{i}": PARTITIONS // 6 for i in range(6)}
    with Broker() as broker:
        with BlockingClient(broker.bootstrap_servers, request_timeout_ms=60_000) as client:
            for name, partitions in topics.items():
                client.call(client.admin.create_topics, {name: partitions})
            committed = {TopicPartition(name, i): 0 for name, n in topics.items() for i in range(n)}
            client.call(client.admin.commit, "g", committed)
        yield broker


def test_no_piece_of_a_scrape_takes_longer_with_more_partitions(crowded: Broker) -> None:
    """What is done between two pauses is less than a slice, and does not even look at all partitions."""

    def scraped(node: Node) -> list[tuple[int, bytes]]:
        found = []
        work = pieces(families(node, Lags(node), 1.0, [], 0))
        while True:
            calls = 0

            def count(_frame: object, event: str, _argument: object) -> None:
                nonlocal calls
                calls += event in ("call", "c_call")

            sys.setprofile(count)
            try:
                piece = next(work, None)
            finally:
                sys.setprofile(None)
            if piece is None:
                return found
            found.append((calls, piece[:60]))

    found = crowded.look(scraped)
    assert len(found) > PARTITIONS // ROWS_AT_ONCE
    calls, piece = max(found)
    assert calls < PARTITIONS < SLICE_CALLS, piece


def test_partitions_and_groups_may_go_while_a_scrape_pauses(crowded: Broker) -> None:
    def scraped(node: Node) -> list[str]:
        partitions = dict(node.replicas.partitions)
        names = []
        try:
            for family in families(node, Lags(node), 1.0, [], 0):
                if family is not None:
                    names.append(family.name)
                elif node.replicas.partitions:
                    node.replicas.partitions.popitem()
        finally:
            node.replicas.partitions.clear()
            node.replicas.partitions.update(partitions)
        return names

    assert "kafka_topic_partition_replicas" in crowded.look(scraped)
