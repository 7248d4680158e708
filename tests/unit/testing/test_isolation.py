"""What one test leaves to the next: what the session made, and nothing that a test did."""

pytest_plugins = ["pytester"]


def test_what_a_session_made_stays(run):
    result = run(
        """
import pytest
from clients import send

@pytest.fixture(scope="session")
def reference(kafka_server):
    send(kafka_server, "reference", "once")
    client = kafka_server.client
    from odradek.core.types import TopicPartition
    client.call(client.admin.commit, "readers", {TopicPartition("reference", 0): 1})
    return "reference"

@pytest.mark.parametrize("i", range(3))
def test_read(kafka, reference, i):
    send(kafka, "mine", "x")
    assert kafka.values(reference, n=1) == [b"once"]
    assert sorted(kafka.server.topics()) == ["mine", "reference"]
    assert kafka.server.groups() == ["readers"]
"""
    )
    result.assert_outcomes(passed=3)


def test_topics_and_groups_of_a_test_are_gone_before_the_next_begins(run):
    result = run(
        """
import pytest
from clients import send
from odradek.core.types import TopicPartition

@pytest.mark.parametrize("i", range(20))
def test_same_names(kafka, i):
    assert kafka.server.topics() == kafka.server.groups() == []
    client = kafka.server.client
    client.call(client.admin.create_topics, {"orders": 3 if i % 2 else 1})
    send(kafka, "orders", str(i))
    client.call(client.admin.commit, "billing", {TopicPartition("orders", 0): 1})
    assert kafka.values("orders", n=1) == [str(i).encode()]
"""
    )
    result.assert_outcomes(passed=20)


def test_cleaning_up_spares_a_topic_made_anew_under_the_same_name(run):
    result = run(
        """
from odradek.testing import Broker
from odradek.client.blocking import BlockingClient

def test_by_id():
    with Broker() as broker, BlockingClient(broker.bootstrap_servers) as client:
        client.call(client.admin.create_topics, {"orders": 1})
        of_before = broker.contents()
        client.call(client.admin.delete_topics, ["orders"])
        client.call(client.admin.create_topics, {"orders": 1})
        broker.delete(of_before)
        assert list(broker.contents().topics.values()) == ["orders"]
"""
    )
    result.assert_outcomes(passed=1)


def test_a_moved_clock_is_not_the_next_tests(run):
    result = run(
        """
import time
import pytest
from clients import send

def now(kafka):
    return kafka.server.broker.look(lambda node: node.runtime.clock.now_ms()) / 1000

@pytest.mark.kafka(config={"num.partitions": 2})
@pytest.mark.parametrize("i", range(2))
def test_configured(kafka, i):
    assert abs(now(kafka) - time.time()) < 60
    kafka.clock.advance(minutes=2)

def test_moves(kafka):
    kafka.clock.advance(minutes=5)
    assert now(kafka) - time.time() > 200

def test_present(kafka):
    assert abs(now(kafka) - time.time()) < 60
    t = kafka.topic()
    send(kafka, t, "a")
    assert kafka.values(t, n=1) == [b"a"]

def test_same_broker_when_nothing_moved(kafka):
    assert abs(now(kafka) - time.time()) < 60

def test_shared(kafka, kafka_server):
    assert kafka.server is kafka_server
    kafka.clock.advance(minutes=5)

def test_after_shared(kafka, kafka_server):
    assert abs(now(kafka) - time.time()) < 60
"""
    )
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(
        [">   *kafka.clock.advance(minutes=5)", "E   *this test uses kafka_server, whose broker and clock*"]
    )


def test_a_session_keeps_its_broker_though_a_test_moves_its_own_clock(run):
    result = run(
        """
import pytest
from clients import send

@pytest.fixture(scope="session")
def reference(kafka_server):
    send(kafka_server, "reference", "once")
    return "reference"

def test_first(kafka, reference):
    assert kafka.values(reference, n=1) == [b"once"]

def test_moves(kafka):
    kafka.clock.advance(minutes=5)

def test_last(kafka, reference):
    assert kafka.values(reference, n=1) == [b"once"]
"""
    )
    result.assert_outcomes(passed=3)
