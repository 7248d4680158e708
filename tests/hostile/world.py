"""What a broker holds before it meets hostile requests, so that they reach the code behind the first check.

Topics, one of them wide, groups with offsets, groups with members, transactional ids.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from odradek.core.types import coordinator_partition
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import encode_request, parse_response_header
from odradek.wire.messages import request_types, response_decoder
from tests.hostile.stage import Stage, staged

Client = Any
"""A connection, as its place knows it."""
SHARDS = 5
SETTINGS = {
    "offsets_topic_num_partitions": str(SHARDS),
    "transaction_state_log_num_partitions": str(SHARDS),
}
QUIET_SHARD = 0
"""No long request is for a single group of this shard: a shard handles one command after another."""


class Place(Protocol):
    """Where a broker can be asked: a stage, or a process."""

    def client(self) -> AbstractContextManager[Client]: ...
    def ask(self, client: Client, frame: bytes) -> bytes | None:
        """The answer, or None where the broker hangs up."""
        ...

    def wait_until_idle(self) -> None:
        """Wait until the broker has nothing left to do, where that can be told."""
        ...


class Size(NamedTuple):
    """How much of everything there is."""

    topics: int = 600
    wide: int = 1_500
    groups: int = 300
    transactional_ids: int = 400
    consumer_groups: int = 50


USUAL_SIZE = Size()


class World:
    """A broker that holds something."""

    def __init__(self, place: Place, size: Size = USUAL_SIZE) -> None:
        self.place = place
        self.size = size
        self._salt = 0
        self.topics = [f"known-{i:04d}" for i in range(size.topics)]
        self.groups = [f"group-{i:04d}" for i in range(size.groups)]
        self.consumer_groups = [f"members-{i:04d}" for i in range(size.consumer_groups)]
        self.transactional_ids = [f"txn-{i:04d}" for i in range(size.transactional_ids)]
        self.topic_ids: dict[str, UUID] = {}
        with place.client() as client:
            self._fill(client)
        self.wide_id = self.topic_ids["wide"]

    def next_salt(self) -> int:
        """Another number for names that nothing else has."""
        self._salt += 1
        return self._salt

    # --- state ----------------------------------------------------------------------------------------

    def _fill(self, client: Client) -> None:
        self.create_topics(client, self.topics)
        self.create_topics(client, ["wide"], self.size.wide)
        for key_type, keys in ((0, self.groups), (1, self.transactional_ids)):
            self.wait_for_coordinators(client, key_type, keys[:1])
        for group in self.groups:
            self.commit(client, group, 1)
        self.commit(client, self.groups[0], self.size.wide)
        for transactional_id in self.transactional_ids:
            self.init_producer(client, transactional_id)
        for group in self.consumer_groups:
            self.join_consumer_group(client, group)

    def call(self, client: Client, api_key: ApiKey, version: int, **fields: Any) -> Any:
        """An honest request and its answer."""
        types = request_types(api_key)
        request = next(
            made for name, made in vars(types).items() if name.endswith("Request") and isinstance(made, type)
        )
        frame = self.place.ask(client, encode_request(api_key, version, 1, "world", request(**fields)))
        assert frame is not None, f"the node hung up on {api_key.name}"
        _, position = parse_response_header(frame, 0, api_key, version)
        return response_decoder(api_key, version)(frame, position)[0]

    def create_topics(self, client: Client, names: Sequence[str], partitions: int = 1) -> None:
        types = request_types(ApiKey.CREATE_TOPICS)
        made = [
            types.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
            )
            for name in names
        ]
        answer = self.call(client, ApiKey.CREATE_TOPICS, 7, topics=made, timeout=30_000, validate_only=False)
        for topic in answer.topics:
            assert topic.error_code == 0, topic
            self.topic_ids[topic.name] = topic.topic_id

    def wait_for_coordinators(self, client: Client, key_type: int, keys: Sequence[str]) -> None:
        for _ in range(1_000):
            answer = self.call(
                client, ApiKey.FIND_COORDINATOR, 6, key="", key_type=key_type, coordinator_keys=list(keys)
            )
            if not any(found.error_code for found in answer.coordinators):
                return
            self.place.wait_until_idle()
        raise AssertionError("no coordinator")

    def commit(self, client: Client, group: str, partitions: int) -> None:
        types = request_types(ApiKey.OFFSET_COMMIT)
        rows = [
            types.OffsetCommitRequestPartition(
                partition_index=i, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
            )
            for i in range(partitions)
        ]
        topic = types.OffsetCommitRequestTopic(name="wide", partitions=rows)
        for _ in range(1_000):
            answer = self.call(
                client,
                ApiKey.OFFSET_COMMIT,
                9,
                group_id=group,
                generation_id_or_member_epoch=-1,
                member_id="",
                group_instance_id=None,
                topics=[topic],
            )
            if answer.topics[0].partitions[0].error_code == 0:
                return
            self.place.wait_until_idle()
        raise AssertionError(f"offsets of {group} are not taken: {answer.topics[0].partitions[0]}")

    def init_producer(self, client: Client, transactional_id: str) -> tuple[int, int]:
        for _ in range(1_000):
            answer = self.call(
                client,
                ApiKey.INIT_PRODUCER_ID,
                5,
                transactional_id=transactional_id,
                transaction_timeout=60_000,
                producer_id=-1,
                producer_epoch=-1,
            )
            if answer.error_code == 0:
                return answer.producer_id, answer.producer_epoch
            self.place.wait_until_idle()
        raise AssertionError(f"no producer id for {transactional_id}: {answer.error_code}")

    def join_group(self, client: Client, group: str) -> tuple[str, int]:
        types = request_types(ApiKey.JOIN_GROUP)
        answer = self.call(
            client,
            ApiKey.JOIN_GROUP,
            3,
            group_id=group,
            session_timeout=30_000,
            rebalance_timeout=30_000,
            member_id="",
            protocol_type="consumer",
            protocols=[types.JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        assert answer.error_code == 0, answer
        return answer.member_id, answer.generation_id

    def join_consumer_group(self, client: Client, group: str) -> int:
        answer = self.call(
            client,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=group,
            member_id="member",
            member_epoch=0,
            rebalance_timeout=30_000,
            subscribed_topic_names=[self.topics[0]],
            topic_partitions=[],
        )
        assert answer.error_code == 0, answer
        epoch: int = answer.member_epoch
        return epoch

    def fresh(self, kind: str) -> str:
        """A name that nothing has, outside the quiet shard."""
        while coordinator_partition(name := f"{kind}-{self.next_salt():06x}", SHARDS) == QUIET_SHARD:
            pass
        return name

    def fresh_quiet(self, kind: str) -> str:
        """A name that nothing has, in the quiet shard."""
        while coordinator_partition(name := f"{kind}-{self.next_salt():06x}", SHARDS) != QUIET_SHARD:
            pass
        return name


class StagedWorld(World):
    """A world whose node is on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.warm: set[tuple[ApiKey, int]] = set()  # what was asked before, and at which version
        super().__init__(stage)


def memory_directory() -> str | None:
    """Where files are in memory, if that can be had: on a disk, a thousand logs take longer to make than all
    the cases take."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextmanager
def staged_world(**settings: str) -> Iterator["StagedWorld"]:
    """A world on a stage of its own; settings are given with _ for a dot."""
    with (
        TemporaryDirectory(prefix="odradek-hostile-", dir=memory_directory()) as directory,
        staged(Path(directory) / "data", **(SETTINGS | settings)) as stage,
    ):
        yield StagedWorld(stage)
