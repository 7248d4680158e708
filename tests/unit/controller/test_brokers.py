"""A broker's life as the controller records it; the records are those of Apache's own log."""

from typing import Any
from uuid import UUID

import pytest

from odradek.core.errors import ErrorCode
from odradek.metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, incarnation, log_dir, with_one_broker

SESSION_MS = 9000


def change(record: Any) -> dict[str, Any]:
    """The fields that a PartitionChangeRecord sets."""
    assert isinstance(record, PartitionChangeRecord)
    values = {
        "isr": record.isr,
        "leader": None if record.leader == -2 else record.leader,
        "recovery": None if record.leader_recovery_state == -1 else record.leader_recovery_state,
        "elr": record.eligible_leader_replicas,
        "last_known": record.last_known_elr,
    }
    return {k: tuple(v) if isinstance(v, list | tuple) else v for k, v in values.items() if v is not None}


def test_registration_is_fenced_at_the_epoch_of_its_offset() -> None:
    h = Harness()
    at = h.next_offset
    answer = h.register()
    assert (answer.error_code, answer.broker_epoch) == (0, at)
    (record,) = h.records
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.in_controlled_shutdown) == (at, True, False)
    broker = h.image.brokers[1]
    assert (broker.epoch, broker.incarnation_id, broker.log_dirs) == (at, incarnation(1), (log_dir(1),))
    assert broker.endpoints["PLAINTEXT"] == ("127.0.0.1", 9092, 0)


def test_a_broker_is_unfenced_once_it_has_seen_its_registration() -> None:
    h = Harness()
    epoch = h.register().broker_epoch
    answer = h.heartbeat(current_metadata_offset=epoch - 1)
    assert (answer.is_caught_up, answer.is_fenced) == (False, True)
    assert h.records == []
    assert h.heartbeat(current_metadata_offset=epoch, want_fence=True).is_fenced
    answer = h.heartbeat(current_metadata_offset=epoch)
    assert (answer.is_caught_up, answer.is_fenced, answer.should_shut_down) == (True, False, False)
    (record,) = h.records
    assert isinstance(record, BrokerRegistrationChangeRecord)
    assert record.fenced == -1
    assert not h.image.brokers[1].fenced


def test_a_broker_is_unfenced_at_the_offset_of_its_record_not_of_its_epoch() -> None:
    h = with_one_broker()
    h.create("t")
    h.now_ms += SESSION_MS
    epoch = h.register(process=2).broker_epoch
    assert h.kinds() == ["PartitionChangeRecord", "RegisterBrokerRecord"]
    assert h.heartbeat(current_metadata_offset=epoch).is_fenced
    assert not h.heartbeat(current_metadata_offset=epoch + 1).is_fenced


def test_a_new_controller_unfences_a_broker_that_has_seen_all_that_the_last_one_left() -> None:
    h = with_one_broker()
    h.create("t")
    h.now_ms += SESSION_MS
    epoch = h.register(process=2).broker_epoch
    h.fail_over()
    assert h.heartbeat(current_metadata_offset=epoch).is_fenced
    assert not h.heartbeat(current_metadata_offset=epoch + 1).is_fenced


def test_cordoned_directories_are_recorded_when_they_change() -> None:
    h = Harness()
    h.register()
    h.heartbeat(cordoned_log_dirs=())
    assert [r.cordoned_log_dirs for r in h.records if isinstance(r, BrokerRegistrationChangeRecord)] == [
        None,
        [],
    ]
    h.heartbeat(cordoned_log_dirs=())
    assert h.records == []


def test_a_stale_epoch_is_refused() -> None:
    h = with_one_broker()
    assert h.heartbeat(broker_epoch=999).error_code == ErrorCode.STALE_BROKER_EPOCH
    types = request_types(ApiKey.BROKER_HEARTBEAT)
    unknown = types.BrokerHeartbeatRequest(broker_id=7, broker_epoch=1)
    assert h.call(ApiKey.BROKER_HEARTBEAT, unknown).error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [UUID(int=1)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [log_dir(2), log_dir(2)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [log_dir(1)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_a_registration_that_cannot_be_is_refused(changes: dict[str, Any], code: ErrorCode) -> None:
    h = with_one_broker()
    assert h.register(2, **changes).error_code == code
    assert h.records == []


def test_a_broker_must_support_every_finalized_feature() -> None:
    h = with_one_broker()
    types = request_types(ApiKey.BROKER_REGISTRATION)
    only = types.Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)
    assert h.register(2, features=[only]).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_another_incarnation_waits_for_the_session_of_the_first() -> None:
    h = with_one_broker()
    assert h.register(process=2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    h.now_ms += SESSION_MS
    assert h.register(process=2).error_code == 0


def test_the_same_incarnation_amends_its_registration_and_keeps_its_epoch() -> None:
    h = with_one_broker()
    epoch = h.image.brokers[1].epoch
    assert h.register(rack="r1").broker_epoch == epoch
    assert (h.image.brokers[1].rack, h.image.brokers[1].fenced) == ("r1", False)


def test_a_new_controller_does_not_wait_for_its_own_previous_incarnation() -> None:
    h = with_one_broker()
    h.start_broker(2)
    h.controller.sessions._sessions.clear()
    h.controller.start_sessions(incarnation(9), h.now_ms)
    assert h.register(1, process=9).error_code == 0
    assert h.register(2, process=9).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_silence_for_a_session_fences_a_broker_after_its_partitions() -> None:
    h = with_one_broker()
    h.create("t", 2)
    h.now_ms += SESSION_MS - 1
    assert h.expire() is None
    h.now_ms += 1
    assert h.expire() == 1
    assert h.kinds() == ["PartitionChangeRecord", "PartitionChangeRecord", "BrokerRegistrationChangeRecord"]
    assert change(h.records[0]) == {"isr": (), "leader": -1, "elr": (1,), "last_known": (1,)}
    assert h.image.brokers[1].fenced
    assert h.expire() is None


def test_a_fenced_broker_is_unfenced_by_its_next_heartbeat_and_leads_again() -> None:
    h = with_one_broker()
    h.create("t")
    h.now_ms += SESSION_MS
    h.expire()
    assert not h.heartbeat().is_fenced
    assert h.kinds() == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]
    assert change(h.records[1]) == {"isr": (1,), "leader": 1, "elr": (), "last_known": ()}
    assert h.image.topics_by_name["t"].partitions[0].leader_epoch == 2


def test_a_restart_after_a_clean_stop_elects_the_eligible_leader() -> None:
    h = with_one_broker()
    h.create("t")
    answer = h.heartbeat(want_shut_down=True)
    assert not answer.should_shut_down
    assert h.kinds() == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]
    assert change(h.records[1]) == {"isr": (), "leader": -1, "elr": (1,), "last_known": (1,)}
    answer = h.heartbeat(want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert h.kinds() == ["BrokerRegistrationChangeRecord"]
    epoch = h.image.brokers[1].epoch
    h.register(process=2, previous_epoch=epoch)
    assert h.kinds() == ["RegisterBrokerRecord"]
    h.heartbeat()
    assert change(h.records[1]) == {"isr": (1,), "leader": 1, "elr": (), "last_known": ()}
    partition = h.image.topics_by_name["t"].partitions[0]
    assert (partition.leader_recovery_state, partition.leader_epoch, partition.partition_epoch) == (0, 2, 2)


def test_a_restart_after_a_crash_recovers_from_the_last_known_leader() -> None:
    h = with_one_broker()
    h.create("t")
    h.now_ms += SESSION_MS
    h.register(process=2)
    assert h.kinds() == ["PartitionChangeRecord", "RegisterBrokerRecord"]
    assert change(h.records[0]) == {"isr": (), "leader": -1, "last_known": (1,)}
    assert h.image.brokers[1].epoch == h.next_offset - 2
    h.heartbeat()
    assert change(h.records[1]) == {"isr": (1,), "leader": 1, "recovery": 1, "last_known": ()}
    assert h.image.topics_by_name["t"].partitions[0].leader_recovery_state == 1


def test_a_crash_after_fencing_takes_the_broker_out_of_the_eligible_leaders() -> None:
    h = with_one_broker()
    h.create("t")
    h.now_ms += SESSION_MS
    h.expire()
    h.register(process=2)
    assert change(h.records[0]) == {"elr": ()}
    h.heartbeat()
    assert change(h.records[1]) == {"isr": (1,), "leader": 1, "recovery": 1, "last_known": ()}


def test_without_eligible_leaders_the_last_in_sync_replica_stays_in_the_isr() -> None:
    h = with_one_broker(elr=False)
    h.create("t")
    h.now_ms += SESSION_MS
    h.expire()
    assert change(h.records[0]) == {"leader": -1}
    h.heartbeat()
    assert change(h.records[1]) == {"leader": 1}


def test_leadership_moves_to_a_member_of_the_isr_when_the_leader_is_fenced() -> None:
    h = Harness()
    h.start_broker(1)
    h.start_broker(2)
    h.create("t", -1, -1, assignments={0: [1, 2]})
    h.now_ms += SESSION_MS - 1
    h.heartbeat(2)
    h.now_ms += 1
    assert h.expire() == 1
    assert change(h.records[0]) == {"isr": (2,), "leader": 2}


def test_a_broker_stops_only_when_the_others_have_seen_its_leaders_move() -> None:
    h = Harness()
    h.start_broker(1)
    h.start_broker(2)
    h.create("t", -1, -1, assignments={0: [1, 2]})
    h.heartbeat(2)
    seen = h.next_offset
    assert not h.heartbeat(1, want_shut_down=True).should_shut_down
    assert h.image.topics_by_name["t"].partitions[0].leader == 2
    h.heartbeat(2, current_metadata_offset=seen - 1)
    assert not h.heartbeat(1, want_shut_down=True).should_shut_down
    h.heartbeat(2)
    assert h.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_broker_without_partitions_may_stop_at_once() -> None:
    h = with_one_broker()
    assert h.heartbeat(want_shut_down=True).should_shut_down
    assert h.kinds() == ["BrokerRegistrationChangeRecord"]


def test_producer_ids_are_handed_out_once_in_blocks() -> None:
    h = with_one_broker()
    types = request_types(ApiKey.ALLOCATE_PRODUCER_IDS)
    request = types.AllocateProducerIdsRequest(broker_id=1, broker_epoch=h.image.brokers[1].epoch)
    first = h.call(ApiKey.ALLOCATE_PRODUCER_IDS, request)
    second = h.call(ApiKey.ALLOCATE_PRODUCER_IDS, request)
    assert [(a.producer_id_start, a.producer_id_len) for a in (first, second)] == [(0, 1000), (1000, 1000)]
    assert h.image.next_producer_id == 2000
    stale = types.AllocateProducerIdsRequest(broker_id=1, broker_epoch=-1)
    assert h.call(ApiKey.ALLOCATE_PRODUCER_IDS, stale).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_three_brokers_and_two_controllers_never_get_the_same_block_of_producer_ids() -> None:
    h = Harness()
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    types = request_types(ApiKey.ALLOCATE_PRODUCER_IDS)
    starts = []
    for _ in range(2):
        for broker_id in (1, 2, 3):
            epoch = h.image.brokers[broker_id].epoch
            request = types.AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
            starts.append(h.call(ApiKey.ALLOCATE_PRODUCER_IDS, request).producer_id_start)
        h.fail_over()
    assert starts == [0, 1000, 2000, 3000, 4000, 5000]
