"""Every setting of transactions acts: a node with another value of it behaves in another way."""

import asyncio
from typing import Any

import pytest

from odradek.broker.node import Node
from odradek.coordinators.transactions.config import TransactionConfig
from odradek.core.config.node import node_defaults
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode
from odradek.core.types import TRANSACTION_STATE_TOPIC, TopicPartition
from odradek.replication.led_log import LedLog
from odradek.sim.stories.plan import Settings
from odradek.sim.stories.transactions import TxnSettings
from odradek.sim.workloads.caller import Caller
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.sim.stage import SETTINGS, TID, TP, Stage, play

E = ErrorCode


def with_config(**config: str) -> Settings:
    """Settings of a node; `_` stands for the dots of a key."""

    class Changed(TxnSettings):
        def node_config(self) -> dict[str, str]:
            return {**TxnSettings.node_config(self), **{k.replace("_", "."): v for k, v in config.items()}}

    return Changed(**SETTINGS)  # type: ignore[arg-type]


COORDINATOR: dict[str, tuple[str, str, Any]] = {
    "transaction.max.timeout.ms": ("max_timeout_ms", "1234", 1234),
    "transactional.id.expiration.ms": ("id_expiration_ms", "1234", 1234),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": ("abort_interval_ms", "1234", 1234),
    "transaction.remove.expired.transaction.cleanup.interval.ms": ("remove_interval_ms", "1234", 1234),
    "transaction.two.phase.commit.enable": ("two_phase_commit", "false", False),
    "transaction.state.log.load.buffer.size": ("load_buffer_bytes", "1234", 1234),
    "request.timeout.ms": ("commit_timeout_ms", "1234", 1234),
}
"""What each does is shown in tests/unit/coordinators/transactions."""


@pytest.mark.parametrize("key", COORDINATOR)
def test_the_coordinator_goes_by_the_nodes_settings(key: str) -> None:
    field, text, value = COORDINATOR[key]
    changed = TransactionConfig.from_node(NodeConfig({**node_defaults("/data"), key: text}))
    assert getattr(changed, field) == value
    assert getattr(TransactionConfig.from_node(NodeConfig(node_defaults("/data"))), field) != value


def test_the_transaction_log_is_made_as_configured() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        topic = stage.node.metadata.image.topics_by_name[TRANSACTION_STATE_TOPIC]
        assert len(topic.partitions) == 5
        log = stage.node.replicas.partition(TopicPartition(TRANSACTION_STATE_TOPIC, 0)).log
        assert log.config.segment_bytes == 12_345_678
        assert log.config.min_insync_replicas == 1

    play(
        story,
        with_config(
            transaction_state_log_num_partitions="5",
            transaction_state_log_segment_bytes="12345678",
            transaction_state_log_min_isr="1",
        ),
    )


def test_the_transaction_log_is_compacted_as_it_is_and_never_led_by_who_lost_records() -> None:
    """Whatever the node's own defaults are: a lost decision would be a transaction half committed."""

    async def story(stage: Stage) -> None:
        await stage.prepare()
        config = stage.node.metadata.image.topic_config(TRANSACTION_STATE_TOPIC)
        assert config["cleanup.policy"] == "compact"
        assert config["compression.type"] == "uncompressed"
        assert config["unclean.leader.election.enable"] == "false"

    play(story, with_config(compression_type="zstd", unclean_leader_election_enable="true"))


def test_more_in_sync_replicas_than_there_are_keep_transactions_waiting() -> None:
    """The replication factor and the least in-sync replicas are those of the topic as it was made."""

    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        types = request_types(ApiKey.FIND_COORDINATOR)
        request = types.FindCoordinatorRequest(key_type=1, coordinator_keys=[TID])
        answer = await caller.call(ApiKey.FIND_COORDINATOR, request, version=4)
        assert answer.coordinators[0].error_code == E.COORDINATOR_NOT_AVAILABLE
        assert TRANSACTION_STATE_TOPIC not in stage.node.metadata.image.topics_by_name

    play(story, with_config(transaction_state_log_replication_factor="3"))


@pytest.mark.parametrize(("timeout_ms", "told"), [(2_000, E.NONE), (2_001, E.INVALID_TRANSACTION_TIMEOUT)])
def test_a_client_may_not_ask_for_more_time_than_allowed(timeout_ms: int, told: ErrorCode) -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(transactional_id=TID, transaction_timeout=timeout_ms)
        answer = await caller.call(ApiKey.INIT_PRODUCER_ID, request, version=5)
        assert answer.error_code == told

    play(story, with_config(transaction_max_timeout_ms="2000"))


def knows(node: Node, producer_id: int) -> bool:
    return node.replicas.partition(TP).log.producers.get(producer_id) is not None


@pytest.mark.parametrize(("expiration_ms", "interval_ms", "known"), [
    ("1000", "500", False),
    ("1000", "60000", True),
    ("60000", "500", True),
])  # fmt: skip
def test_silent_producers_are_forgotten_as_configured(
    expiration_ms: str, interval_ms: str, known: bool
) -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        await stage.write(caller, producer, 12)
        await stage.end(caller, producer, 5)
        await asyncio.sleep(5)
        assert knows(stage.node, producer[0]) is known

    play(
        story,
        with_config(
            producer_id_expiration_ms=expiration_ms, producer_id_expiration_check_interval_ms=interval_ms
        ),
    )


def test_a_producer_with_an_open_transaction_is_never_forgotten() -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        await stage.write(caller, producer, 12)
        await asyncio.sleep(5)
        assert knows(stage.node, producer[0])
        await stage.end(caller, producer, 5)
        assert not stage.is_open()

    play(
        story,
        with_config(producer_id_expiration_ms="1000", producer_id_expiration_check_interval_ms="500"),
    )


@pytest.mark.parametrize("two_phase", ["true", "false"])
def test_two_phase_commit_is_a_setting(two_phase: str) -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(
            transactional_id=TID, transaction_timeout=1_000, enable2_pc=True, keep_prepared_txn=False
        )
        answer = await caller.call(ApiKey.INIT_PRODUCER_ID, request, version=6)
        allowed = two_phase == "true"
        assert answer.error_code == (E.NONE if allowed else E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    play(story, with_config(transaction_two_phase_commit_enable=two_phase))


@pytest.mark.parametrize("buffer_bytes", ["1", "1000000"])
def test_the_log_is_loaded_in_pieces_of_the_configured_size(buffer_bytes: str) -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        for _ in range(20):
            await stage.write(caller, producer, 12)
            producer = await stage.end(caller, producer, 5)
        await stage.host.stop()
        reads = 0
        read = LedLog.read

        def counted(self: LedLog, offset: int, max_bytes: int) -> bytes:
            nonlocal reads
            assert max_bytes == int(buffer_bytes)
            reads += 1
            return read(self, offset, max_bytes)

        LedLog.read = counted  # type: ignore[method-assign]
        try:
            await stage.host.start()
            while not any(TID in shard.transactions for shard in stage.node.transactions.shards()):
                await asyncio.sleep(0.01)
        finally:
            LedLog.read = read  # type: ignore[method-assign]
        assert (reads > 20) is (buffer_bytes == "1")
        assert stage.state().client == producer

    play(story, with_config(transaction_state_log_load_buffer_size=buffer_bytes))


async def alter_broker(caller: Caller, key: str, value: str) -> None:
    types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    config = types.AlterableConfig(name=key, config_operation=0, value=value)
    resource = types.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
    request = types.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    answer = await caller.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, version=1)
    assert answer.responses[0].error_code == E.NONE, answer.responses[0].error_message


def test_verification_is_turned_off_while_the_node_runs() -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        assert await stage.write(caller, producer, 10) is E.INVALID_TXN_STATE
        await alter_broker(caller, "transaction.partition.verification.enable", "false")
        assert await stage.write(caller, producer, 10) is E.NONE
        await alter_broker(caller, "transaction.partition.verification.enable", "true")
        assert await stage.write(caller, producer, 10, sequence=1) is E.NONE, "it has begun"

    play(story)


def test_the_expiration_of_producers_changes_while_the_node_runs() -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        await stage.write(caller, producer, 12)
        await stage.end(caller, producer, 5)
        await asyncio.sleep(3)
        assert knows(stage.node, producer[0])
        await alter_broker(caller, "producer.id.expiration.ms", "1000")
        await asyncio.sleep(2)
        assert not knows(stage.node, producer[0])

    play(story, with_config(producer_id_expiration_check_interval_ms="500"))
