"""Plants every violation that the simulator's checkers claim to find, and shows them what is allowed."""

from dataclasses import dataclass

from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition
from odradek.sim.checkers import logs as checkers
from odradek.sim.checkers.history import Batch, CommitLog, Fate, History, Presence

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)
NOW = 1_000


def _history(*batches: Batch) -> History:
    history = History()
    for batch in batches:
        history.batch_sent(batch)
    return history


def _batch(first: int, *values: bytes, producer: str = "p", idempotent: bool = True) -> Batch:
    return Batch(producer, idempotent, -1, TP, first, list(values))


def test_a_missing_record_is_found() -> None:
    assert checkers.missing_records(TP, {0: b"a", 1: b"b"}, {0: b"a"}) == [
        "t-0: offset 1 must hold b'b' but holds nothing"
    ]


def test_a_record_with_other_content_is_found() -> None:
    assert "must hold b'a' but holds b'x'" in checkers.missing_records(TP, {0: b"a"}, {0: b"x"})[0]


def test_more_than_expected_is_no_loss() -> None:
    assert checkers.missing_records(TP, {0: b"a"}, {0: b"a", 1: b"b"}) == []


def test_an_invented_record_is_found() -> None:
    sent = _history(_batch(0, b"a")).sent
    assert checkers.invented_records(TP, {0: b"a"}, sent) == []
    assert "nobody sent" in checkers.invented_records(TP, {0: b"z"}, sent)[0]


def test_a_record_in_the_wrong_partition_is_found() -> None:
    sent = _history(_batch(0, b"a")).sent
    assert "was sent to t-0" in checkers.invented_records(OTHER, {0: b"a"}, sent)[0]


def test_a_refused_record_that_is_there_is_found() -> None:
    batch = _batch(0, b"a")
    batch.fate = Fate.REFUSED
    assert "refused" in checkers.invented_records(TP, {0: b"a"}, _history(batch).sent)[0]


def test_a_log_that_begins_too_late_is_found() -> None:
    assert checkers.wrong_start(TP, 5, trimmed=5) == []
    assert "starts at 6" in checkers.wrong_start(TP, 6, trimmed=5)[0]


def test_a_lost_and_a_resurrected_topic_are_found() -> None:
    history = History()
    history.topic_changed("created", Presence.PRESENT)
    history.topic_changed("deleted", Presence.ABSENT)
    history.topic_changes("unknown")
    assert checkers.wrong_topics(history.topics, {"created"}, NOW) == []
    assert checkers.wrong_topics(history.topics, {"created", "unknown"}, NOW) == []
    assert "created but does not exist" in checkers.wrong_topics(history.topics, {}, NOW)[0]
    assert "deleted but still exists" in checkers.wrong_topics(history.topics, {"created", "deleted"}, NOW)[0]
    assert checkers.wrong_topics(history.topics, {}, asked=0) == []


def test_a_hole_and_a_stray_offset_are_found() -> None:
    assert checkers.holes(TP, {2: b"a", 3: b"b"}, 2, 4) == []
    assert "offset 3 of 2..4 cannot be read" in checkers.holes(TP, {2: b"a"}, 2, 4)[0]
    assert "outside" in checkers.holes(TP, {1: b"a", 2: b"a", 3: b"b"}, 2, 4)[0]


def test_a_duplicate_of_an_idempotent_producer_is_found() -> None:
    sent = _history(_batch(0, b"a", b"b")).sent
    assert checkers.broken_order(TP, {0: b"a", 1: b"b"}, sent) == []
    assert "again at 2" in checkers.broken_order(TP, {0: b"a", 1: b"b", 2: b"b"}, sent)[0]


def test_a_changed_order_of_an_idempotent_producer_is_found() -> None:
    sent = _history(_batch(0, b"a"), _batch(1, b"b")).sent
    assert "comes after" in checkers.broken_order(TP, {0: b"b", 1: b"a"}, sent)[0]


def test_plain_producers_may_repeat_themselves() -> None:
    sent = _history(_batch(0, b"a", b"b", idempotent=False)).sent
    assert checkers.broken_order(TP, {0: b"b", 1: b"a", 2: b"b"}, sent) == []


def _commits(*commits: tuple[int, int, bool]) -> CommitLog:
    """(generation, offset, acknowledged at once) each."""
    history = History()
    for generation, offset, acknowledged in commits:
        commit = history.commit_sent("g", generation, TP, offset)
        if acknowledged:
            history.commit_acknowledged(commit)
    return history.commits.get(("g", TP), CommitLog())


def test_a_committed_offset_that_goes_back_is_found() -> None:
    log = _commits((1, 5, True), (1, 9, True))
    assert checkers.lost_commits("g", log, 9, NOW) == []
    assert "the committed offset is 5" in checkers.lost_commits("g", log, 5, NOW)[0]
    assert "the committed offset is -1" in checkers.lost_commits("g", log, -1, NOW)[0]


def test_a_commit_of_unknown_fate_may_have_happened() -> None:
    log = _commits((1, 5, True), (1, 9, False))
    assert checkers.lost_commits("g", log, 9, NOW) == []
    assert checkers.lost_commits("g", log, 5, NOW) == []
    assert checkers.lost_commits("g", log, 7, NOW) != []


def test_the_newest_generation_decides() -> None:
    history = History()
    late = history.commit_sent("g", 1, TP, 5)
    newer = history.commit_sent("g", 2, TP, 9)
    history.commit_acknowledged(newer)
    history.commit_acknowledged(late)
    log = history.commits["g", TP]
    assert checkers.lost_commits("g", log, 9, NOW) == []
    assert checkers.lost_commits("g", log, 5, NOW) != []


def test_a_commit_acknowledged_while_the_offset_was_looked_up_may_show_or_not() -> None:
    history = History()
    history.commit_acknowledged(history.commit_sent("g", 1, TP, 5))
    asked = history.next_place()
    history.commit_acknowledged(history.commit_sent("g", 1, TP, 9))
    log = history.commits["g", TP]
    assert checkers.lost_commits("g", log, 5, asked) == []
    assert checkers.lost_commits("g", log, 9, asked) == []
    assert checkers.lost_commits("g", log, -1, asked) != []


def test_no_commit_leaves_the_offset_as_it_was_known() -> None:
    log = _commits()
    log.known = 3
    assert checkers.lost_commits("g", log, 3, NOW) == []
    assert checkers.lost_commits("g", log, -1, NOW) != []


def test_a_flushed_commit_that_is_lost_is_found() -> None:
    log = _commits((1, 5, True), (1, 9, True))
    assert checkers.lost_flushed_commits("g", log, 5, flushed=5) == []
    assert checkers.lost_flushed_commits("g", log, 9, flushed=5) == []
    assert checkers.lost_flushed_commits("g", log, -1, flushed=5) != []
    assert checkers.lost_flushed_commits("g", log, 7, flushed=-1) != []
    assert checkers.lost_flushed_commits("g", log, -1, flushed=-1) == []


def test_a_zombie_that_commits_is_found() -> None:
    assert checkers.zombie_commits(_commits((1, 5, True), (2, 6, True))) == []
    assert "generation 1 committed 4" in checkers.zombie_commits(_commits((2, 6, True), (1, 4, True)))[0]


def test_a_zombie_is_found_across_a_restart_but_not_across_a_power_loss() -> None:
    for keep, count in ((True, 1), (False, 0)):
        history = History()
        history.commit_acknowledged(history.commit_sent("g", 2, TP, 6))
        log = history.commits["g", TP]
        log.audited(6, history.next_place(), keep_generation=keep)
        history.commit_acknowledged(history.commit_sent("g", 1, TP, 4))
        assert len(checkers.zombie_commits(log)) == count


def test_what_was_looked_up_is_what_counts_from_then_on() -> None:
    history = History()
    history.commit_acknowledged(history.commit_sent("g", 1, TP, 5))
    history.commit_sent("g", 1, TP, 9)
    log = history.commits["g", TP]
    log.audited(9, history.next_place(), keep_generation=True)
    assert checkers.lost_commits("g", log, 9, NOW) == []
    assert checkers.lost_commits("g", log, 5, NOW) != []


def test_generations_begin_again_after_a_power_loss() -> None:
    history = History()
    history.commit_acknowledged(history.commit_sent("g", 2, TP, 6))
    history.power_lost({})
    history.commit_acknowledged(history.commit_sent("g", 1, TP, 4))
    assert checkers.zombie_commits(history.commits["g", TP]) == []


def test_a_late_answer_is_no_zombie() -> None:
    history = History()
    early = history.commit_sent("g", 1, TP, 5)
    history.commit_acknowledged(history.commit_sent("g", 2, TP, 6))
    history.commit_acknowledged(early)
    assert checkers.zombie_commits(history.commits["g", TP]) == []


@dataclass
class FakeLog:
    log_start_offset: int = 0
    last_stable_offset: int = 5
    high_watermark: int = 5
    log_end_offset: int = 5
    topic_partition: TopicPartition = TP


def test_marks_out_of_order_are_found() -> None:
    assert checkers.LogInvariants().check([FakeLog()]) == []
    for bad in (
        FakeLog(log_start_offset=6),
        FakeLog(last_stable_offset=6),
        FakeLog(high_watermark=6, last_stable_offset=5),
        FakeLog(high_watermark=4),
    ):
        assert "t-0: not log_start" in checkers.LogInvariants().check([bad])[0]


def test_marks_that_go_back_are_found() -> None:
    for field, bad in (
        ("high_watermark", FakeLog(last_stable_offset=4, high_watermark=4)),
        ("log_end", FakeLog(last_stable_offset=4, high_watermark=4, log_end_offset=4)),
    ):
        invariants = checkers.LogInvariants()
        invariants.check([FakeLog()])
        assert any(f"{field} went back" in finding for finding in invariants.check([bad]))
    invariants = checkers.LogInvariants()
    invariants.check([FakeLog(log_start_offset=2)])
    assert "log_start went back" in invariants.check([FakeLog(log_start_offset=1)])[0]
    invariants.new_life()
    assert invariants.check([FakeLog()]) == []


def test_history_notes_an_offset_acknowledged_twice() -> None:
    one, two = _batch(0, b"a"), _batch(1, b"b")
    history = _history(one, two)
    history.batch_acknowledged(one, 7)
    history.batch_acknowledged(one, 7)
    assert history.oddities == []
    history.batch_acknowledged(two, 7)
    assert "offset 7 was acknowledged for b'a' and for b'b'" in history.oddities[0]


def test_history_notes_a_read_that_nobody_sent() -> None:
    history = _history(_batch(0, b"a"))
    history.record_read(TP, 0, b"a")
    assert history.oddities == []
    history.record_read(TP, 0, b"z")
    assert "nobody sent" in history.oddities[0]


def test_history_notes_a_producer_id_given_twice() -> None:
    history = History()
    history.producer_id_given(1)
    history.producer_id_given(2)
    assert history.oddities == []
    history.producer_id_given(1)
    assert "producer id 1" in history.oddities[0]


def test_an_acknowledgement_from_before_a_power_loss_proves_nothing_unless_flushed() -> None:
    for flushed_topics, expected in (((), {}), (("t",), {3: b"a"})):
        history = History(flushed_topics)
        batch = _batch(0, b"a")
        history.batch_sent(batch)
        history.power_lost({})
        history.batch_acknowledged(batch, 3)
        assert history.acknowledged.get(TP, {}) == expected


def test_a_power_loss_frees_offsets_that_were_not_flushed() -> None:
    history = _history(_batch(0, b"a", b"b"))
    history.batch_acknowledged(history.sent[b"a"], 0)
    history.power_lost({TP: {0: b"a"}})
    assert history.acknowledged[TP] == {0: b"a"}


def test_commits_of_an_earlier_era_count_only_where_they_are_flushed() -> None:
    for topics, count in (((), 0), ((GROUP_METADATA_TOPIC,), 1)):
        history = History(topics)
        commit = history.commit_sent("g", 1, TP, 5)
        history.power_lost({})
        history.commit_acknowledged(commit)
        assert len(history.commits["g", TP].acknowledged) == count


def test_an_answer_that_comes_after_the_audit_changes_nothing() -> None:
    history = History()
    commit = history.commit_sent("g", 1, TP, 5)
    log = history.commits["g", TP]
    log.audited(5, history.next_place(), keep_generation=True)
    history.commit_acknowledged(commit)
    assert checkers.lost_commits("g", log, 5, NOW) == []
    assert checkers.lost_commits("g", log, 4, NOW) != []
