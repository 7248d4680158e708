"""The cluster as its controller sees it, as metric families: brokers, topics, partitions in trouble.

Kafka's names (`kafka.controller:type=KafkaController`) as jmx_exporter writes them, kafka_exporter's beside
them. All of it is read off the image, so that every node has it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric

from odradek.http.rows import ROWS_AT_ONCE, gauge
from odradek.metadata.image import BrokerRegistration

if TYPE_CHECKING:
    from odradek.http.observed import Observed

_PREFIX = "kafka_controller_kafkacontroller"
_FENCED, _CONTROLLED_SHUTDOWN, _ACTIVE = 10, 20, 30


def controller(node: "Observed") -> Iterator[Metric | None]:
    image = node.metadata.image
    count = leaderless = imbalanced = 0
    for topic in list(image.topics_by_name.values()):
        for partition in list(topic.partitions.values()):
            if count % (10 * ROWS_AT_ONCE) == 0:
                yield None
            count += 1
            leaderless += not partition.has_leader
            imbalanced += partition.leader != partition.replicas[0]
    yield gauge(f"{_PREFIX}_activecontrollercount", "1 on the active controller", node.quorum.is_active)
    yield gauge(f"{_PREFIX}_globaltopiccount", "Topics", len(image.topics_by_name))
    yield gauge(f"{_PREFIX}_globalpartitioncount", "Partitions", count)
    yield gauge(f"{_PREFIX}_offlinepartitionscount", "Partitions without a leader", leaderless)
    yield gauge(
        f"{_PREFIX}_preferredreplicaimbalancecount",
        "Partitions that their first replica does not lead",
        imbalanced,
    )
    yield from _brokers(list(image.brokers.values()))


def _brokers(brokers: list[BrokerRegistration]) -> Iterator[Metric]:
    serving = sum(not b.fenced for b in brokers)
    stopping = sum(b.in_controlled_shutdown for b in brokers)
    yield gauge(f"{_PREFIX}_activebrokercount", "Brokers that serve", serving)
    yield gauge(f"{_PREFIX}_fencedbrokercount", "Brokers that are fenced", len(brokers) - serving)
    yield gauge(f"{_PREFIX}_controlledshutdownbrokercount", "Brokers that stop or have stopped", stopping)
    states = GaugeMetricFamily(
        f"{_PREFIX}_brokerregistrationstate",
        "10 for a fenced broker, 20 for one that stops, 30 for an active one",
        labels=["broker"],
    )
    info = GaugeMetricFamily("kafka_broker_info", "Brokers that serve", labels=["id", "address"])
    for broker in brokers:
        states.add_metric([str(broker.id)], _state(broker))
        for endpoint in list(broker.endpoints.values())[:1]:
            info.add_metric([str(broker.id), f"{endpoint.host}:{endpoint.port}"], not broker.fenced)
    yield states
    yield gauge("kafka_brokers", "Brokers that serve", serving)
    yield info


def _state(broker: BrokerRegistration) -> int:
    if broker.fenced:
        return _FENCED
    return _CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else _ACTIVE
