"""The small parts of the machine: epochs, the log as it knows it, votes, the voters by offset."""

import pytest

from odradek.raft.ballot import Ballot
from odradek.raft.control import QuorumFacts
from odradek.raft.epochs import Epochs
from odradek.raft.leadership import NEVER_MS, ReplicaState
from odradek.raft.log_state import LogState, LogView, begins_again
from odradek.raft.messages import EpochEnd
from odradek.raft.quorum_records import KRaftVersion, LeaderChange, Voters, from_control, to_control
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet

THREE = VoterSet(Voter(n, ReplicaKey(n).directory_id, ()) for n in (1, 2, 3))
TWO = THREE.without(3)

# --- epochs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epoch", "found"),
    [(0, (0, 0)), (1, (1, 5)), (2, (1, 5)), (3, (3, 9)), (4, (3, 9)), (7, (7, 12)), (8, (7, 12))],
)
def test_an_epoch_ends_where_the_next_one_begins(epoch: int, found: tuple[int, int]) -> None:
    epochs = Epochs(0, ((1, 0), (3, 5), (7, 9)))
    assert epochs.end_offset_for(epoch, 12) == EpochEnd(*found)


def test_below_a_snapshot_only_its_epoch_is_known() -> None:
    epochs = Epochs(3, ((5, 10),))
    assert epochs.end_offset_for(3, 12) == EpochEnd(3, 10)
    assert epochs.end_offset_for(2, 12) == EpochEnd(2, 10)
    assert epochs.epoch_at(9) == 3
    assert epochs.epoch_at(10) == 5


def test_epochs_only_rise() -> None:
    epochs = Epochs(0, ((3, 0),))
    epochs.append(3, 4)
    assert epochs.starts == ((3, 0),)
    with pytest.raises(AssertionError):
        epochs.append(2, 5)


def test_a_truncation_forgets_epochs_that_began_behind_it() -> None:
    epochs = Epochs(1, ((2, 5), (4, 9)))
    epochs.truncate(9)
    assert (epochs.starts, epochs.last) == (((2, 5),), 2)
    epochs.truncate(5)
    assert (epochs.starts, epochs.last) == ((), 1)


@pytest.mark.parametrize(
    ("offset", "end", "origin", "starts"),
    [
        (5, 12, 2, ((2, 5), (4, 9))),
        (7, 12, 2, ((2, 7), (4, 9))),
        (9, 12, 2, ((4, 9),)),
        (10, 12, 4, ((4, 10),)),
        (12, 12, 4, ()),
        (3, 12, 1, ((1, 3), (2, 4), (4, 9))),
    ],
)
def test_a_log_that_begins_later_keeps_the_epochs_from_there(
    offset: int, end: int, origin: int, starts: tuple[tuple[int, int], ...]
) -> None:
    epochs = Epochs(0, ((1, 0), (2, 4), (4, 9)))
    epochs.advance_start(offset, end)
    assert (epochs.origin_epoch, epochs.starts) == (origin, starts)


# --- the log --------------------------------------------------------------------------------------------


def test_a_flush_that_began_before_a_truncation_counts_what_is_left() -> None:
    log = LogState(LogView(0, 5, 5, ((1, 0),)))
    log.append(5, 9, 2)
    log.truncate(7)
    log.flushed(9)
    assert (log.end_offset, log.flushed_offset) == (7, 7)


def test_a_truncation_takes_the_flushed_end_back() -> None:
    log = LogState(LogView(0, 9, 9, ((1, 0),)))
    log.truncate(4)
    log.append(4, 6, 2)
    assert (log.appended_offset, log.flushed_offset) == (4, 4)


def test_an_append_begins_where_the_log_ends() -> None:
    log = LogState(LogView(0, 5, 5, ((1, 0),)))
    with pytest.raises(AssertionError):
        log.append(6, 7, 1)


def test_a_log_that_ends_where_it_begins_has_no_epoch_yet() -> None:
    """The cache of the log keeps the epoch before its start, as one that begins there."""
    log = LogState(LogView(4, 4, 4, ((2, 4),), 2, SnapshotId(4, 2)))
    assert (log.epochs.last, log.epochs.starts) == (2, ())
    log.append(4, 6, 3)
    assert log.epochs.starts == ((3, 4),)


@pytest.mark.parametrize(
    ("view", "again"),
    [
        (LogView(0, 5, 5, ((1, 0),)), False),
        (LogView(0, 5, 5, ((1, 0),), 0, SnapshotId(0, 0)), False),
        (LogView(0, 5, 5, ((1, 0),), 0, SnapshotId(4, 1)), False),
        (LogView(0, 5, 5, ((1, 0),), 0, SnapshotId(4, 2)), True),
        (LogView(0, 5, 5, ((1, 0),), 0, SnapshotId(9, 1)), True),
        (LogView(4, 5, 5, ((2, 4),), 1, SnapshotId(4, 1)), False),
        (LogView(4, 5, 5, ((2, 4),), 1, SnapshotId(3, 1)), True),
        (LogView(4, 4, 4, ((2, 4),), 2, SnapshotId(4, 2)), False),
        # killed within the reset: the log is empty, and the epochs are those of the one before
        (LogView(4, 4, 4, ((1, 4),), 2, SnapshotId(4, 2)), True),
        (LogView(4, 4, 4, ((3, 4),), 2, SnapshotId(4, 2)), True),
    ],
)
def test_a_snapshot_that_the_log_does_not_hold_replaces_it(view: LogView, again: bool) -> None:
    assert begins_again(view) == again


def test_a_log_that_its_snapshot_contradicts_is_reset_before_the_machine_is_made() -> None:
    with pytest.raises(AssertionError):
        LogState(LogView(0, 5, 5, ((1, 0),), 0, SnapshotId(9, 1)))


@pytest.mark.parametrize(
    ("offset", "epoch", "position"),
    [
        (12, 5, None),
        (10, 3, None),
        (11, 5, None),
        (0, 0, SnapshotId(10, 3)),
        (9, 3, SnapshotId(10, 3)),
        (10, 2, SnapshotId(10, 3)),
        (12, 2, SnapshotId(10, 3)),
        (11, 3, EpochEnd(3, 10)),
        (13, 5, EpochEnd(5, 12)),
        (12, 4, EpochEnd(3, 10)),
        (12, 9, EpochEnd(5, 12)),
    ],
)
def test_where_a_fetch_stands_in_a_log_behind_a_snapshot(
    offset: int, epoch: int, position: EpochEnd | SnapshotId | None
) -> None:
    log = LogState(LogView(10, 12, 12, ((5, 10),), 3, SnapshotId(10, 3)))
    assert log.position_of(offset, epoch) == position


# --- votes ----------------------------------------------------------------------------------------------


def test_votes_are_counted_by_the_voters_alone() -> None:
    ballot = Ballot(7, (1, 2, 3))
    assert not ballot.is_granted((1, 2, 3))
    ballot.record(1, True)
    assert not ballot.is_granted((1, 2, 3))
    ballot.record(2, True)
    assert ballot.is_granted((1, 2, 3))


def test_an_election_is_lost_when_no_majority_is_left() -> None:
    ballot = Ballot(1, (2, 3, 4, 5))
    ballot.record(2, False)
    ballot.record(3, False)
    assert not ballot.is_rejected((1, 2, 3, 4, 5))
    ballot.record(4, False)
    assert ballot.is_rejected((1, 2, 3, 4, 5))
    ballot.record(4, True)
    assert not ballot.is_rejected((1, 2, 3, 4, 5))


# --- the voters by offset -------------------------------------------------------------------------------


def test_a_voters_record_acts_when_added_and_goes_with_a_truncation() -> None:
    history = VoterHistory(THREE)
    assert history.add(5, (KRaftVersion(1), Voters(TWO)))
    assert history.last == QuorumFacts(1, TWO)
    assert history.at(5) == QuorumFacts(0, THREE)
    assert history.at(6) == QuorumFacts(1, TWO)
    assert history.had_before(ReplicaKey(3))
    assert not history.truncate(6)
    assert history.truncate(5)
    assert (history.last, history.last_offset) == (QuorumFacts(0, THREE), -1)


def test_the_same_voters_again_count_as_recorded() -> None:
    history = VoterHistory()
    history.reset(0, QuorumFacts(1, THREE))
    assert history.last_offset == -1
    assert not history.add(1, (KRaftVersion(1), Voters(THREE)))
    assert history.last_offset == 1
    assert not history.add(4, (LeaderChange(1, (1,), (1,)),))
    assert history.last_offset == 1


def test_a_snapshot_without_voters_leaves_those_of_the_configuration() -> None:
    history = VoterHistory(THREE)
    history.add(3, (KRaftVersion(1), Voters(TWO)))
    history.reset(9, QuorumFacts())
    assert history.last == QuorumFacts(0, THREE)


def test_a_log_that_begins_later_keeps_what_acted_there() -> None:
    history = VoterHistory(THREE)
    history.add(3, (Voters(TWO),))
    history.add(7, (Voters(THREE),))
    history.forget_before(5)
    assert history.at(5) == QuorumFacts(0, TWO)
    assert len(history.all) == 2


def test_quorum_records_survive_their_layouts() -> None:
    voters = VoterSet([Voter(4, ReplicaKey(4).directory_id, (VoterEndpoint("C", "h", 9),), 0, 1)])
    records = (LeaderChange(4, (4, 5), (4,)), KRaftVersion(1), Voters(voters))
    assert from_control(to_control(records)) == records


# --- who votes ------------------------------------------------------------------------------------------


def test_a_voter_is_known_by_its_directory_where_both_name_one() -> None:
    known = ReplicaKey(1, type(ReplicaKey(1).directory_id)(int=9))
    voters = VoterSet([Voter(*known, ())])
    assert voters.matches(known)
    assert voters.matches(ReplicaKey(1))
    assert not voters.matches(ReplicaKey(1, type(known.directory_id)(int=8)))
    assert not voters.matches(ReplicaKey(2))


def test_a_replica_is_caught_up_at_the_end_or_where_that_was_at_its_last_fetch() -> None:
    state = ReplicaState(ReplicaKey(2))
    state.fetched(0, 10, 100)
    assert state.last_caught_up_ms == NEVER_MS
    state.fetched(10, 20, 200)
    assert state.last_caught_up_ms == 100
    state.fetched(20, 20, 300)
    assert state.last_caught_up_ms == 300
    state.fetched(5, 20, 400)
    assert (state.end_offset, state.last_caught_up_ms) == (5, 300)
