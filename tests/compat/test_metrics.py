"""GET /metrics and /healthz of a running node: every counter is moved by something, every gauge is true."""

import http.client
import re
import signal
import time
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.batches import batch
from tests.support.group import Member
from tests.support.node import running
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import fetch
from tests.support.topics import create_topic

# Names that dashboards query: Strimzi's, kafka_exporter's, kafka-lag-exporter's, ours.
EXPECTED = {
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "kafka_network_requestmetrics_requests_total",
    "kafka_network_requestmetrics_totaltimems",
    "kafka_network_requestmetrics_totaltimems_count",
    "kafka_server_socket_server_metrics_connection_creation_total",
    "kafka_server_socket_server_metrics_connection_close_total",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_globaltopiccount",
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_log_log_size",
    "kafka_topic_partitions",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_oldest_offset",
    "kafka_brokers",
    "odradek_groups",
    "kafka_consumergroup_members",
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_lag_sum",
    "kafka_consumergroup_group_lag_seconds",
    "odradek_loop_stall_seconds_bucket",
    "odradek_loop_stall_seconds_count",
}
GAUGES_OF_COUNTS = {
    "kafka_server_brokermetadatametrics_metadata_load_error_count",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_log_logcleanermanager_uncleanable_partitions_count",
}
OF_SEVERAL_NODES = {
    f"kafka_server_raftchannelmetrics_{name}_total"
    for name in ("request", "response", "incoming_byte", "outgoing_byte")
} | {
    "kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_server_replicamanager_failedisrupdates_total",
    "kafka_server_replicamanager_isrexpands_total",
    "kafka_server_replicamanager_isrshrinks_total",
}
"""One node has nobody to ask and no other replicas. tests/cluster/test_metrics.py, test_isr.py beside it, and
tests/unit/http move them."""
CLEANER = ("--set", "log.cleaner.backoff.ms=100")
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}


class Scraped:
    """One scrape: values by name and labels, and which names are counters."""

    def __init__(self, text: str) -> None:
        self.values: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        self.counters: set[str] = set()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.values[sample.name, frozenset(sample.labels.items())] = sample.value
                if family.type == "counter" or sample.name.endswith(("_count", "_sum")):
                    self.counters.add(sample.name)
        self.counters -= GAUGES_OF_COUNTS | OF_SEVERAL_NODES

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.values}

    def get(self, name: str, **labels: str) -> float | None:
        return self.values.get((name, frozenset(labels.items())))

    def total(self, name: str) -> float:
        return sum(v for (n, _), v in self.values.items() if n == name)


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with running(tmp_path_factory.mktemp("metrics") / "data", "--http", "0", *CLEANER) as process:
        found = re.search(r"http (\S+:\d+)", process.ready_line)
        assert found, process.ready_line
        process.http = found[1]
        yield process


def scrape(node) -> Scraped:
    with urllib.request.urlopen(f"http://{node.http}/metrics", timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        return Scraped(answer.read().decode())


def stall(node) -> None:
    """Keep the node from running for a while, as a machine that swaps would."""
    node.process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    node.process.send_signal(signal.SIGCONT)


def work(node, topic: str, group: str) -> None:
    """Move everything that counts: good and bad produces and fetches, a cleaning, a group, connections."""
    with Connection(node.bootstrap) as connection:
        produce(connection, topic, batch([b"v"] * 10))
        produce(connection, topic, batch(crc_xor=1))
        fetch(connection, topic)
        assert fetch(connection, topic, 999)[0] == 1
        for _ in range(3):
            produce(connection, f"{topic}-compacted", batch(key=b"k"))
            time.sleep(0.01)
    with Member(node.bootstrap, group) as member:
        member.stabilise()
        member.commit(topic, 4)
    stall(node)


def test_every_counter_is_moved_by_some_work(node):
    create_topic(node.bootstrap, "moved", 1)
    create_topic(node.bootstrap, "moved-compacted", 1, COMPACTED)
    work(node, "moved", "movers")
    before = scrape(node)
    work(node, "moved", "movers-again")
    deadline = time.monotonic() + 10
    while True:
        after = scrape(node)
        still = {n for n in after.counters if after.total(n) <= before.total(n)}
        if not still:
            break
        assert time.monotonic() < deadline, f"nothing moves {sorted(still)}"
        time.sleep(0.1)
    assert after.names >= EXPECTED, f"missing: {sorted(EXPECTED - after.names)}"


def test_the_numbers_are_the_topics_own(node):
    create_topic(node.bootstrap, "numbers", 3)
    with Connection(node.bootstrap) as connection:
        sent = batch([b"v"] * 7)
        produce(connection, "numbers", sent, partition=1)
        fetch(connection, "numbers", partition=1)
    seen = scrape(node)
    prefix = "kafka_server_brokertopicmetrics"
    assert seen.get(f"{prefix}_bytesin_total", topic="numbers") == len(sent)
    assert seen.get(f"{prefix}_bytesout_total", topic="numbers") == len(sent)
    assert seen.get(f"{prefix}_messagesin_total", topic="numbers") == 7
    assert seen.get("kafka_topic_partitions", topic="numbers") == 3
    assert seen.get("kafka_topic_partition_current_offset", topic="numbers", partition="1") == 7
    assert seen.get("kafka_log_log_size", topic="numbers", partition="1") == len(sent)
    assert seen.get("kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert seen.get("kafka_controller_kafkacontroller_activecontrollercount") == 1
    partitions = seen.get("kafka_server_replicamanager_partitioncount")
    assert partitions == seen.get("kafka_server_replicamanager_leadercount") >= 3
    p99 = seen.get("kafka_network_requestmetrics_totaltimems", request="Produce", quantile="0.99")
    assert p99 is not None
    assert 0 < p99 < 10_000


def test_a_lag_is_what_is_unread_and_absent_without_a_commit(node):
    create_topic(node.bootstrap, "lagging", 2)
    with Connection(node.bootstrap) as connection, Member(node.bootstrap, "laggards") as member:
        produce(connection, "lagging", batch([b"v"] * 10))
        member.stabilise()
        member.commit("lagging", 4)
        first = scrape(node)
        at = {"consumergroup": "laggards", "topic": "lagging"}
        assert first.get("kafka_consumergroup_lag", **at, partition="0") == 6
        assert first.get("kafka_consumergroup_lag", **at, partition="1") is None
        assert first.get("kafka_consumergroup_lag_sum", **at) == 6
        assert first.get("kafka_consumergroup_current_offset", **at, partition="0") == 4
        assert first.get("kafka_consumergroup_members", consumergroup="laggards") == 1
        assert first.get("odradek_groups", protocol="classic", state="Stable") >= 1
        produce(connection, "lagging", batch([b"v"] * 10))
        seconds = {"group": "laggards", "topic": "lagging", "partition": "0"}
        assert scrape(node).get("kafka_consumergroup_group_lag_seconds", **seconds) >= 0
        member.commit("lagging", 99)
        assert scrape(node).get("kafka_consumergroup_lag", **at, partition="0") == 0, "never negative"


def test_a_deleted_topic_disappears(node):
    create_topic(node.bootstrap, "deleted", 1)
    assert scrape(node).get("kafka_topic_partitions", topic="deleted") == 1
    with Connection(node.bootstrap) as connection:
        connection.call(20, 5, {"topic_names": ["deleted"], "timeout": 10_000})
    assert not [k for k in scrape(node).values if ("topic", "deleted") in k[1]]


def test_health_is_ok_and_other_paths_are_not_found(node):
    with urllib.request.urlopen(f"http://{node.http}/healthz", timeout=20) as answer:
        assert (answer.status, answer.read()) == (200, b"ok\n")
    host, port = node.http.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    for method, path, status in (("GET", "/", 404), ("POST", "/metrics", 405), ("HEAD", "/metrics", 200)):
        connection.request(method, path)
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (status, method != "HEAD")
    connection.close()
