"""What honest clients send is far from the limits: these would fail if the limits were too small to serve."""

import pytest

from odradek.wire.api_keys import ApiKey
from tests.hostile.cases import measure
from tests.hostile.limits import LIMIT
from tests.hostile.names import RECORDS
from tests.hostile.pings import short_requests
from tests.hostile.world import StagedWorld
from tests.support.raw import request_bytes
from tests.support.stored import fetch_values

KINDS = ("api-versions", "metadata", "produce", "heartbeat")


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_request_is_one_turn(world: StagedWorld, kind: str) -> None:
    with world.stage.client() as client:
        ask = short_requests(world, client)[kind]
        world.stage.ask(client, ask)
        measured = measure(world, kind, ask)
    measured.check()
    assert measured.worst.events < LIMIT / 4, str(measured)


def test_a_fetch_of_one_partition_is_one_turn(world: StagedWorld) -> None:
    ask = request_bytes(ApiKey.FETCH, 12, fetch_values([(world.topics[0], 0, 0)]))
    measure(world, "the first one", ask)
    measured = measure(world, "a fetch", ask)
    measured.check()
    assert measured.worst.events < LIMIT / 4, str(measured)


def test_a_topic_is_created_within_a_slice(world: StagedWorld) -> None:
    def create(name: str) -> bytes:
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
        return request_bytes(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout": 30_000})

    measure(world, "the first one", create(world.fresh("made")))
    measure(world, "a topic", create(world.fresh("made"))).check()


def test_an_offset_is_committed_within_a_slice(world: StagedWorld) -> None:
    row = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
    values = {
        "group_id": world.groups[0],
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": [{"name": "wide", "partitions": [{**row, "committed_metadata": ""}]}],
    }
    ask = request_bytes(ApiKey.OFFSET_COMMIT, 8, values)
    measure(world, "the first one", ask)
    measure(world, "a commit", ask).check()


def test_records_are_valid(world: StagedWorld) -> None:
    """The batch that hostile produces carry is one that the node takes."""
    with world.stage.client() as client:
        ask = short_requests(world, client)["produce"]
        answer = world.stage.ask(client, ask)
    assert RECORDS in ask
    assert answer is not None
    assert len(answer) < 80, "an error comes with a message"
