"""The transactional producer: what its calls send, how they end, and what misuse is told."""

import asyncio

import pytest

from odradek.client.transaction_errors import (
    AbortableError,
    FatalError,
    OutcomeUnknownError,
)
from odradek.client.transaction_requests import GroupMetadata
from odradek.client.transaction_states import State
from odradek.client.transactional import PreparedTransaction, TransactionalProducer
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.records.batch import iter_batches
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import HangUp, Silence
from tests.unit.client.scripted_coordinator import Coordinator, one_transaction, run

E = ErrorCode
T0 = TopicPartition("t", 0)

# What is sent


def test_version_2_takes_its_next_epoch_from_the_end_of_a_transaction() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        await one_transaction(producer)
        await one_transaction(producer)
        names = coordinator.names()
        assert names[0] == "INIT_PRODUCER_ID"
        for once in (names[1:4], names[4:7]):
            assert sorted(once[:2]) == ["PRODUCE", "TXN_OFFSET_COMMIT"]
            assert once[2] == "END_TXN"
        assert len(names) == 7
        assert min(coordinator.versions(ApiKey.PRODUCE)) >= 12
        assert coordinator.versions(ApiKey.TXN_OFFSET_COMMIT) == {5}
        assert coordinator.versions(ApiKey.END_TXN) == {5}
        batches = [
            batch
            for request in coordinator.broker.requests(ApiKey.PRODUCE)
            for batch in iter_batches(request.topic_data[0].partition_data[0].records)
        ]
        assert [(b.producer_epoch, b.base_sequence, b.is_transactional) for b in batches] == [
            (0, 0, True), (1, 0, True)
        ]  # fmt: skip
        assert {r.transactional_id for r in coordinator.broker.requests(ApiKey.PRODUCE)} == {"x"}

    run(scenario)


def test_version_1_announces_partitions_and_groups_and_keeps_its_epoch() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        await one_transaction(producer)
        await one_transaction(producer)
        assert coordinator.versions(ApiKey.PRODUCE) == {11}
        assert coordinator.versions(ApiKey.ADD_PARTITIONS_TO_TXN) == {3}
        assert coordinator.versions(ApiKey.TXN_OFFSET_COMMIT) == {4}
        assert coordinator.versions(ApiKey.END_TXN) == {4}
        first = coordinator.names()[1:6]
        assert sorted(first) == [
            "ADD_OFFSETS_TO_TXN", "ADD_PARTITIONS_TO_TXN", "END_TXN", "PRODUCE", "TXN_OFFSET_COMMIT"
        ]  # fmt: skip
        assert first.index("ADD_PARTITIONS_TO_TXN") < first.index("PRODUCE")
        assert first.index("ADD_OFFSETS_TO_TXN") < first.index("TXN_OFFSET_COMMIT")
        assert first[-1] == "END_TXN"
        batches = [
            batch
            for request in coordinator.broker.requests(ApiKey.PRODUCE)
            for batch in iter_batches(request.topic_data[0].partition_data[0].records)
        ]
        assert [(b.producer_epoch, b.base_sequence) for b in batches] == [(0, 0), (0, 1)]

    run(scenario, version=1)


@pytest.mark.parametrize("version", [1, 2])
def test_an_empty_transaction_asks_nobody(version: int) -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        for end in (producer.commit, producer.abort):
            producer.begin()
            await end()
            assert producer.state is State.READY
        assert coordinator.names() == ["INIT_PRODUCER_ID"]

    run(scenario, version=version)


def test_a_version_1_producer_raises_its_epoch_after_a_lost_batch() -> None:
    """KIP-360: abort first, then InitProducerId with the identity at hand."""

    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        coordinator.script = {ApiKey.PRODUCE: [E.OUT_OF_ORDER_SEQUENCE_NUMBER]}
        with pytest.raises(AbortableError):
            await one_transaction(producer)
        await producer.abort()
        assert coordinator.names()[-2:] == ["END_TXN", "INIT_PRODUCER_ID"]
        asked = coordinator.broker.requests(ApiKey.INIT_PRODUCER_ID)[-1]
        assert (asked.producer_id, asked.producer_epoch) == (70, 0)
        await one_transaction(producer)
        last = coordinator.broker.requests(ApiKey.PRODUCE)[-1]
        (batch,) = iter_batches(last.topic_data[0].partition_data[0].records)
        assert (batch.producer_epoch, batch.base_sequence) == (1, 0)

    run(scenario, version=1)


def test_a_cluster_that_moves_to_version_2_gets_a_new_epoch_once() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        await one_transaction(producer)
        coordinator.version = 2
        coordinator.broker.features, coordinator.broker.features_epoch = {"transaction.version": 2}, 2
        coordinator.script = {ApiKey.TXN_OFFSET_COMMIT: [HangUp]}  # connections learn features when they open
        await one_transaction(producer)
        assert coordinator.names()[-2:] == ["END_TXN", "INIT_PRODUCER_ID"]
        before = len(coordinator.names())
        await one_transaction(producer)
        assert sorted(coordinator.names()[before:]) == ["END_TXN", "PRODUCE", "TXN_OFFSET_COMMIT"]

    run(scenario, version=1)


def test_aborting_what_was_never_open_is_no_error() -> None:
    """A version 1 coordinator refuses the abort of a transaction that it has not begun."""

    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        coordinator.script = {
            ApiKey.ADD_PARTITIONS_TO_TXN: [E.TOPIC_AUTHORIZATION_FAILED],
            ApiKey.END_TXN: [E.INVALID_TXN_STATE],
        }
        producer.begin()
        await producer.send("t", b"v")
        with pytest.raises(AbortableError):
            await producer.commit()
        await producer.abort()
        assert producer.state is State.READY

    run(scenario, version=1)


def test_group_metadata_travels_with_the_offsets() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        producer.begin()
        await producer.send_offsets({T0: 5, TopicPartition("u", 3): 9}, GroupMetadata("g", 7, "m-1", "i-1"))
        (request,) = coordinator.broker.requests(ApiKey.TXN_OFFSET_COMMIT)
        assert (request.group_id, request.generation_id, request.member_id, request.group_instance_id) == (
            "g", 7, "m-1", "i-1",
        )  # fmt: skip
        offsets = {
            (t.name, p.partition_index): p.committed_offset for t in request.topics for p in t.partitions
        }
        assert offsets == {("t", 0): 5, ("u", 3): 9}
        await producer.send_offsets({}, "g")
        assert len(coordinator.broker.requests(ApiKey.TXN_OFFSET_COMMIT)) == 1

    run(scenario)


# Coordinators that move


@pytest.mark.parametrize("trouble", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, HangUp])
@pytest.mark.parametrize(
    "api_key",
    [ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN],
)
def test_the_coordinator_is_looked_for_again_where_it_is_not(trouble: object, api_key: ApiKey) -> None:
    """On another node by now: asked again where it was, it would say the same for ever."""

    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        key = "g" if api_key is ApiKey.TXN_OFFSET_COMMIT else "x"
        coordinator.script = {api_key: [trouble]}

        def asked() -> int:
            requests = coordinator.broker.requests(ApiKey.FIND_COORDINATOR)
            return sum(key in request.coordinator_keys for request in requests)

        await producer.init_transactions()
        await one_transaction(producer)
        assert not coordinator.script[api_key]
        assert asked() == 2

    run(scenario, version=1, init=False)


def test_a_coordinator_that_is_busy_is_not_looked_for_again() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        coordinator.script = {ApiKey.END_TXN: [E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS]}
        before = len(coordinator.broker.requests(ApiKey.FIND_COORDINATOR))
        producer.begin()
        await producer.send("t", b"v", partition=0)
        await producer.commit()
        assert len(coordinator.broker.requests(ApiKey.FIND_COORDINATOR)) == before

    run(scenario)


# Deadlines


def test_a_transaction_has_a_minute_unless_it_is_told_otherwise() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        (request,) = coordinator.broker.requests(ApiKey.INIT_PRODUCER_ID)
        assert request.transaction_timeout == 60_000

    run(scenario)


def test_a_transaction_has_the_time_it_is_told() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        (request,) = coordinator.broker.requests(ApiKey.INIT_PRODUCER_ID)
        assert request.transaction_timeout == 1_234

    run(scenario, transaction_timeout_ms=1_234)


def test_a_commit_that_nobody_confirms_is_of_unknown_outcome_and_can_be_asked_again() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        producer.begin()
        await (await producer.send("t", b"v"))
        coordinator.script = {ApiKey.END_TXN: [HangUp] * 10_000}
        with pytest.raises(OutcomeUnknownError, match="EndTxn"):
            await producer.commit()
        assert producer.state is State.COMMITTING
        with pytest.raises(RuntimeError, match="COMMITTING"):
            await producer.abort()
        coordinator.script.clear()
        await producer.commit()
        assert producer.state is State.READY
        assert all(request.committed for request in coordinator.broker.requests(ApiKey.END_TXN))

    run(scenario, max_block_ms=150)


def test_a_commit_that_never_left_is_not_of_unknown_outcome() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        producer.begin()
        await (await producer.send("t", b"v"))
        producer._client.forget_coordinator("x", 1)
        coordinator.script = {ApiKey.FIND_COORDINATOR: [E.COORDINATOR_NOT_AVAILABLE] * 10_000}
        with pytest.raises(TimeoutError, match="COORDINATOR_NOT_AVAILABLE") as error:
            await producer.commit()
        assert not isinstance(error.value, OutcomeUnknownError)
        coordinator.script.clear()
        await producer.commit()

    run(scenario, max_block_ms=100)


def test_init_can_be_asked_again_after_its_deadline() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        coordinator.script = {ApiKey.INIT_PRODUCER_ID: [E.CONCURRENT_TRANSACTIONS] * 10_000}
        with pytest.raises(TimeoutError, match="CONCURRENT_TRANSACTIONS"):
            await producer.init_transactions()
        coordinator.script.clear()
        await producer.init_transactions()
        assert producer.state is State.READY

    run(scenario, init=False, max_block_ms=100)


def test_records_that_cannot_be_delivered_leave_only_the_abort() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        coordinator.script = {ApiKey.PRODUCE: [E.NOT_LEADER_OR_FOLLOWER] * 10_000}
        producer.begin()
        future = await producer.send("t", b"v")
        with pytest.raises(AbortableError, match="TRANSACTION_ABORTABLE"):
            await producer.commit()
        with pytest.raises(KafkaError):
            await future
        for call in (lambda: producer.send("t", b"w"), lambda: producer.send_offsets({T0: 1}, "g")):
            with pytest.raises(AbortableError):
                await call()
        coordinator.script.clear()
        await producer.abort()
        await one_transaction(producer)

    run(scenario, delivery_timeout_ms=50)


def test_an_abort_does_not_deliver_what_was_only_queued() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        producer.begin()
        future = await producer.send("t", b"v")
        await producer.abort()
        with pytest.raises(KafkaError, match="aborted"):
            await future
        assert not coordinator.broker.requests(ApiKey.PRODUCE)
        await one_transaction(producer)

    run(scenario, linger_ms=60_000)


def test_a_silent_broker_does_not_hold_a_call_past_its_deadline() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        producer.begin()
        await (await producer.send("t", b"v"))
        coordinator.script = {ApiKey.END_TXN: [Silence] * 100}
        before = asyncio.get_running_loop().time()
        with pytest.raises(OutcomeUnknownError):
            await producer.commit()
        assert asyncio.get_running_loop().time() - before < 5

    run(scenario, max_block_ms=100)


# Use and misuse


def test_calls_out_of_order_name_the_state() -> None:
    async def scenario(_coordinator: Coordinator, producer: TransactionalProducer) -> None:
        for call in (
            lambda: producer.send("t", b""), producer.commit, producer.abort, producer.init_transactions,
            lambda: producer.send_offsets({T0: 1}, "g"), lambda: producer.complete(PreparedTransaction(1, 2)),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match="x is READY"):
                await call()
        producer.begin()
        with pytest.raises(RuntimeError, match="x is IN_TRANSACTION, not READY"):
            producer.begin()
        with pytest.raises(RuntimeError, match="enable_2pc"):
            await producer.prepare()

    run(scenario)


def test_a_block_commits_at_its_end_and_aborts_when_it_raises() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        async with producer.transaction():
            await producer.send("t", b"v")
        with pytest.raises(ValueError, match="no"):  # noqa: PT012
            async with producer.transaction():
                await (await producer.send("t", b"v"))
                raise ValueError("no")
        assert [request.committed for request in coordinator.broker.requests(ApiKey.END_TXN)] == [True, False]
        coordinator.script = {ApiKey.END_TXN: [E.TRANSACTION_ABORTABLE]}
        with pytest.raises(AbortableError):
            async with producer.transaction():
                await producer.send("t", b"v")
        assert producer.state is State.READY

    run(scenario)


def test_closing_aborts_what_is_open() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        producer.begin()
        await (await producer.send("t", b"v"))
        await producer.close()
        (request,) = coordinator.broker.requests(ApiKey.END_TXN)
        assert not request.committed

    run(scenario)


def test_a_prepared_transaction_is_completed_by_the_decision() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        init = coordinator.broker.requests(ApiKey.INIT_PRODUCER_ID)[0]
        assert (init.enable2_pc, init.keep_prepared_txn) == (True, False)
        for decide in (lambda mine: mine, lambda mine: mine._replace(producer_epoch=99)):
            producer.begin()
            await producer.send("t", b"v")
            prepared = await producer.prepare()
            assert PreparedTransaction.parse(str(prepared)) == prepared
            with pytest.raises(RuntimeError, match="PREPARED"):
                await producer.send("t", b"w")
            await producer.complete(decide(prepared))
        assert [request.committed for request in coordinator.broker.requests(ApiKey.END_TXN)] == [True, False]

    run(scenario, enable_2pc=True)


def test_two_phase_commit_is_not_asked_of_a_broker_that_would_not_understand() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        coordinator.broker.api_limits = {ApiKey.INIT_PRODUCER_ID: (0, 5)}
        with pytest.raises(FatalError, match="UNSUPPORTED_VERSION"):
            await producer.init_transactions()

    run(scenario, init=False, enable_2pc=True)


def test_a_later_life_finds_the_prepared_transaction() -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        types = response_types(ApiKey.INIT_PRODUCER_ID)
        coordinator.broker.handlers[ApiKey.INIT_PRODUCER_ID] = lambda _: types.InitProducerIdResponse(
            producer_id=70, producer_epoch=9, ongoing_txn_producer_id=70, ongoing_txn_producer_epoch=7
        )
        prepared = await producer.init_transactions(keep_prepared=True)
        assert prepared == PreparedTransaction(70, 7)
        assert producer.state is State.PREPARED
        assert await producer.complete(PreparedTransaction(70, 7))
        (request,) = coordinator.broker.requests(ApiKey.END_TXN)
        assert (request.committed, request.producer_epoch) == (True, 9)

    run(scenario, init=False, enable_2pc=True)
