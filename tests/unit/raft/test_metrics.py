"""Averages, maxima and rates of the last half to whole minute."""

import math
from uuid import UUID

import pytest

from odradek.raft.metrics import WINDOW_MS, RaftMetrics, Recent
from odradek.raft.roles import Candidate, Follower, Leader, Prospective, Unattached
from odradek.raft.voters import ReplicaKey

NOW = 1_000_000
OWN = ReplicaKey(1, UUID(int=1))


def test_nothing_recent_has_no_average_and_no_maximum() -> None:
    recent = Recent()
    assert math.isnan(recent.average(NOW)) and math.isnan(recent.maximum(NOW))
    assert recent.per_second(NOW) == 0


def test_values_are_forgotten_after_two_windows() -> None:
    recent = Recent()
    recent.add(10, NOW)
    recent.add(30, NOW + WINDOW_MS)
    assert (recent.average(NOW + WINDOW_MS), recent.maximum(NOW + WINDOW_MS)) == (20, 30)
    assert recent.maximum(NOW + 2 * WINDOW_MS) == 30
    assert recent.average(NOW + 2 * WINDOW_MS) == 30, "the first is gone"
    assert math.isnan(recent.average(NOW + 4 * WINDOW_MS))


def test_a_rate_is_over_the_time_that_is_covered() -> None:
    recent = Recent()
    for second in range(45):
        recent.add(2, NOW + 1000 * second)
    assert recent.per_second(NOW + 45_000) == pytest.approx(2)
    young = Recent()
    young.add(30, NOW)
    assert young.per_second(NOW + 10) == 1, "not 3,000 in a second"


def test_a_commit_takes_from_the_append_until_the_high_watermark_passes_it() -> None:
    metrics = RaftMetrics()
    metrics.append(2, 12, NOW)
    metrics.append(1, 13, NOW + 5)
    metrics.commit(11, NOW + 6)
    assert math.isnan(metrics.commits.average(NOW + 6))
    metrics.commit(13, NOW + 20)
    assert (metrics.commits.average(NOW + 20), metrics.commits.maximum(NOW + 20)) == (17.5, 20)
    metrics.append(1, 14, NOW + 21)
    metrics.become(Unattached(5), NOW + 22)
    metrics.commit(14, NOW + 500)
    assert metrics.commits.maximum(NOW + 500) == 20, "another leader committed it, or something else there"


def test_an_election_lasts_from_the_first_question_until_there_is_a_leader() -> None:
    metrics = RaftMetrics()
    metrics.become(Follower(3, 2), NOW)
    assert math.isnan(metrics.elections.average(NOW))
    metrics.become(Prospective(3, 2), NOW + 100)
    metrics.become(Unattached(4), NOW + 150)
    metrics.become(Candidate(5, OWN), NOW + 200)
    metrics.become(Leader(5, 1, 0, (1, 2), OWN), NOW + 260)
    assert metrics.elections.maximum(NOW + 260) == 160
    assert metrics.new_leaders == 2
    metrics.become(Follower(6, 2), NOW + 300)
    assert metrics.elections.maximum(NOW + 300) == 160 and metrics.new_leaders == 3


def test_time_spent_in_steps_is_not_idle() -> None:
    metrics = RaftMetrics()
    metrics.busy_ms.add(3000, NOW)
    assert metrics.idle_ratio(NOW + WINDOW_MS - 1) == pytest.approx(0.9)
