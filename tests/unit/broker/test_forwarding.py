"""What a client asks of a broker reaches the controller of another node in an Envelope, on its behalf."""

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.principals import packed_address
from odradek.testing import Cluster
from odradek.testing.broker import Broker
from odradek.wire.api_keys import ApiKey
from tests.support.raw import Connection

CREATE_TOPICS_VERSION = 5


def answered(broker: Broker, api_key: ApiKey) -> int:
    return broker.look(
        lambda node: (
            sum(node.metrics.requests[api_key].versions.values()) if api_key in node.metrics.requests else 0
        )
    )


def test_a_topic_is_made_through_a_broker_that_is_not_the_controller() -> None:
    with Cluster(3) as cluster:
        active = cluster.controller_id()
        assert active is not None
        other = next(broker for node_id, broker in cluster.brokers.items() if node_id != active)
        before = answered(cluster.brokers[active], ApiKey.ENVELOPE)
        topic = {"name": "forwarded", "num_partitions": 1, "replication_factor": 1}
        with Connection(other.bootstrap_servers) as connection:
            for code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                values = {"topics": [{**topic, "assignments": [], "configs": []}], "timeout": 30_000}
                answer = connection.call(
                    ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, {**values, "validate_only": False}
                )
                assert answer.topics[0].error_code == code
        assert answered(cluster.brokers[active], ApiKey.ENVELOPE) == before + 2
        assert answered(cluster.brokers[active], ApiKey.CREATE_TOPICS) == 0
        assert cluster.leader_of("forwarded-0") is not None


@pytest.mark.parametrize(
    ("host", "packed"),
    [
        ("192.0.2.7", bytes((192, 0, 2, 7))),
        ("::1", bytes(15) + b"\1"),
        ("fe80::1%eth0", b"\xfe\x80" + bytes(13) + b"\1"),
        ("node1", bytes((127, 0, 0, 1))),
    ],
)
def test_the_address_of_the_client_goes_along(host: str, packed: bytes) -> None:
    assert packed_address(host) == packed
