"""What a transaction coordinator does by itself, for many transactions or one with many partitions."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from odradek.coordinators.transactions.states import TxnState
from odradek.core.types import NO_LEADER, TRANSACTION_STATE_TOPIC, TopicPartition
from odradek.http.exposition import render
from odradek.http.families import _transactions
from odradek.replication.led_log import LedLog
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.hostile.cases import measure, taken
from tests.hostile.stage import Client
from tests.hostile.test_state import request
from tests.hostile.world import StagedWorld, staged_world

MANY = 120
"""Transactions whose end takes some twenty slices."""
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def world() -> Iterator[StagedWorld]:
    """One whose time may pass. All ids are in one partition; what the cleaner does is not looked at here."""
    with staged_world(
        transaction_state_log_num_partitions="1",
        log_cleaner_enable="false",
        transactional_id_expiration_ms="600000",
        transaction_remove_expired_transaction_cleanup_interval_ms="60000",
    ) as made:
        yield made


def begin(
    world: StagedWorld, client: Client, topics: Sequence[str], partitions: Sequence[int]
) -> tuple[str, int, int]:
    """A transaction with partitions of topics in it."""
    transactional_id = world.fresh("txn")
    producer_id, epoch = world.init_producer(client, transactional_id)
    types = request_types(ApiKey.ADD_PARTITIONS_TO_TXN)
    transaction = types.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[types.AddPartitionsToTxnTopic(name=name, partitions=list(partitions)) for name in topics],
    )
    answer = world.call(client, ApiKey.ADD_PARTITIONS_TO_TXN, 3, transactions=[transaction])
    rows = [
        row for topic in answer.results_by_transaction[0].topic_results for row in topic.results_by_partition
    ]
    assert len(rows) == len(topics) * len(partitions) and not any(row.partition_error_code for row in rows)
    return transactional_id, producer_id, epoch


def end(world: StagedWorld, client: Client, transaction: tuple[str, int, int]) -> None:
    transactional_id, producer_id, epoch = transaction
    answer = world.call(
        client,
        ApiKey.END_TXN,
        4,
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=True,
    )
    assert answer.error_code == 0


def states(world: StagedWorld, ids: Sequence[str]) -> set[TxnState | None]:
    known = {
        name: txn.state
        for shard in world.stage.node.transactions.shards()
        for name, txn in shard.transactions.items()
    }
    return {known.get(transactional_id) for transactional_id in ids}


def elect_anew(world: StagedWorld) -> None:
    """Every coordinator loads its log again, all at once, as a restarted node does."""
    node = world.stage.node
    for index in node.transactions.host.partitions:
        node.transactions.on_resigned(index)
        partition = node.replicas.partition(TopicPartition(TRANSACTION_STATE_TOPIC, index))
        node.transactions.on_elected(index, LedLog(partition))


def counted(
    world: StagedWorld, what: str, step: Callable[[], object], until: Callable[[], bool] = lambda: True
) -> None:
    """Do something on the loop, and check what the callbacks that follow from it take."""
    stage = world.stage
    with stage.work.counting():
        stage.loop.call_soon(step)
        stage.wait_until_idle()
        stage.until(until)
        measured = taken(world, what)
    print(measured)
    measured.check()


def test_a_log_of_many_transactional_ids_is_loaded_in_slices(world: StagedWorld) -> None:
    with world.stage.client() as client:
        ids = [world.fresh("txn") for _ in range(1_500)]
        for transactional_id in ids:
            world.init_producer(client, transactional_id)
    for _ in range(2):  # the second time, codecs are there
        counted(world, "a load of many ids", lambda: elect_anew(world))
    assert states(world, ids) == {TxnState.EMPTY}


@pytest.mark.parametrize("shape", ["partitions", "topics"])
def test_a_transaction_of_many_partitions_is_loaded_in_slices(world: StagedWorld, shape: str) -> None:
    topics, partitions = (["wide"], range(1_500)) if shape == "partitions" else (world.topics, [0])
    with world.stage.client() as client:
        transaction = begin(world, client, topics, partitions)
        for _ in range(2):
            counted(world, f"a load of many {shape}", lambda: elect_anew(world))
        assert states(world, transaction[:1]) == {TxnState.ONGOING}
        asked = request(
            ApiKey.DESCRIBE_TRANSACTIONS, 0, "DescribeTransactionsRequest", transactional_ids=transaction[:1]
        )
        measure(world, "described", asked).check()
        end(world, client, transaction)


def test_what_a_former_leader_decided_is_finished_in_slices(
    world: StagedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = world.stage.node.transactions.markers
    with world.stage.client() as client:
        with monkeypatch.context() as patch:
            patch.setattr(sender, "_leader_of", lambda tp: NO_LEADER)
            transactions = [begin(world, client, ["wide"], [0, 1]) for _ in range(MANY)]
            for transaction in transactions:
                end(world, client, transaction)
        ids = [transactional_id for transactional_id, _, _ in transactions]
        assert states(world, ids) == {TxnState.PREPARE_COMMIT}
        counted(
            world,
            "many that were decided",
            lambda: elect_anew(world),
            lambda: states(world, ids) == {TxnState.COMPLETE_COMMIT},
        )


def test_transactions_over_their_time_are_aborted_in_slices(world: StagedWorld) -> None:
    with world.stage.client() as client:
        ids = [begin(world, client, ["wide"], [0, 1])[0] for _ in range(MANY)]
        broad = begin(world, client, ["wide"], range(300))[0]
    counted(
        world,
        "many transactions over their time",
        lambda: world.stage.loop.pass_time(TIMEOUT_S),
        lambda: states(world, [*ids, broad]) == {TxnState.COMPLETE_ABORT},
    )


def test_many_open_transactions_are_looked_at_in_slices(world: StagedWorld) -> None:
    with world.stage.client() as client:
        transactions = [begin(world, client, ["wide"], [0]) for _ in range(1_500)]
        for _ in range(10):
            counted(world, "many open transactions", lambda: world.stage.loop.pass_time(2))
        assert states(world, [name for name, _, _ in transactions]) == {TxnState.ONGOING}
        for transaction in transactions:
            end(world, client, transaction)


def test_many_ids_are_counted_for_a_scrape_in_slices(world: StagedWorld) -> None:
    node, loop = world.stage.node, world.stage.loop
    with world.stage.client() as client:
        for _ in range(1_500):
            world.init_producer(client, world.fresh("txn"))

    def scrape() -> None:
        loop.create_task(render(_transactions(node, node.runtime.clock.now_ms())))

    loop.call_soon(scrape)  # the second time, what it needs is imported
    world.stage.wait_until_idle()
    counted(world, "a scrape", scrape)


def test_ids_that_nobody_uses_are_removed_in_slices(world: StagedWorld) -> None:
    with world.stage.client() as client:
        ids = [world.fresh("txn") for _ in range(1_500)]
        for transactional_id in ids:
            world.init_producer(client, transactional_id)
    for _ in range(25):
        counted(world, "many ids that nobody uses", lambda: world.stage.loop.pass_time(30))
    assert states(world, ids) == {None}
