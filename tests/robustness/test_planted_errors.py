"""An error that a test plants reaches the client, whichever API and version it is planted for."""

import dataclasses
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.core.errors import ErrorCode
from odradek.testing.broker import Broker
from tests.compat.scenarios import SCENARIOS, World
from tests.compat.test_versions import ADVERTISED, CASES
from tests.support.raw import Connection

METADATA = 3


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        yield running


def error_codes(answer: Any) -> Iterator[int]:
    for field in dataclasses.fields(answer):
        value = getattr(answer, field.name)
        if field.name in ("error_code", "partition_error_code"):
            yield int(value)
        for item in value if isinstance(value, tuple) else ():
            if dataclasses.is_dataclass(item):
                yield from error_codes(item)


@pytest.mark.parametrize(("api_key", "version"), CASES, ids=[f"{ADVERTISED[k][0]}-v{v}" for k, v in CASES])
def test_every_error_in_the_answer_is_the_planted_one(broker, api_key, version):
    world = World(broker.bootstrap_servers, lambda prefix="t": f"{prefix}-{uuid.uuid4().hex[:6]}")
    conversation = SCENARIOS[api_key](world, version)
    values = next(conversation)
    broker.look(lambda node: node.faults.plant(api_key, ErrorCode.NOT_COORDINATOR, 1))
    try:
        with Connection(broker.bootstrap_servers) as connection:
            answer = connection.call(api_key, version, values)
    finally:
        broker.look(lambda node: node.faults.clear())
        conversation.close()
    assert set(error_codes(answer)) == {ErrorCode.NOT_COORDINATOR}


def test_a_planted_metadata_error_names_the_topics_and_keeps_the_brokers(broker):
    with Connection(broker.bootstrap_servers) as connection:
        broker.look(lambda node: node.faults.plant(METADATA, ErrorCode.LEADER_NOT_AVAILABLE, 1))
        answer = connection.call(
            METADATA, 9, {"topics": [{"name": "fresh"}], "allow_auto_topic_creation": True}
        )
        assert len(answer.brokers) == 1
        assert [(t.name, int(t.error_code)) for t in answer.topics] == [("fresh", 5)]
        assert "fresh" not in broker.look(lambda node: dict(node.metadata.image.topics_by_name))
