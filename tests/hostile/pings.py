"""Short requests of a well-behaved client: how long they wait for others, in turns and in work."""

from typing import NamedTuple

from odradek.wire.api_keys import ApiKey
from tests.hostile.names import RECORDS
from tests.hostile.stage import Client, Stage
from tests.hostile.world import StagedWorld
from tests.support.produce import produce_values
from tests.support.raw import request_bytes


class Wait(NamedTuple):
    """What lay between a request and its answer."""

    turns: int
    events: int


def short_requests(world: StagedWorld, client: Client) -> dict[str, bytes]:
    """A request of each kind that must never wait for long work."""
    topic, group = world.topics[0], world.fresh_quiet("beating")
    member_id, generation_id = world.join_group(client, group)
    beat = {"group_id": group, "generation_id": generation_id, "member_id": member_id}
    return {
        "api-versions": request_bytes(ApiKey.API_VERSIONS, 0, {}),
        "metadata": request_bytes(ApiKey.METADATA, 8, {"topics": [{"name": topic}]}),
        "produce": request_bytes(ApiKey.PRODUCE, 9, produce_values(topic, RECORDS)),
        "heartbeat": request_bytes(ApiKey.HEARTBEAT, 2, beat),
    }


class Pinger:
    """Sends one short request after the other and notes how long each waited."""

    def __init__(self, stage: Stage, client: Client, asks: dict[str, bytes]) -> None:
        self._stage = stage
        self._client = client
        self._asks = list(asks.items())
        self._sent = 0
        self._turns = 0
        self._began = 0
        self.waits: dict[str, list[Wait]] = {name: [] for name in asks}
        self._send()

    def _send(self) -> None:
        self._client.send(self._asks[self._sent % len(self._asks)][1])
        self._turns, self._began = 0, self._stage.work.total

    def turned(self) -> None:
        """A turn is over."""
        self._turns += 1
        if self._client.answer() is not None:
            name = self._asks[self._sent % len(self._asks)][0]
            self.waits[name].append(Wait(self._turns, self._stage.work.total - self._began))
            self._sent += 1
            self._send()

    @property
    def count(self) -> int:
        return self._sent
