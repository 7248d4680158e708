"""What a new active controller begins with: no open transaction, no empty log, fresh sessions."""

import random
from uuid import UUID

import pytest

from odradek.controller.controller import Controller
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode
from odradek.metadata.bootstrap import bootstrap_batch, bootstrap_features
from odradek.metadata.draft import ReplayError
from odradek.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    TopicRecord,
)
from odradek.metadata.replay import Replayer
from odradek.runtime.slices import at_once
from tests.unit.controller.harness import CLUSTER_ID, Harness

SESSION_MS = 9000


def level(name: str, feature_level: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=feature_level)


def controller_of(records: list[MetadataRecord]) -> Controller:
    replayer = Replayer()
    replayer.apply(records, last_offset=len(records) - 1, epoch=1, timestamp_ms=0)
    config, _ = NodeConfig.from_sources({}, {"min.insync.replicas": "2"})
    return Controller(
        config=config, cluster_id=CLUSTER_ID, kraft_version=1, rng=random.Random(1), replayer=replayer
    )


def kinds(records: list[MetadataRecord]) -> list[str]:
    return [type(record).__name__ for record in records]


def take(c: Controller, records: list[MetadataRecord]) -> None:
    last_offset = c.image.offset + len(records)
    c.take(at_once(c.stage(records, last_offset=last_offset, epoch=2, timestamp_ms=0)))


def test_an_empty_log_begins_with_the_bootstrap_records_in_a_transaction() -> None:
    c = controller_of([])
    result = c.activation(None)
    assert result.records == bootstrap_batch(bootstrap_features(), 2)
    assert not result.is_atomic, "the transaction holds it together"
    take(c, result.records)
    assert c.image.metadata_version == 30


def test_a_log_of_an_old_release_begins_without_a_transaction() -> None:
    old: list[MetadataRecord] = [level("metadata.version", 12)]
    result = controller_of([]).activation(old)
    assert (result.records, result.is_atomic) == (old, True)
    newer: list[MetadataRecord] = [level("metadata.version", 13)]
    assert kinds(controller_of([]).activation(newer).records) == [
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "EndTransactionRecord",
    ]


def test_a_log_that_has_begun_needs_nothing() -> None:
    assert controller_of([level("metadata.version", 30)]).activation(None).records == []


def test_an_open_transaction_of_the_last_controller_is_aborted() -> None:
    c = controller_of(
        [
            level("metadata.version", 30),
            BeginTransactionRecord(name="long"),
            TopicRecord(name="t", topic_id=UUID(int=5000)),
        ]
    )
    records = c.activation(None).records
    assert records == [AbortTransactionRecord(reason="Controller failover")]
    take(c, records)
    assert c.image.topics_by_name == {}


def test_bootstrap_records_that_were_not_all_written_are_written_again() -> None:
    c = controller_of([BeginTransactionRecord(name="Bootstrap records"), level("metadata.version", 30)])
    records = c.activation(None).records
    assert kinds(records)[:2] == ["AbortTransactionRecord", "BeginTransactionRecord"]
    take(c, records)
    assert c.image.metadata_version == 30


def test_a_transaction_that_the_metadata_version_does_not_allow_is_no_log_of_ours() -> None:
    c = controller_of([level("metadata.version", 12), BeginTransactionRecord(name="x")])
    with pytest.raises(ReplayError, match="12 does not support transactions"):
        c.activation(None)


def test_sessions_of_all_brokers_start_afresh_on_a_new_controller() -> None:
    h = Harness()
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    h.now_ms += SESSION_MS - 1
    h.fail_over()
    h.now_ms += SESSION_MS - 1
    assert h.expire() is None
    assert h.register(2, process=9).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    h.heartbeat(3)
    h.now_ms += 1
    assert h.expire() == 1
    assert h.expire() == 2
    assert h.expire() is None


def test_a_fenced_broker_has_no_session_on_a_new_controller() -> None:
    h = Harness()
    h.register(2)
    h.fail_over()
    assert h.register(2, process=9).error_code == ErrorCode.NONE


def test_what_a_deposed_controller_staged_does_not_reach_the_next_one() -> None:
    """The committed replayer is the source of both; each controller moves a copy of its own."""
    committed = Replayer()
    committed.apply(
        [level("metadata.version", 30), BeginTransactionRecord(name="x")],
        last_offset=1,
        epoch=1,
        timestamp_ms=0,
    )
    config, _ = NodeConfig.from_sources({}, {})

    def lead() -> Controller:
        return Controller(
            config=config,
            cluster_id=CLUSTER_ID,
            kraft_version=1,
            rng=random.Random(1),
            replayer=committed.copy(),
        )

    first = lead()
    take(first, [*first.activation(None).records, TopicRecord(name="t", topic_id=UUID(int=5000))])
    assert "t" in first.image.topics_by_name
    assert (committed.image.offset, committed.in_transaction) == (0, True)
    second = lead()
    assert second.image.topics_by_name == {}
    assert kinds(second.activation(None).records) == ["AbortTransactionRecord"]
