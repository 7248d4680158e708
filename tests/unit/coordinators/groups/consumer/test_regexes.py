"""Subscriptions by regular expression: when they are resolved again, and what that does to the epoch."""

from odradek.coordinators.groups.consumer.records import member_record, regex_record, regex_tombstone
from odradek.coordinators.groups.consumer.regexes import MIN_REFRESH_INTERVAL_MS
from odradek.coordinators.records import ConsumerGroupRegularExpressionKey
from tests.unit.coordinators.groups.consumers import ConsumerHarness, FakeConsumer


def joined(h: ConsumerHarness, member_id: str, regex: str) -> FakeConsumer:
    return h.member(member_id, subscribed_topic_regex=regex).join(subscribed_topic_names=None)


def resolutions(h: ConsumerHarness) -> int:
    return len([key for key, _ in h.log if isinstance(key, ConsumerGroupRegularExpressionKey)])


def test_an_expression_that_matches_nothing_new_gives_no_new_epoch() -> None:
    h = ConsumerHarness(consumer_regex_refresh_interval_ms=60_000)
    h.topic("t", 1)
    a = joined(h, "a", "t.*")
    a.beat()
    epoch = h.consumer_group().group_epoch
    h.advance(30_000)
    a.beat()
    assert resolutions(h) == 1, "no topic has come"
    h.topic("other", 1)
    h.advance(1)
    a.beat()
    a.beat()
    assert resolutions(h) == 2
    assert (h.consumer_group().group_epoch, a.epoch) == (epoch, epoch)


def test_expressions_are_resolved_now_and_then_in_any_case() -> None:
    h = ConsumerHarness(consumer_regex_refresh_interval_ms=20_000)
    h.topic("t", 1)
    a = joined(h, "a", "t.*")
    h.advance(20_000)
    a.beat()
    assert resolutions(h) == 1
    h.advance(1)
    a.beat()
    assert resolutions(h) == 2
    a.beat()
    assert resolutions(h) == 2


def test_a_new_topic_is_looked_at_after_ten_seconds_and_only_once() -> None:
    h = ConsumerHarness(consumer_regex_refresh_interval_ms=600_000)
    a = joined(h, "a", "t.*")
    h.topic("t", 1)
    h.advance(MIN_REFRESH_INTERVAL_MS)
    a.beat()
    assert h.consumer_group().regexes["t.*"].topics == frozenset()
    h.advance(1)
    a.beat()
    assert h.consumer_group().regexes["t.*"].topics == frozenset({"t"})
    assert h.consumer_group().regexes["t.*"].version == h.image.offset
    before = resolutions(h)
    h.advance(MIN_REFRESH_INTERVAL_MS + 1)
    a.beat()
    assert resolutions(h) == before


def test_another_expression_is_resolved_as_soon_as_ten_seconds_are_over() -> None:
    h = ConsumerHarness(consumer_regex_refresh_interval_ms=600_000)
    h.topic("t", 1)
    h.topic("u", 1)
    a = joined(h, "a", "t")
    b = joined(h, "b", "u")
    assert "u" not in h.consumer_group().regexes
    h.advance(MIN_REFRESH_INTERVAL_MS + 1)
    a.beat()
    assert h.consumer_group().regexes["u"].topics == frozenset({"u"})
    for member in (a, b, a, b):
        member.beat()
    assert (len(a.assigned), len(b.assigned)) == (1, 1)
    h.check_reload()


def test_an_expression_that_another_member_has_is_known_at_once() -> None:
    h = ConsumerHarness(consumer_regex_refresh_interval_ms=600_000)
    h.topic("t", 2)
    a = joined(h, "a", "t")
    a.beat()
    epoch = h.consumer_group().group_epoch
    b = joined(h, "b", "t")
    assert h.consumer_group().group_epoch == epoch + 1
    assert b.epoch == epoch + 1
    assert resolutions(h) == 1


def test_a_member_that_changes_its_expression_gives_up_what_the_old_one_matched() -> None:
    h = ConsumerHarness(consumer_regex_refresh_interval_ms=600_000)
    old = h.topic("t", 1)
    a = joined(h, "a", "t")
    a.beat()
    assert list(a.assigned) == [old]
    a.beat(subscribed_topic_regex="u")
    assert a.assigned == {}
    assert list(h.consumer_group().regexes) == [], "nobody has the old one any more"


def test_expressions_are_resolved_at_once_after_a_load() -> None:
    h = ConsumerHarness(consumer_regex_refresh_interval_ms=600_000)
    a = joined(h, "a", "t")
    h.reload()
    h.topic("t", 1)
    a.beat()
    assert h.consumer_group().regexes["t"].topics == frozenset({"t"})


def test_an_expression_that_only_another_broker_can_read_matches_nothing() -> None:
    h = ConsumerHarness(consumer_regex_refresh_interval_ms=20_000)
    h.topic("t", 1)
    a = joined(h, "a", "t")
    group = h.consumer_group()
    resolved = group.regexes["t"]
    h.append(*regex_tombstone("g", "t"))
    member = group.members["a"]._replace(subscribed_topic_regex="(?=t)")
    h.append(*member_record("g", member))
    h.append(*regex_record("g", "(?=t)", resolved))
    h.advance(20_001)
    a.beat()
    assert h.consumer_group().regexes["(?=t)"].topics == frozenset()
    assert "t" not in h.consumer_group().subscribed_topics
