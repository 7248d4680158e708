"""The transactional producer: its table of states, and what each error code does to it at each step."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from odradek.client.batches import Identity
from odradek.client.client import Client
from odradek.client.transaction_errors import (
    AbortableError,
    FatalError,
    OutcomeUnknownError,
    Step,
    Verdict,
    judge,
)
from odradek.client.transaction_requests import GroupMetadata, worst
from odradek.client.transaction_states import VALID_PREVIOUS, State, may_follow
from odradek.client.transactional import PreparedTransaction, TransactionalProducer
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.records.batch import iter_batches
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, HangUp, Silence, fake_broker

E = ErrorCode
T0 = TopicPartition("t", 0)


class Coordinator:
    """Answers as a broker that is everything at once. `script` has the codes to give first, by API."""

    def __init__(self, broker: FakeBroker, version: int) -> None:
        self.broker = broker
        self.version = version
        self.identity = Identity(70, 0)
        self.script: dict[ApiKey, list[Any]] = {}
        broker.features = {"transaction.version": version}
        for api_key in (
            ApiKey.FIND_COORDINATOR,
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.PRODUCE,
            ApiKey.END_TXN,
        ):
            answer = getattr(self, api_key.name.lower())
            broker.handlers[api_key] = self.scripted(api_key, answer)

    def scripted(self, api_key: ApiKey, answer: Callable[[Any, int], Any]) -> Callable[[Any], Any]:
        def handler(request: Any) -> Any:
            codes = self.script.get(api_key)
            code = codes.pop(0) if codes else 0
            if isinstance(code, type):
                raise code
            return answer(request, int(code))

        return handler

    def names(self) -> list[str]:
        """The requests seen, in order, without those that are no step of a transaction."""
        plain = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR)
        return [ApiKey(key).name for key, _, _ in self.broker.seen if key not in plain]

    def versions(self, api_key: ApiKey) -> set[int]:
        return {version for key, version, _ in self.broker.seen if key == api_key}

    def find_coordinator(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.FIND_COORDINATOR)
        found = [
            types.Coordinator(key=key, node_id=1, host="127.0.0.1", port=self.broker.port, error_code=code)
            for key in request.coordinator_keys
        ]
        return types.FindCoordinatorResponse(coordinators=found)

    def init_producer_id(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.INIT_PRODUCER_ID)
        if not code and request.producer_id >= 0:
            self.identity = Identity(request.producer_id, request.producer_epoch + 1)
        return types.InitProducerIdResponse(
            error_code=code,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
        )

    def add_partitions_to_txn(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.ADD_PARTITIONS_TO_TXN)
        (transaction,) = request.transactions
        topics = [
            types.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    types.AddPartitionsToTxnPartitionResult(partition_index=i, partition_error_code=code)
                    for i in topic.partitions
                ],
            )
            for topic in transaction.topics
        ]
        result = types.AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id, topic_results=topics
        )
        return types.AddPartitionsToTxnResponse(results_by_transaction=[result])

    def add_offsets_to_txn(self, request: Any, code: int) -> Any:
        return response_types(ApiKey.ADD_OFFSETS_TO_TXN).AddOffsetsToTxnResponse(error_code=code)

    def txn_offset_commit(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.TXN_OFFSET_COMMIT)
        topics = [
            types.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    types.TxnOffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return types.TxnOffsetCommitResponse(topics=topics)

    def produce(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.PRODUCE)
        topics = [
            types.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    types.PartitionProduceResponse(
                        index=part.index, error_code=code, base_offset=-1 if code else 0
                    )
                    for part in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
        return types.ProduceResponse(responses=topics)

    def end_txn(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.END_TXN)
        if not code and self.version >= 2:
            self.identity = Identity(request.producer_id, request.producer_epoch + 1)
            return types.EndTxnResponse(
                producer_id=self.identity.producer_id, producer_epoch=self.identity.producer_epoch
            )
        return types.EndTxnResponse(error_code=code)


Scenario = Callable[[Coordinator, TransactionalProducer], Awaitable[None]]


def run(scenario: Scenario, version: int = 2, init: bool = True, **options: Any) -> None:
    async def outer() -> None:
        async with fake_broker() as broker:
            coordinator = Coordinator(broker, version)
            async with Client(broker.address, retry_backoff_ms=1, retry_backoff_max_ms=2) as client:
                producer = TransactionalProducer(client, "x", **{"max_block_ms": 20_000, **options})
                if init:
                    await producer.init_transactions()
                await scenario(coordinator, producer)
                if producer.state is not State.FATAL_ERROR:
                    coordinator.script.clear()
                await producer.close()

    asyncio.run(outer())


# The table

LIFE = {
    State.UNINITIALIZED: "INITIALIZING",
    State.INITIALIZING: "READY PREPARED ABORTABLE_ERROR",
    State.READY: "IN_TRANSACTION",
    State.IN_TRANSACTION: "PREPARED COMMITTING ABORTING ABORTABLE_ERROR",
    State.PREPARED: "COMMITTING ABORTING",
    State.COMMITTING: "READY INITIALIZING ABORTABLE_ERROR",
    State.ABORTING: "READY INITIALIZING",
    State.ABORTABLE_ERROR: "ABORTING ABORTABLE_ERROR UNINITIALIZED",
    State.FATAL_ERROR: "",
}


def test_the_table_has_the_moves_of_apaches_client() -> None:
    """As its TransactionManager.State of 4.3.1 has them; only an idempotent producer goes back from READY."""
    for previous, following in LIFE.items():
        allowed = {state for state in State if may_follow(state, previous)}
        assert allowed == {State[name] for name in following.split()} | {State.FATAL_ERROR}, previous
    assert set(VALID_PREVIOUS) == set(State)


# Every error code at every step

RETRIED = {code for code in E if code.retriable} | {E.BROKER_NOT_AVAILABLE}
ABORTABLE: dict[Step, set[ErrorCode]] = {
    Step.FIND_COORDINATOR: {E.GROUP_AUTHORIZATION_FAILED, E.TRANSACTION_ABORTABLE},
    Step.INIT: {
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.CLUSTER_AUTHORIZATION_FAILED, E.TRANSACTION_ABORTABLE,
    },
    Step.ADD_PARTITIONS: set(E) - RETRIED - {
        E.NONE, E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.INVALID_TXN_STATE, E.INVALID_PRODUCER_ID_MAPPING,
    },
    Step.ADD_OFFSETS: {E.GROUP_AUTHORIZATION_FAILED, E.TRANSACTION_ABORTABLE, E.UNKNOWN_PRODUCER_ID},
    Step.COMMIT_OFFSETS: {
        E.GROUP_AUTHORIZATION_FAILED, E.FENCED_INSTANCE_ID, E.TRANSACTION_ABORTABLE, E.UNKNOWN_MEMBER_ID,
        E.ILLEGAL_GENERATION,
    },
    Step.PRODUCE: set(E) - RETRIED - {
        E.NONE, E.DUPLICATE_SEQUENCE_NUMBER, E.PRODUCER_FENCED, E.CLUSTER_AUTHORIZATION_FAILED,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.UNSUPPORTED_VERSION, E.INVALID_PRODUCER_ID_MAPPING,
    },
    Step.END: {E.TRANSACTION_ABORTABLE, E.UNKNOWN_PRODUCER_ID},
}  # fmt: skip

API = {
    Step.FIND_COORDINATOR: ApiKey.FIND_COORDINATOR,
    Step.INIT: ApiKey.INIT_PRODUCER_ID,
    Step.ADD_PARTITIONS: ApiKey.ADD_PARTITIONS_TO_TXN,
    Step.ADD_OFFSETS: ApiKey.ADD_OFFSETS_TO_TXN,
    Step.COMMIT_OFFSETS: ApiKey.TXN_OFFSET_COMMIT,
    Step.PRODUCE: ApiKey.PRODUCE,
    Step.END: ApiKey.END_TXN,
}


async def one_transaction(producer: TransactionalProducer) -> None:
    producer.begin()
    await producer.send("t", b"v", partition=0)
    await producer.send_offsets({T0: 5}, "g")
    await producer.commit()


def steps_of(version: int) -> Iterable[Step]:
    only_1 = (Step.ADD_PARTITIONS, Step.ADD_OFFSETS)
    return [step for step in Step if version == 1 or step not in only_1]


@pytest.mark.parametrize(
    ("version", "step"), [(v, s) for v in (1, 2) for s in steps_of(v)], ids=lambda v: getattr(v, "name", v)
)
def test_every_code_at_every_step_is_retried_abortable_or_fatal(version: int, step: Step) -> None:
    async def each(coordinator: Coordinator, producer: TransactionalProducer, code: ErrorCode) -> None:
        coordinator.script = {API[step]: [code]}
        error: KafkaError | None = None
        try:
            await producer.init_transactions()
            await one_transaction(producer)
        except (AbortableError, FatalError) as e:
            error = e
        assert not coordinator.script[API[step]], "the step was not made"
        if producer.state is State.ABORTABLE_ERROR:
            assert isinstance(error, AbortableError)
            assert error.code in (code, E.TRANSACTION_ABORTABLE)
        elif producer.state is State.FATAL_ERROR:
            assert isinstance(error, FatalError)
            assert error.code is (E.PRODUCER_FENCED if code is E.INVALID_PRODUCER_EPOCH else code)
        else:
            assert error is None

    async def outer() -> None:
        found: dict[State, set[ErrorCode]] = {}
        async with fake_broker() as broker:
            for code in E:
                coordinator = Coordinator(broker, version)
                async with Client(broker.address, retry_backoff_ms=1, retry_backoff_max_ms=2) as client:
                    producer = TransactionalProducer(client, "x")
                    await each(coordinator, producer, code)
                    state = producer.state
                    found.setdefault(state, set()).add(code)
                    if state is State.ABORTABLE_ERROR and producer._terms.identity is not None:
                        await producer.abort()
                        await one_transaction(producer)
                        assert producer.state is State.READY
                    elif state is State.ABORTABLE_ERROR:
                        await producer.init_transactions()
                        await one_transaction(producer)
                    await producer.close()
        done = RETRIED | {E.NONE} | ({E.DUPLICATE_SEQUENCE_NUMBER} if step is Step.PRODUCE else set())
        assert found[State.READY] == done
        assert found[State.ABORTABLE_ERROR] == ABORTABLE[step]
        assert found[State.FATAL_ERROR] == set(E) - done - ABORTABLE[step]

    asyncio.run(outer())


@pytest.mark.parametrize("code", sorted(E), ids=lambda code: code.name)
def test_an_abort_ends_well_is_tried_again_or_ends_the_producer(code: ErrorCode) -> None:
    async def scenario(coordinator: Coordinator, producer: TransactionalProducer) -> None:
        producer.begin()
        await (await producer.send("t", b"v"))
        coordinator.script = {ApiKey.END_TXN: [code]}
        if code in RETRIED | {E.NONE}:
            await producer.abort()
            assert producer.state is State.READY
        else:
            with pytest.raises(FatalError):
                await producer.abort()

    run(scenario)


def test_the_worst_of_several_codes_decides() -> None:
    step = Step.ADD_PARTITIONS
    assert worst(step, []) is E.NONE
    assert worst(step, [0, 0]) is E.NONE
    assert worst(step, [0, E.CONCURRENT_TRANSACTIONS]) is E.CONCURRENT_TRANSACTIONS
    assert (
        worst(step, [E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION]) is E.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert (
        worst(step, [E.OPERATION_NOT_ATTEMPTED, E.TOPIC_AUTHORIZATION_FAILED]) is E.TOPIC_AUTHORIZATION_FAILED
    )
    assert worst(step, [E.OPERATION_NOT_ATTEMPTED]) is E.OPERATION_NOT_ATTEMPTED
    assert worst(step, [E.TOPIC_AUTHORIZATION_FAILED, E.PRODUCER_FENCED, 0]) is E.PRODUCER_FENCED
    assert worst(step, [12_345]) is E.UNKNOWN_SERVER_ERROR
    assert judge(step, E.UNKNOWN_PRODUCER_ID) is Verdict.BUMP


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


# Deadlines


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
