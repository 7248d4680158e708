"""What Grafana boards ask for is answered by a node, or docs/metrics.md says why it is not."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from odradek.client.blocking import BlockingClient
from odradek.core.types import TopicPartition
from odradek.http.app import App
from odradek.http.message import Request
from odradek.testing import Broker
from tests.support.boards import BOARDS

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def series(broker: Broker) -> dict[str, list[dict[str, str]]]:
    """The labels of every series of a node that has a topic and a group."""
    with BlockingClient(broker.bootstrap_servers) as client:
        client.call(client.admin.create_topics, {"t": 1})
        with client.producer() as producer:
            producer.deliver("t", b"v")
        client.call(client.admin.commit, "g", {TopicPartition("t", 0): 0})
        assert broker.node is not None
        answer = broker.run(App(broker.node)(Request("GET", "/metrics", True)))
    assert answer.status == 200
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(dict(sample.labels))
    return found


def documented() -> dict[tuple[str, str], str]:
    """Board and metric of every row of the table of what has no series, and the reason."""
    table = PAGE.read_text().split("## Boards", 1)[1]
    rows = re.findall(r"^\| ([\w, -]+) \| `(\w+)` \| (.+) \|$", table, re.M)
    return {(board, metric): why for boards, metric, why in rows for board in boards.split(", ")}


def test_every_query_of_a_board_has_a_series_or_a_documented_reason_for_none() -> None:
    with Broker() as broker:
        found = series(broker)
    unanswered = {
        (board, query.metric)
        for board, queries in BOARDS.items()
        for query in queries
        if not any(labels.keys() >= set(query.labels) for labels in found.get(query.metric, []))
    }
    assert unanswered == documented().keys()


def test_a_node_on_its_own_has_the_values_that_a_board_must_show() -> None:
    with Broker() as broker, BlockingClient(broker.bootstrap_servers) as client:
        client.call(client.admin.create_topics, {"t": 2})
        assert broker.node is not None
        answer = broker.run(App(broker.node)(Request("GET", "/metrics", True)))
    values = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }
    at = frozenset({("topic", "t"), ("partition", "1")})
    wanted = {
        "kafka_topic_partition_replicas": 1,
        "kafka_topic_partition_in_sync_replica": 1,
        "kafka_topic_partition_under_replicated_partition": 0,
        "kafka_topic_partition_leader_is_preferred": 1,
        "kafka_cluster_partition_replicascount": 1,
        "kafka_cluster_partition_insyncreplicascount": 1,
        "kafka_cluster_partition_underreplicated": 0,
        "kafka_cluster_partition_laststableoffsetlag": 0,
        "kafka_cluster_partition_atminisr": 1,
        "kafka_cluster_partition_underminisr": 0,
    }
    assert {name: values[name, at] for name in wanted} == wanted
    assert values["kafka_server_replicamanager_atminisrpartitioncount", frozenset()] == 2
    state = frozenset({("current_state", "leader")})
    assert values["kafka_server_raftmetrics_current_state", state] == 1
    assert values["kafka_server_raftmetrics_high_watermark", frozenset()] > 0
    clients = frozenset({("listener", "PLAINTEXT"), ("networkProcessor", "0")})
    assert values["kafka_server_socket_server_metrics_connection_count", clients] >= 1
    assert values["process_open_fds", frozenset()] > 3
    for name in (
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    ):
        assert 0 <= values[name, frozenset()] <= 1
