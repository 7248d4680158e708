"""Hanging transactions: which stay open until somebody ends them, their owners, and the command that does."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.cli.requests.cluster_access import ClusterAccess, TopicInfo
from odradek.cli.requests.txn_admin import (
    ActiveProducer,
    Described,
    active_producers,
    decisions,
    is_hanging,
    owners,
)
from odradek.core.types import NO_TIMEOUT_MS


class Hanging(NamedTuple):
    """`decided` are the records of it that a Spark query has decided to commit."""

    producer: ActiveProducer
    owner: Described | None
    decided: int

    def of(self) -> str:
        """What the transaction is a part of."""
        from odradek.spark.ledger.ledger import origin_of

        if self.owner is None or is_hanging(self.producer, self.owner):
            return "unknown to its coordinator"
        origin = origin_of(self.owner.transactional_id)
        if origin is None:
            return "two-phase commit, undecided"
        what = "plain write" if origin.is_plain else "query"
        state = "decided" if self.decided else "undecided"
        return f"Spark {what} {origin.stream}, run {origin.run}, {state}"

    def next(self) -> str:
        """What ends it."""
        from odradek.spark.ledger.ledger import origin_of

        topic, partition = self.producer.tp
        if self.owner is None or is_hanging(self.producer, self.owner):
            return f"odradek txn abort -t {topic} -p {partition} --start-offset {self.producer.start_offset}"
        name = self.owner.transactional_id
        origin = origin_of(name)
        if self.decided:
            again = "" if origin is not None and origin.is_plain else "start the query again, or "
            return f"{again}odradek txn commit {name}"
        if origin is None:
            return f"let its owner decide, or odradek txn abort {name}"
        gone = (
            "if its job is not running"
            if origin.is_plain
            else "start the query again, or if it will not run again"
        )
        return f"{gone}: odradek txn abort {name}"


def find_hanging(
    cluster: ClusterAccess, topics: Sequence[TopicInfo], older_than_ms: int, now_ms: int
) -> list[Hanging]:
    """Open transactions without a word for so long that no coordinator knows, or knows there, or that have no
    timeout.

    Leaders are asked before coordinators: what is opened in between is not taken for hanging.
    """
    partitions = [tp for topic in topics for tp in topic.topic_partitions]
    candidates = [
        producer
        for producer in active_producers(cluster, topics, partitions)
        if producer.start_offset is not None and now_ms - (producer.last_timestamp_ms or 0) >= older_than_ms
    ]
    known = owners(cluster, (producer.producer_id for producer in candidates))
    suspects = [p for p in candidates if _stays(p, known.get(p.producer_id))]
    if not suspects:
        return []
    # A transaction that ended while we asked is open no more.
    where = sorted({producer.tp for producer in suspects})
    still = {(p.tp, p.producer_id, p.start_offset) for p in active_producers(cluster, topics, where)}
    decided = decisions(cluster)
    return [
        Hanging(p, owner := known.get(p.producer_id), 0 if owner is None else decided.get(_key(owner), 0))
        for p in suspects
        if (p.tp, p.producer_id, p.start_offset) in still
    ]


def _stays(producer: ActiveProducer, owner: Described | None) -> bool:
    return is_hanging(producer, owner) or (owner is not None and owner.timeout_ms == NO_TIMEOUT_MS)


def _key(owner: Described) -> tuple[str, int, int]:
    return owner.transactional_id, owner.producer_id, owner.producer_epoch
