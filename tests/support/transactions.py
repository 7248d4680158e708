"""A transactional producer that sends single requests. It does nothing that the test does not ask for.

`epoch_per_transaction` selects the transaction version. With it (KIP-890) the first write adds a partition,
and every end bumps the epoch. Without it a request adds partitions, and the epoch does not change.
"""

import time
from typing import Any

from tests.support.batches import batch
from tests.support.raw import Connection

PRODUCE, FIND_COORDINATOR, INIT_PRODUCER_ID = 0, 10, 22
ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT = 24, 25, 26, 28
DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 65, 66
TRANSACTIONAL = 0x10
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS = (
    14,
    15,
    16,
    51,
)
_NOT_YET = (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
    CONCURRENT_TRANSACTIONS,
)


def wait_for_coordinators(connection: Connection, transactional_id: str, timeout_s: float = 30) -> None:
    """Until the coordinator of every transactional id is there and loaded."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = connection.call(
            FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": [transactional_id]}
        ).coordinators[0]
        code = int(found.error_code)
        if code == 0:
            code = int(connection.call(LIST_TRANSACTIONS, 0, {}).error_code)
        if code == 0:
            return
        assert time.monotonic() < deadline, f"no coordinator of transactions: {code}"
        time.sleep(0.05)


class TransactionalProducer:
    """One producer on its own connection. What it is told to do it does once, and gives the error code."""

    def __init__(self, bootstrap: str, transactional_id: str, *, epoch_per_transaction: bool = True) -> None:
        self.connection = Connection(bootstrap)
        self.transactional_id = transactional_id
        self.epoch_per_transaction = epoch_per_transaction
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[tuple[str, int], int] = {}
        wait_for_coordinators(self.connection, transactional_id)

    def __enter__(self) -> "TransactionalProducer":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def init(self, timeout_ms: int = 60_000) -> None:
        """Take the transactional id, however long the transaction before takes to end."""
        deadline = time.monotonic() + 30
        values = {"transactional_id": self.transactional_id, "transaction_timeout": timeout_ms}
        while True:
            answer = self.connection.call(
                INIT_PRODUCER_ID, 5, {**values, "producer_id": -1, "producer_epoch": -1}
            )
            if answer.error_code == 0:
                self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
                self._sequences.clear()
                return
            assert int(answer.error_code) in _NOT_YET, answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.02)

    def add(self, topic: str, *partitions: int) -> list[int]:
        """AddPartitionsToTxn as clients send it; the codes of the partitions."""
        answer = self.connection.call(
            ADD_PARTITIONS,
            3,
            {
                "v3_and_below_transactional_id": self.transactional_id,
                "v3_and_below_producer_id": self.producer_id,
                "v3_and_below_producer_epoch": self.epoch,
                "v3_and_below_topics": [{"name": topic, "partitions": list(partitions)}],
            },
        )
        return [
            int(p.partition_error_code)
            for t in answer.results_by_topic_v3_and_below
            for p in t.results_by_partition
        ]

    def batch(self, topic: str, partition: int, *values: bytes, **over: Any) -> bytes:
        sequence = self._sequences.get((topic, partition), 0)
        made = {
            "attributes": TRANSACTIONAL,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "base_sequence": sequence,
            **over,
        }
        return batch(values or (b"value",), **made)

    def produce(self, topic: str, *values: bytes, partition: int = 0) -> Any:
        """Add the partition where this client has to, then write; the partition's answer."""
        if not self.epoch_per_transaction:
            assert not any(self.add(topic, partition))
        records = self.batch(topic, partition, *values)
        answer = self.connection.call(
            PRODUCE,
            12 if self.epoch_per_transaction else 9,
            {
                "transactional_id": self.transactional_id,
                "acks": -1,
                "timeout": 30_000,
                "topic_data": [{"name": topic, "partition_data": [{"index": partition, "records": records}]}],
            },
        )
        row = answer.responses[0].partition_responses[0]
        if row.error_code == 0:
            key = (topic, partition)
            self._sequences[key] = self._sequences.get(key, 0) + max(1, len(values))
        return row

    def end(self, *, commit: bool) -> int:
        answer = self.connection.call(
            END_TXN, 5 if self.epoch_per_transaction else 4, {**self.identity, "committed": commit}
        )
        if answer.error_code == 0 and self.epoch_per_transaction:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()
        return int(answer.error_code)

    def commit_offset(self, group: str, topic: str, offset: int, *, partition: int = 0, **over: Any) -> int:
        """Make a group's offset part of the transaction; the code of the partition."""
        if not self.epoch_per_transaction:
            added = self.connection.call(ADD_OFFSETS, 4, {**self.identity, "group_id": group})
            assert added.error_code == 0, added
        row = {
            "partition_index": partition,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        answer = self.connection.call(
            TXN_OFFSET_COMMIT,
            5 if self.epoch_per_transaction else 4,
            {
                **self.identity,
                "group_id": group,
                "generation_id": -1,
                "member_id": "",
                "group_instance_id": None,
                "topics": [{"name": topic, "partitions": [row]}],
                **over,
            },
        )
        return int(answer.topics[0].partitions[0].error_code)

    def describe(self) -> Any:
        answer = self.connection.call(
            DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [self.transactional_id]}
        )
        return answer.transaction_states[0]

    def wait_until_ended(self, timeout_s: float = 30) -> str:
        """Wait until the end that was decided is written everywhere; the state then."""
        deadline = time.monotonic() + timeout_s
        while True:
            state: str = self.describe().transaction_state
            if not state.startswith("Prepare"):
                return state
            assert time.monotonic() < deadline, f"{self.transactional_id} is still {state}"
            time.sleep(0.02)

    def run(self, topic: str, *values: bytes, commit: bool = True, partition: int = 0) -> None:
        """A whole transaction."""
        assert self.produce(topic, *values, partition=partition).error_code == 0
        assert self.end(commit=commit) == 0
        self.wait_until_ended()
