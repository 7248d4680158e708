"""What a user reads when a test fails: the line of the test, one sentence, and what this test did."""

import time

from odradek.client.blocking import BlockingClient
from odradek.testing import Broker

pytest_plugins = ["pytester"]


def test_a_report_is_about_the_test_that_failed(run):
    result = run(
        """
import logging
import pytest
from clients import send

@pytest.fixture(scope="session")
def reference(kafka_server):
    send(kafka_server, "reference", "a")

def say(kafka, line):
    kafka.server.broker.look(lambda node: logging.getLogger("odradek.test").info(line))

def test_passes(kafka, reference):
    say(kafka, "of an earlier test")

def test_fails(kafka, reference):
    say(kafka, "of this test")
    send(kafka, kafka.topic("orders"), "mine")
    assert False
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["broker 127.0.0.1:*", "orders-*-0: offsets 0 to 1", "broker log:", "*of this test*"]
    )
    result.stdout.no_fnmatch_line("*of an earlier test*")
    result.stdout.no_fnmatch_line("reference-0: *")


def test_a_report_on_a_given_broker_is_about_the_test_too(run):
    with Broker() as given, BlockingClient(given.bootstrap_servers) as client:
        client.call(client.admin.create_topics, {"production": 1})
        result = run(
            """
from clients import send

def test_fails(kafka):
    kafka.group("never-used")
    send(kafka, kafka.topic("orders"), "mine")
    assert False
""",
            "--kafka-bootstrap",
            given.bootstrap_servers,
        )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["broker 127.0.0.1:*", "orders-*-0: offsets 0 to 1", "*value=b'mine'"])
    result.stdout.no_fnmatch_line("*production*")
    result.stdout.no_fnmatch_line("*never-used*:*")


def test_failures_point_at_the_tests_own_line(run):
    result = run(
        """
import pytest

def test_short(kafka):
    kafka.values(kafka.topic(), n=1, timeout=0.1)

def test_unknown(kafka):
    kafka.values("nothing", n=1, timeout=0.1)

def test_not_once(kafka):
    t = kafka.topic()
    kafka.assert_exactly_once(source=t, sink="nowhere", group="g", timeout=0.1)

def test_config(kafka):
    kafka.topic(config={"retention.mss": 1})

def test_fault(kafka):
    kafka.faults.errors("Produc", "NONE")

def test_down(kafka):
    with kafka.faults.broker_down(leader_of="nothing-0"):
        pass

def test_clock(kafka):
    kafka.clock.advance(hours=-1)
"""
    )
    result.assert_outcomes(failed=7)
    result.stdout.no_fnmatch_line("*src/odradek/*")
    result.stdout.no_fnmatch_line("*site-packages*")
    result.stdout.no_fnmatch_line("*asyncio*")
    assert sum(line.startswith(">  ") for line in result.outlines) == 7


def test_a_wrong_marker_is_one_sentence(run):
    result = run(
        """
import pytest

@pytest.mark.kafka(config={"num.partition": 3})
def test_typo(kafka):
    pass
"""
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["the broker did not start: Unknown configuration num.partition; did you mean num.partitions?"]
    )
    assert not [line for line in result.outlines if ".py:" in line and "Error" in line]
    assert len(result.outlines) < 20


MANY = """
import pytest

@pytest.mark.parametrize("i", range(10))
def test_one(kafka, i):
    kafka.topic()
"""


def test_an_address_where_nothing_is_fails_every_test_at_once(run):
    began = time.monotonic()
    result = run(MANY, "--kafka-bootstrap", "127.0.0.1:1")
    assert time.monotonic() - began < 10
    result.assert_outcomes(errors=10)
    result.stdout.fnmatch_lines(
        ["--kafka-bootstrap 127.0.0.1:1: no Kafka can be reached: Connection refused"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*src/odradek/*")


def test_a_host_that_nobody_knows_is_said(run):
    result = run(MANY, "--kafka-bootstrap", "nowhere.invalid:9092")
    result.assert_outcomes(errors=10)
    result.stdout.re_match_lines(
        [r"--kafka-bootstrap nowhere.invalid:9092: no Kafka can be reached: [A-Z][a-z ]+"]
    )


def test_what_is_no_address_is_said(run):
    result = run(MANY, "--kafka-bootstrap", "localhost:kafka")
    result.assert_outcomes(errors=10)
    result.stdout.fnmatch_lines(["--kafka-bootstrap localhost:kafka: not an address: 'localhost:kafka'"])


def test_a_broker_that_advertises_an_unreachable_address_is_said(run):
    listeners = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    advertised = {"listeners": listeners, "advertised.listeners": "PLAINTEXT://127.0.0.1:1"}
    with Broker(advertised) as given:
        result = run(MANY, "--kafka-bootstrap", given.bootstrap_servers)
    result.assert_outcomes(errors=10)
    result.stdout.fnmatch_lines(["*no Kafka can be reached: *"])
