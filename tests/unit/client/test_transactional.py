"""The transactional producer: its table of states, and what each error code does to it at each step."""

import asyncio
from collections.abc import Iterable

import pytest

from odradek.client.client import Client
from odradek.client.transaction_errors import (
    AbortableError,
    FatalError,
    Step,
    Verdict,
    judge,
)
from odradek.client.transaction_requests import worst
from odradek.client.transaction_states import VALID_PREVIOUS, State, may_follow
from odradek.client.transactional import TransactionalProducer
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from tests.unit.client.fake_broker import fake_broker
from tests.unit.client.scripted_coordinator import Coordinator, one_transaction, run

E = ErrorCode

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
