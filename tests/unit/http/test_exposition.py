"""The pieces of an exposition are, joined, what prometheus-client writes in one go."""

import asyncio
from types import SimpleNamespace

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest

from odradek.http.exposition import SAMPLES_AT_ONCE, pieces, render
from odradek.http.families import ROWS_AT_ONCE, _groups, _logs
from odradek.http.lags import GroupLags


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


def test_long_lists_of_partitions_and_groups_are_looked_through_with_pauses():
    count = 4 * ROWS_AT_ONCE
    log = SimpleNamespace(size_bytes=1, log_start_offset=0, log_end_offset=1, segments=[0], high_watermark=1)
    partitions = {("t", i): SimpleNamespace(log=log) for i in range(count)}
    node = SimpleNamespace(replicas=SimpleNamespace(partitions=partitions))
    pauses = 0
    for family in _logs(node):
        if family is None:
            pauses += 1
            partitions.pop(("t", pauses))  # a topic that is deleted meanwhile does no harm
    assert pauses == 4
    lags = SimpleNamespace(
        groups=lambda now_ms: (GroupLags(f"g{i}", "classic", "Empty", 1, []) for i in range(count))
    )
    assert list(_groups(lags, 0)).count(None) == 4
