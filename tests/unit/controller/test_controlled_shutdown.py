"""A broker may stop when its leaders have moved and every active broker has seen it; no other broker delays
it."""

from odradek.metadata.records import BrokerRegistrationChangeRecord
from tests.unit.controller.harness import Harness

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
