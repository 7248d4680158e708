"""Many short requests at once, on one connection: each turn handles a slice of them."""

import pytest

from odradek.wire.api_keys import ApiKey
from tests.hostile.cases import taken
from tests.hostile.pings import short_requests
from tests.hostile.world import StagedWorld
from tests.support.raw import request_bytes

MANY = 60


@pytest.mark.parametrize(
    "kind", ["api-versions", "metadata", "produce", "heartbeat", "init-producer-id", "commit"]
)
def test_a_flood_of_short_requests_is_handled_a_slice_in_each_turn(world: StagedWorld, kind: str) -> None:
    stage = world.stage
    with stage.client() as client:
        asks = short_requests(world, client)
        transactional_id = world.fresh("txn")
        world.init_producer(client, transactional_id)
        init = {"transactional_id": transactional_id, "transaction_timeout": 60_000}
        asks["init-producer-id"] = request_bytes(ApiKey.INIT_PRODUCER_ID, 2, init)
        offset = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
        topics = [{"name": world.topics[0], "partitions": [offset]}]
        asks["commit"] = request_bytes(
            ApiKey.OFFSET_COMMIT, 6, {"group_id": world.groups[0], "topics": topics}
        )
        assert stage.ask(client, asks[kind]) is not None
        with stage.work.counting():
            client.send(asks[kind] * MANY)
            for _ in range(MANY):
                stage.until(lambda: client.answer() is not None)
            measured = taken(world, f"{MANY} times {kind}")
        measured.check()
