"""A broker may stop when its leaders have moved and every active broker has seen it; no other broker delays
it."""

from odradek.controller.result import MAX_RECORDS_PER_BATCH
from odradek.metadata.image import RECOVERED
from odradek.metadata.records import BrokerRegistrationChangeRecord
from odradek.runtime.slices import at_once
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness
from tests.unit.controller.replicated import alter, partition
from tests.unit.controller.test_large_results import with_partitions

SESSION_MS = 9000


def three_brokers() -> Harness:
    h = Harness()
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    return h


def leader(h: Harness) -> int:
    return h.image.topics_by_name["t"].partitions[0].leader


def test_a_dead_fenced_broker_does_not_hold_back_a_controlled_shutdown() -> None:
    h = three_brokers()
    h.now_ms += SESSION_MS - 1
    h.heartbeat(1)
    h.heartbeat(2)
    h.now_ms += 1
    assert h.expire() == 3
    h.create("t", -1, -1, assignments={0: [1, 2]})
    assert not h.heartbeat(1, want_shut_down=True).should_shut_down
    assert leader(h) == 2
    h.heartbeat(2)
    assert h.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_broker_that_never_was_unfenced_does_not_hold_back_a_controlled_shutdown() -> None:
    h = three_brokers()
    h.register(4)
    h.create("t", -1, -1, assignments={0: [1, 2]})
    assert not h.heartbeat(1, want_shut_down=True).should_shut_down
    h.heartbeat(2)
    h.heartbeat(3)
    assert h.heartbeat(1, want_shut_down=True).should_shut_down


def test_two_brokers_that_stop_at_once_do_not_wait_for_each_other() -> None:
    h = three_brokers()
    h.create("t", -1, -1, assignments={0: [1, 2, 3]})
    h.create("u", -1, -1, assignments={0: [2, 1, 3]})
    behind = h.next_offset
    assert not h.heartbeat(1, want_shut_down=True).should_shut_down
    assert not h.heartbeat(2, want_shut_down=True, current_metadata_offset=behind).should_shut_down
    assert leader(h) == 3
    h.heartbeat(3)
    assert h.heartbeat(1, want_shut_down=True, current_metadata_offset=behind).should_shut_down
    assert h.heartbeat(2, want_shut_down=True, current_metadata_offset=behind).should_shut_down


def test_every_active_broker_must_have_seen_the_move() -> None:
    h = three_brokers()
    h.create("t", -1, -1, assignments={0: [1, 2]})
    h.heartbeat(3)
    assert not h.heartbeat(1, want_shut_down=True).should_shut_down
    h.heartbeat(2)
    assert not h.heartbeat(1, want_shut_down=True).should_shut_down, "broker 3 is behind"
    h.heartbeat(3)
    assert h.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_broker_that_still_leads_stays_in_controlled_shutdown() -> None:
    h = three_brokers()
    h.create("t", -1, -1, assignments={0: [1]})
    h.create("u", -1, -1, assignments={0: [1, 2]})
    assert not h.heartbeat(1, want_shut_down=True).should_shut_down
    assert h.image.brokers[1].in_controlled_shutdown
    assert h.image.topics_by_name["u"].partitions[0].leader == 2
    assert leader(h) == -1, "nobody else has a replica"


def test_a_new_controller_goes_on_with_a_controlled_shutdown_that_another_one_began() -> None:
    """The other one wrote only the first batch of a long result: some partitions still have their leader."""
    h = three_brokers()
    h.create("t", -1, -1, assignments={0: [1, 2]})
    broker = h.image.brokers[1]
    h.apply(
        [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=broker.epoch, in_controlled_shutdown=1)]
    )
    h.fail_over()
    assert not h.heartbeat(1, want_shut_down=True).should_shut_down
    assert h.kinds() == ["PartitionChangeRecord"], "the registration says it already"
    assert leader(h) == 2
    h.heartbeat(2)
    h.heartbeat(3)
    assert h.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_fenced_broker_leaves_controlled_shutdown() -> None:
    h = three_brokers()
    h.create("t", -1, -1, assignments={0: [1, 2]})
    h.heartbeat(1, want_shut_down=True)
    h.now_ms += SESSION_MS
    assert h.expire() == 1
    assert h.controller.sessions.get(1) is None
    assert h.heartbeat(1, want_shut_down=True).should_shut_down, "a fenced broker may always stop"


def test_a_broker_that_stops_leaves_every_isr_that_has_another_member() -> None:
    h = three_brokers()
    h.create("t", -1, -1, assignments={0: [1, 2, 3]})
    h.create("u", -1, -1, assignments={0: [2, 1, 3]})
    h.heartbeat(1, want_shut_down=True)
    assert [partition(h, name).isr for name in ("t", "u")] == [(2, 3), (2, 3)]
    assert [partition(h, name).leader_epoch for name in ("t", "u")] == [1, 0], "u keeps its leader"


def test_without_eligible_leaders_the_last_member_stays_in_the_isr() -> None:
    h = Harness(elr=False)
    for broker_id in (1, 2):
        h.start_broker(broker_id)
    h.create("t", -1, -1, assignments={0: [1, 2]})
    h.heartbeat(2, want_fence=True)
    h.heartbeat(1, want_shut_down=True)
    assert (partition(h).leader, partition(h).isr) == (-1, (1,))
    assert h.heartbeat(1, want_shut_down=True).should_shut_down


def rejoin(h: Harness, broker_id: int) -> None:
    """Leaders take a broker into their ISRs as soon as it is there again."""
    for topic in h.image.topics_by_name.values():
        now = topic.partitions[0]
        if broker_id in now.replicas and now.leader not in (-1, broker_id):
            assert alter(h, [*now.isr, broker_id], topic.name).error_code == 0


def test_five_brokers_of_which_one_is_dead_are_restarted_one_after_the_other() -> None:
    h = Harness()
    for broker_id in range(1, 6):
        h.start_broker(broker_id)
    rows = [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 1], [5, 1, 2]]
    for number, row in enumerate(rows):
        h.create(f"t{number}", -1, -1, assignments={0: row}, configs={"min.insync.replicas": "2"})
    h.now_ms += SESSION_MS - 1
    for broker_id in (1, 2, 3, 4):
        h.heartbeat(broker_id)
    h.now_ms += 1
    assert h.expire() == 5
    living = [1, 2, 3, 4]
    for broker_id in living:
        for _ in range(3):
            answer = h.heartbeat(broker_id, want_shut_down=True)
            if answer.should_shut_down:
                break
            for other in living:
                if other != broker_id:
                    h.heartbeat(other)
        assert answer.should_shut_down, f"broker {broker_id} may not stop"
        leaders = {topic.partitions[0].leader for topic in h.image.topics_by_name.values()}
        assert not leaders & {-1, 5, broker_id}, "every partition has a leader that lives"
        h.register(broker_id, process=100 + broker_id, previous_epoch=h.image.brokers[broker_id].epoch)
        h.heartbeat(broker_id)
        rejoin(h, broker_id)
    for topic in h.image.topics_by_name.values():
        now = topic.partitions[0]
        assert set(now.isr) == set(now.replicas) - {5}
        assert now.leader_recovery_state == RECOVERED


def test_the_leaders_of_thousands_of_partitions_move_batch_by_batch() -> None:
    count = MAX_RECORDS_PER_BATCH + 10
    h = with_partitions(count)
    request = request_types(ApiKey.BROKER_HEARTBEAT).BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=h.image.brokers[1].epoch,
        current_metadata_offset=h.next_offset,
        want_shut_down=True,
    )
    deciding = h.controller.handle(ApiKey.BROKER_HEARTBEAT, request, h.now_ms, h.next_offset)
    result = at_once(deciding)
    assert [len(batch) for batch in result.batches()] == [MAX_RECORDS_PER_BATCH, 11]
    session = h.controller.sessions.get(1)
    assert session is not None
    assert session.shutdown_offset == h.next_offset + count, "the last of them"
