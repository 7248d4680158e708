"""A pytest run inside a pytest run: how the plugin's users meet it."""

import pytest

CLIENTS = """
import confluent_kafka

def send(kafka, topic, *values, **config):
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, **config})
    errors = []
    for value in values:
        producer.produce(topic, value, key=value, on_delivery=lambda e, m: e and errors.append(e))
    assert producer.flush(20) == 0
    return errors
"""


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run a test file in a pytest of its own process; the plugin comes in by its entry point.

    The file can `from clients import send`.
    """
    pytester.makepyfile(clients=CLIENTS)

    def run_file(source: str, *args: str):
        pytester.makepyfile(source)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", *args)

    return run_file
