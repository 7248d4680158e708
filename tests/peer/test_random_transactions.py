"""The same random requests of one transactional id to Odradek and to Apache Kafka: the same answers.

Intended differences are excluded (docs/compatibility.md): aborts of transactions without partitions by
clients that keep their epoch, requests with an old epoch while a transaction is open, and writes with an
epoch that no producer has yet, after which Apache expects the next sequence.
"""

import random
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from odradek.runtime.ports import free_port
from tests.support import peer
from tests.support.batches import batch
from tests.support.group import Member
from tests.support.node import running
from tests.support.topics import create_topic
from tests.support.transactions import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TRANSACTIONAL,
    TXN_OFFSET_COMMIT,
    TransactionalProducer,
)

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

SEEDS, STEPS = 25, 40
UNKNOWN_PARTITION = 7
ACTIONS = {"produce": 30, "end": 25, "add": 12, "init": 8, "commit_offsets": 8, "add_offsets": 6, "verify": 4}
SPEAKERS = {"itself": 75, "a predecessor": 8, "the epoch above": 6, "the epoch below": 6, "a stranger": 5}


class Step(NamedTuple):
    action: str
    speaker: str
    epoch_per_transaction: bool
    commit: bool
    partition: int
    continues: bool
    chance: float

    def version(self, low: int, high: int) -> int:
        return low + int(self.chance * (high - low + 1))


def script(seed: int) -> list[Step]:
    chooser = random.Random(seed)
    share_of_new = chooser.choice([0, 0.5, 1])
    return [
        Step(
            chooser.choices(list(ACTIONS), list(ACTIONS.values()))[0],
            chooser.choices(list(SPEAKERS), list(SPEAKERS.values()))[0],
            chooser.random() < share_of_new,
            chooser.random() < 0.6,
            chooser.choice([0, 0, 0, 1, 1, UNKNOWN_PARTITION]),
            chooser.random() < 0.5,
            chooser.random(),
        )
        for _ in range(STEPS)
    ]


class Conversation:
    """Plays a script to one broker. What is new in every run is told by its order of appearance."""

    def __init__(self, bootstrap: str) -> None:
        name = uuid.uuid4().hex[:10]
        self.topic, self.group = f"topic-{name}", f"group-{name}"
        create_topic(bootstrap, self.topic, 2)
        with Member(bootstrap, self.group):
            pass
        self.producer = TransactionalProducer(bootstrap, f"txn-{name}")
        self.producer.init()
        self.identities = [(self.producer.producer_id, self.producer.epoch)]
        self.names: dict[int, str] = {-1: "none"}
        self.sequences: dict[tuple[int, int, int], int] = {}

    def play(self, steps: list[Step]) -> Iterator[tuple[Step, Any, Any]]:
        """Each step, what was answered, and what the coordinator describes then."""
        with self.producer:
            for step in steps:
                answer = getattr(self, step.action)(step, *self.speak(step))
                self.producer.wait_until_ended()
                yield step, answer, self.described()

    def speak(self, step: Step) -> tuple[int, int]:
        producer_id, epoch = self.identities[-1]
        if step.speaker == "a predecessor":
            return self.identities[int(step.chance * len(self.identities))]
        shift = {"the epoch above": 1, "the epoch below": -1}.get(step.speaker, 0)
        if step.action == "produce":
            shift = min(shift, 0)
        return producer_id + (10_000_000 if step.speaker == "a stranger" else 0), epoch + shift

    def described(self) -> Any:
        row = self.producer.describe()
        topics = sorted(
            ("topic" if t.topic == self.topic else t.topic, len(t.partitions)) for t in row.topics
        )
        return row.transaction_state, self.name_of(row.producer_id), row.producer_epoch, topics

    def name_of(self, producer_id: int) -> str:
        return self.names.setdefault(producer_id, f"producer {len(self.names)}")

    def given(self, answer: Any) -> Any:
        """The code, and the identity that an answer brings."""
        code = int(answer.error_code)
        if not hasattr(answer, "producer_id"):
            return code
        identity = answer.producer_id, answer.producer_epoch
        if code == 0 and identity != self.identities[-1]:
            self.identities.append(identity)
        return code, self.name_of(identity[0]), identity[1]

    def call(self, api_key: int, version: int, producer_id: int, epoch: int, **values: Any) -> Any:
        identity = {
            "transactional_id": self.producer.transactional_id,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }
        return self.producer.connection.call(api_key, version, {**identity, **values})

    # --- actions --------------------------------------------------------------------------------------

    def init(self, step: Step, producer_id: int, epoch: int) -> Any:
        continues = step.continues and self.producer.describe().transaction_state != "Ongoing"
        version = step.version(3 if continues else 0, 5)
        who = (producer_id, epoch) if continues else (-1, -1)
        return self.given(self.call(INIT_PRODUCER_ID, version, *who, transaction_timeout=60_000))

    def add(self, step: Step, producer_id: int, epoch: int) -> Any:
        topics = [{"name": self.topic, "partitions": [step.partition]}]
        answer = self.call(
            ADD_PARTITIONS,
            step.version(0, 3),
            producer_id,
            epoch,
            v3_and_below_transactional_id=self.producer.transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
        return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def verify(self, step: Step, producer_id: int, epoch: int) -> Any:
        asked = {
            "transactional_id": self.producer.transactional_id,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "verify_only": step.continues,
            "topics": [{"name": self.topic, "partitions": [step.partition]}],
        }
        answer = self.call(ADD_PARTITIONS, step.version(4, 5), producer_id, epoch, transactions=[asked])
        (result,) = answer.results_by_transaction[0].topic_results[0].results_by_partition
        return int(result.partition_error_code)

    def produce(self, step: Step, producer_id: int, epoch: int) -> Any:
        partition = step.partition % 2
        place = partition, producer_id, epoch
        sequence = self.sequences.get(place, 0)
        records = batch(
            [b"value"],
            attributes=TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        data = [{"name": self.topic, "partition_data": [{"index": partition, "records": records}]}]
        version = 12 if step.epoch_per_transaction else step.version(3, 11)
        answer = self.call(PRODUCE, version, producer_id, epoch, acks=-1, timeout=5000, topic_data=data)
        row = answer.responses[0].partition_responses[0]
        if row.error_code == 0:
            self.sequences[place] = sequence + 1
        return int(row.error_code), row.base_offset

    def end(self, step: Step, producer_id: int, epoch: int) -> Any:
        version = 5 if step.epoch_per_transaction else step.version(0, 4)
        differs = self.producer.describe().transaction_state in ("Empty", "CompleteCommit", "PrepareCommit")
        commit = step.commit or (differs and not step.epoch_per_transaction)
        return self.given(self.call(END_TXN, version, producer_id, epoch, committed=commit))

    def add_offsets(self, step: Step, producer_id: int, epoch: int) -> Any:
        answer = self.call(ADD_OFFSETS, step.version(0, 4), producer_id, epoch, group_id=self.group)
        return int(answer.error_code)

    def commit_offsets(self, step: Step, producer_id: int, epoch: int) -> Any:
        row = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
        answer = self.call(
            TXN_OFFSET_COMMIT,
            5 if step.epoch_per_transaction else step.version(0, 4),
            producer_id,
            epoch,
            group_id=self.group,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": self.topic, "partitions": [{**row, "committed_metadata": ""}]}],
        )
        return int(answer.topics[0].partitions[0].error_code)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """(ours, Apache's)"""
    apaches = tmp_path_factory.mktemp("apache") / "k"
    with running(tmp_path_factory.mktemp("ours") / "data") as node:
        yield node.bootstrap, peer.start(apaches, free_port())
        peer.stop(apaches)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_requests_are_answered_as_apache_answers_them(brokers: tuple[str, str], seed: int) -> None:
    steps = script(seed)
    ours, apaches = (Conversation(bootstrap).play(steps) for bootstrap in brokers)
    so_far = []
    for got, wanted in zip(ours, apaches, strict=True):
        assert got == wanted, f"after {so_far}"
        so_far.append(wanted)
