"""Conversations about transactions: one per API, see world.py.

Other requests prepare a conversation on an older connection. Each end of a transaction is awaited before the
next request: otherwise answers would depend on whether the transaction has already ended.
"""

import time
from collections.abc import Iterator
from typing import Any

from odradek.core.types import coordinator_partition
from tests.compat.world import World, scenario
from tests.support.batches import batch
from tests.support.transactions import TransactionalProducer

Values = dict[str, Any]


@scenario(22)
def init_producer_id(world: World, version: int) -> Iterator[Values]:
    def values(transactional_id: str | None, *, timeout_ms: int = 60_000, **over: Any) -> Values:
        return {
            "transactional_id": transactional_id,
            "transaction_timeout": timeout_ms,
            "producer_id": -1,
            "producer_epoch": -1,
            **over,
        }

    yield values(None)
    yield values(None, timeout_ms=-1)
    yield values("")
    with world.producer() as other:
        first = yield values(world.txn)
        second = yield values(world.txn)
        for timeout_ms in (0, -1, 900_000, 900_001):
            yield values(world.txn + "-timeout", timeout_ms=timeout_ms)
        if version >= 3:
            current = {"producer_id": second.producer_id, "producer_epoch": second.producer_epoch}
            bumped = yield values(world.txn, **current)
            yield values(world.txn, **current)  # a retry: the answer may have been lost
            again = {"producer_id": bumped.producer_id, "producer_epoch": bumped.producer_epoch}
            yield values(world.txn, **again)
            yield values(world.txn, producer_id=first.producer_id, producer_epoch=first.producer_epoch)
            yield values(world.txn, producer_id=first.producer_id, producer_epoch=99)
            yield values(world.txn, producer_id=first.producer_id + 1_000_000, producer_epoch=0)
            yield values(world.txn, producer_id=first.producer_id, producer_epoch=-1)
            yield values(world.txn, producer_id=-1, producer_epoch=0)
            yield values(world.txn + "-new", producer_id=12345, producer_epoch=7)
            yield values(None, producer_id=12345, producer_epoch=7)
        other.init()
        other.produce(world.topic)
        yield values(other.transactional_id)  # aborts what is open, to be asked again
        other.wait_until_ended()
        yield values(other.transactional_id)
        if version >= 3:
            yield values(other.transactional_id, producer_id=other.producer_id, producer_epoch=other.epoch)


@scenario(24)
def add_partitions_to_txn(world: World, version: int) -> Iterator[Values]:
    def values(*rows: tuple[Values, list[tuple[str, list[int]]]], verify_only: bool = False) -> Values:
        named = [
            (identity, [{"name": name, "partitions": indexes} for name, indexes in topics])
            for identity, topics in rows
        ]
        identity, topics = named[0]
        return {
            "v3_and_below_transactional_id": identity["transactional_id"],
            "v3_and_below_producer_id": identity["producer_id"],
            "v3_and_below_producer_epoch": identity["producer_epoch"],
            "v3_and_below_topics": topics,
            "transactions": [{**i, "verify_only": verify_only, "topics": t} for i, t in named],
        }

    with world.second_producer() as producer, world.producer("-b") as other:
        other.init()
        mine, both = producer.identity, [(world.topic, [0, 1])]
        if version >= 4:
            yield values((mine, both), verify_only=True)
        yield values((mine, both[:1]))
        yield values((mine, both))
        yield values((mine, [(world.topic, [0]), (world.other, [0]), (world.topic, [9])]))
        yield values((mine, [(world.other, [0])]))
        yield values((mine, []))
        yield values(({**mine, "producer_epoch": mine["producer_epoch"] - 1}, both))
        yield values(({**mine, "producer_epoch": mine["producer_epoch"] + 1}, both))
        yield values(({**mine, "producer_id": mine["producer_id"] + 1_000_000}, both))
        yield values(({**mine, "transactional_id": world.txn + "-none"}, both))
        yield values(({**mine, "transactional_id": ""}, both))
        if version >= 4:
            theirs = other.identity
            yield values((mine, both), (theirs, [(world.topic, [1])]))
            yield values((mine, both), (theirs, [(world.other, [1])]))
            yield values((mine, [(world.topic, [1])]), verify_only=True)
            yield values((theirs, both), verify_only=True)
            yield values((mine, [(world.topic, [0, 9])]), verify_only=True)
            yield values(({**mine, "producer_epoch": 9}, both), verify_only=True)
            yield values(({**mine, "producer_id": 9}, both), verify_only=True)
            yield values(({**mine, "transactional_id": ""}, both), verify_only=True)
            yield values(({**mine, "transactional_id": world.txn + "-none"}, both), verify_only=True)
        assert producer.end(commit=True) == 0
        producer.wait_until_ended()
        if version >= 4:
            yield values((mine, both), verify_only=True)
        yield values((mine, both))  # of the transaction before


@scenario(25)
def add_offsets_to_txn(world: World, version: int) -> Iterator[Values]:
    with world.second_producer() as producer:
        values = {**producer.identity, "group_id": world.group}
        yield values
        yield values
        yield {**values, "group_id": ""}
        yield {**values, "producer_epoch": values["producer_epoch"] - 1}
        yield {**values, "producer_epoch": values["producer_epoch"] + 1}
        yield {**values, "producer_id": values["producer_id"] + 1_000_000}
        yield {**values, "transactional_id": world.txn + "-none"}
        yield {**values, "transactional_id": ""}
        assert producer.end(commit=False) == 0
        producer.wait_until_ended()
        yield values
        yield {**values, **producer.identity}


@scenario(26)
def end_txn(world: World, version: int) -> Iterator[Values]:
    """Ended by this conversation alone, so that the epochs in the answers are what it makes of them.

    All by one connection, as clients do: a request by an older one is taken for one that was given up.
    """
    own = version >= 5
    with world.second_producer(epoch_per_transaction=own) as producer:
        world.connection = producer.connection

        def values(commit: bool, **over: Any) -> Values:
            return {**producer.identity, "committed": commit, **over}

        def heard(answer: Any) -> None:
            if own and answer.error_code == 0:
                producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
            producer.wait_until_ended()

        yield values(True)  # nothing was begun
        if own:
            heard((yield values(False)))
        yield values(True, producer_epoch=producer.epoch - 1)
        for commit in (True, False):
            producer.produce(world.topic)
            yield values(commit, producer_epoch=producer.epoch - 1)
            yield values(commit, producer_epoch=producer.epoch + 1)
            yield values(commit, producer_id=producer.producer_id + 1_000_000)
            yield values(commit, transactional_id=world.txn + "-none")
            yield values(commit, transactional_id="")
            ended = producer.identity
            heard((yield values(commit)))
            yield {**ended, "committed": commit}  # a retry
            if own or not commit:
                # An abort after a commit differs on purpose: tests/robustness/test_late_aborts.py
                yield {**ended, "committed": not commit}
            yield values(True)  # nothing was begun since
            if own:
                yield {**ended, "producer_epoch": ended["producer_epoch"] - 1, "committed": commit}
                heard((yield values(False)))
        producer.produce(world.topic)
        before = producer.identity
        producer.init()
        yield {**before, "committed": True}
        yield {**before, "committed": False}
        yield values(True)


@scenario(27)
def write_txn_markers(world: World, version: int) -> Iterator[Values]:
    def values(
        producer: Values, rows: list[tuple[str, list[int]]], *, commit: bool = False, **over: Any
    ) -> Values:
        marker = {
            "producer_id": producer["producer_id"],
            "producer_epoch": producer["producer_epoch"],
            "transaction_result": commit,
            "topics": [{"name": name, "partition_indexes": indexes} for name, indexes in rows],
            "coordinator_epoch": 3,
            "transaction_version": 0,
            **over,
        }
        return {"markers": [marker]}

    with world.second_producer() as producer, world.producer("-b") as other, world.member():
        other.init()
        mine = producer.identity
        assert producer.produce(world.topic).error_code == 0
        yield values(mine, [(world.other, [0]), (world.topic, [9])])
        yield values({**mine, "producer_epoch": mine["producer_epoch"] - 1}, [(world.topic, [0])])
        yield values(mine, [(world.topic, [0, 1]), (world.other, [0])])
        yield values(mine, [(world.topic, [0])])  # again
        yield values(mine, [(world.topic, [0])], coordinator_epoch=2)
        yield values(mine, [(world.topic, [0])], coordinator_epoch=4, commit=True)
        yield values({**mine, "producer_epoch": mine["producer_epoch"] + 5}, [(world.topic, [0])])
        yield values({**mine, "producer_id": mine["producer_id"] + 1_000_000}, [(world.topic, [1])])
        yield values(mine, [])
        yield {"markers": []}
        both = (
            values(mine, [(world.topic, [1])])["markers"]
            + values(other.identity, [(world.topic, [1])])["markers"]
        )
        yield {"markers": both}
        if version >= 2:
            theirs = other.identity
            assert other.produce(world.topic, partition=1).error_code == 0
            bumped = {**theirs, "producer_epoch": theirs["producer_epoch"] + 1}
            yield values(theirs, [(world.topic, [1])], transaction_version=2)  # must bring the next epoch
            yield values(bumped, [(world.topic, [1])], transaction_version=2)
            yield values(bumped, [(world.topic, [1])], transaction_version=2)
        yield values(mine, [("__consumer_offsets", [0])], coordinator_epoch=9)


def _group_elsewhere(world: World) -> str:
    """A group on another partition of __consumer_offsets: on the same it would be in the transaction."""
    names = iter(lambda: world.unique("group"), None)
    taken = coordinator_partition(world.group, 50)
    return next(name for name in names if coordinator_partition(name, 50) != taken)


@scenario(28)
def txn_offset_commit(world: World, version: int) -> Iterator[Values]:
    own = version >= 5
    with world.second_producer(epoch_per_transaction=own) as producer, world.member() as member:
        member.stabilise()

        def values(
            topic: str = world.topic, partition: int = 0, metadata: str | None = "note", **over: Any
        ) -> Values:
            row = {
                "partition_index": partition,
                "committed_offset": 2,
                "committed_leader_epoch": 0,
                "committed_metadata": metadata,
            }
            return {
                **producer.identity,
                "group_id": world.group,
                "generation_id": member.generation,
                "member_id": member.member_id,
                "group_instance_id": None,
                "topics": [{"name": topic, "partitions": [row]}],
                **over,
            }

        if not own:
            yield values()  # the group is not part of the transaction
            producer.connection.call(25, 3, {**producer.identity, "group_id": world.group})
        yield values()
        yield values(metadata=None)
        yield values(topic=world.other)
        yield values(partition=9)
        yield values(metadata="x" * 5000)
        yield values(group_id="")
        yield values(group_id=_group_elsewhere(world))
        yield values(member_id="nobody")
        yield values(generation_id=77)
        yield values(generation_id=-1, member_id="")
        yield values(group_instance_id="static-nobody")
        yield values(generation_id=77, member_id="")
        yield values(generation_id=-1, member_id="", group_id=_group_elsewhere(world))
        yield values(producer_epoch=producer.epoch - 1)
        yield values(producer_epoch=producer.epoch + 1)
        yield values(producer_id=producer.producer_id + 1_000_000)
        yield values(transactional_id=world.txn + "-none")
        yield values(topics=[])
        before = producer.identity
        assert producer.end(commit=True) == 0
        producer.wait_until_ended()
        yield {**values(), **before}
        member.leave()
        if own:
            yield values()
            yield values(generation_id=-1, member_id="")


@scenario(65)
def describe_transactions(world: World, version: int) -> Iterator[Values]:
    with world.producer() as producer, world.producer("-b") as other:
        producer.init(timeout_ms=12_345)
        mine = producer.transactional_id
        yield {"transactional_ids": [mine]}
        producer.produce(world.topic)
        producer.produce(world.topic, partition=1)
        yield {"transactional_ids": [mine]}
        assert producer.end(commit=True) == 0
        producer.wait_until_ended()
        other.init()
        yield {"transactional_ids": [mine, other.transactional_id, world.txn + "-none"]}
        producer.run(world.topic, commit=False)
        yield {"transactional_ids": [mine, ""]}
        yield {"transactional_ids": []}
        producer.produce(world.topic)
        producer.init()
        yield {"transactional_ids": [mine]}


@scenario(66)
def list_transactions(world: World, version: int) -> Iterator[Values]:
    def values(*states: str, producer_ids: list[int] | None = None, **over: Any) -> Values:
        return {
            "state_filters": list(states),
            "producer_id_filters": producer_ids or [],
            "duration_filter": -1,
            "transactional_id_pattern": None,
            **over,
        }

    with world.producer() as open_, world.producer("-empty") as empty, world.producer("-done") as done:
        for producer in (open_, empty, done):
            producer.init()
        done.run(world.topic)
        open_.produce(world.topic)
        yield values()
        yield values("Ongoing")
        yield values("Empty", "CompleteCommit")
        yield values("NoSuchState")
        yield values("NoSuchState", "Ongoing")
        yield values("Dead")
        yield values("ongoing")
        yield values(producer_ids=[empty.producer_id])
        yield values("Ongoing", producer_ids=[empty.producer_id])
        yield values(producer_ids=[open_.producer_id, done.producer_id, 999_999_999])
        yield values(producer_ids=[999_999_999])
        for duration_ms in (0, 600_000, -2):
            yield values(duration_filter=duration_ms)
        for pattern in (
            f"{world.txn}-.*",
            world.txn,
            world.txn[:8],
            f"{world.txn}-(done|empty)",
            "",
            "no(such",
            "*",
        ):
            yield values(transactional_id_pattern=pattern)
        yield values("Ongoing", transactional_id_pattern=f"{world.txn}.*", duration_filter=0)
        open_.end(commit=False)
        open_.wait_until_ended()
        yield values("CompleteAbort")


def produce_in_transactions(world: World, version: int) -> Iterator[Values]:
    """The part of Produce's conversation that is about transactions."""
    own = version >= 12

    def values(transactional_id: str | None, *records: tuple[int, bytes]) -> Values:
        data = [{"index": index, "records": payload} for index, payload in records]
        return {
            "transactional_id": transactional_id,
            "acks": -1,
            "timeout": 10_000,
            "topic_data": [{"name": world.topic, "topic_id": world.topic_id, "partition_data": data}],
        }

    with world.second_producer(epoch_per_transaction=own) as producer:
        name = producer.transactional_id

        def made(partition: int = 0, **over: Any) -> tuple[int, bytes]:
            return partition, producer.batch(world.topic, partition, **over)

        yield values(None, made())
        yield values(name, made(producer_id=producer.producer_id + 1_000_000))
        yield values(world.txn + "-none", made())
        yield values(name, made(producer_epoch=producer.epoch + 1))
        yield values(name, made(producer_epoch=producer.epoch - 1))
        yield values(name, (0, batch()))  # records outside of any transaction
        yield values(name, (0, batch()), made(1))  # below v12 the partition is not part of it yet
        if not own:
            producer.add(world.topic, 0, 1)
            yield values(name, made(1, base_sequence=1))  # would overtake what was refused
            yield values(name, made(1))
        yield values(name, made(0, base_sequence=own))
        yield values(name, made(0), made(1, base_sequence=1))
        yield values(name, made(0, base_sequence=7))
        yield values(name, made(0))  # again
        yield values(name, made(0, attributes=0, base_sequence=1))  # outside of its own transaction
        yield values(name, made(0, base_sequence=1, producer_epoch=producer.epoch - 1))
        yield values(name, made(0, base_sequence=1, producer_epoch=producer.epoch + 1))
        ended = producer.epoch
        assert producer.end(commit=False) == 0
        producer.wait_until_ended()
        yield values(name, made(0, base_sequence=2, producer_epoch=ended))  # after the end
        yield values(name, made(0, base_sequence=5))
        yield values(name, made(0, attributes=0, base_sequence=0 if own else 1))
        producer.init()
        yield values(name, made(0, base_sequence=2, producer_epoch=ended))
        yield values(name, made(0, producer_epoch=-1))


def producers_in_transactions(world: World) -> Iterator[Values]:
    """The part of DescribeProducers' conversation that is about transactions."""
    asked = {"topics": [{"name": world.topic, "partition_indexes": [0]}]}
    with world.producer() as producer:
        producer.init()
        producer.produce(world.topic, b"a", b"b")
        yield asked
        assert producer.end(commit=True) == 0
        producer.wait_until_ended()
        yield asked
        producer.run(world.topic, commit=False)
        yield asked


def write_transactions(world: World) -> TransactionalProducer:
    """Committed, aborted and open records in partition 1; the producer that holds them open."""
    producer = world.producer()
    producer.init()
    producer.run(world.topic, b"committed", partition=1)
    producer.run(world.topic, b"aborted", b"aborted too", commit=False, partition=1)
    time.sleep(0.01)  # what is open is to be the youngest
    assert producer.produce(world.topic, b"open", partition=1).error_code == 0
    return producer
