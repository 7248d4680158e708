"""The same random elections by elections.py and by Apache Kafka's own class: the same leaders, ISRs and ELRs.

Differences that are intended, and left out here:
- While eligible leader replicas are disabled, Apache drops a leftover ELR even if the ISR is empty. Then
  nobody can lead any more (tests/unit/controller/test_election_cases.py).
- A leader has recovered and cannot lead any longer: Apache calls the next one, elected uncleanly, recovered.
- Apache writes an ELR again only to sort it.
"""

import random
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest

from odradek.controller.elections import Election, ElectionRules, change_partition
from odradek.metadata.draft import merge
from odradek.metadata.image import RECOVERED, RECOVERING, PartitionRegistration
from odradek.metadata.versions import needs_epoch_for_shrink
from tests.support import peer

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

CASES = 20_000
BROKERS = (1, 2, 3, 4, 5)
OLD, NEW = 7, 30
"""Levels of metadata.version: below 11 a shrinking ISR needs a new leader epoch."""
NOTHING = "none"


class Case(NamedTuple):
    partition: PartitionRegistration
    target_isr: tuple[int, ...]
    alive: tuple[int, ...]
    elr_enabled: bool
    min_isr: int
    election: Election
    unclean_shutdown: tuple[int, ...]
    level: int
    leader_recovery_state: int

    def line(self) -> str:
        """For java/Elections.java."""
        p = self.partition
        lists = [ids(row) for row in (p.replicas, p.isr, p.elr, p.last_known_elr)]
        numbers = [str(p.leader), str(p.leader_recovery_state)]
        asked = [ids(self.target_isr), ids(self.alive), str(self.elr_enabled).lower(), str(self.min_isr)]
        rest = [ids(self.unclean_shutdown), str(self.level), str(self.leader_recovery_state)]
        return " ".join([*lists, *numbers, *asked, self.election.name, *rest])


def ids(row: tuple[int, ...]) -> str:
    return ",".join(map(str, row)) or "-"


def case(chooser: random.Random) -> Case:
    """A partition as it may be, and something that happens to it."""
    replicas = tuple(chooser.sample(BROKERS, chooser.randint(1, 4)))
    elr_enabled, min_isr = chooser.random() < 0.7, chooser.randint(1, 3)
    least = min(min_isr, len(replicas))
    isr = some(chooser, replicas, 0 if elr_enabled else 1)
    elr: tuple[int, ...] = ()
    if elr_enabled and len(isr) < least:
        outside = tuple(n for n in replicas if n not in isr)
        elr = tuple(sorted(some(chooser, outside, 0)[: 1 if least == 1 else None]))
    leader = chooser.choice((*isr, -1))
    last_known = ()
    if leader == -1 and elr_enabled:
        last_known = tuple(chooser.sample(replicas, chooser.choice((0, 1, 1, min(2, len(replicas))))))
    state = chooser.choice((RECOVERED, RECOVERED, RECOVERING))
    partition = PartitionRegistration(
        replicas, isr, leader, 10, 10, elr=elr, last_known_elr=last_known, leader_recovery_state=state
    )
    target, unclean_shutdown, wanted = isr, (), state
    happens = chooser.choice(("leaves", "lost", "altered", "nothing"))
    gone = chooser.choice(replicas)
    alive = some(chooser, BROKERS, 0)
    if happens == "altered" and leader != -1:
        members = {leader, *some(chooser, replicas, 0)}
        target = tuple(n for n in replicas if n in members)
        if leader in alive:
            wanted = chooser.choice((RECOVERED, state))
    elif happens in ("leaves", "lost"):
        target = tuple(n for n in isr if n != gone)
        alive = tuple(n for n in alive if n != gone)
        unclean_shutdown = (gone,) if happens == "lost" and elr_enabled else ()
    level = NEW if elr_enabled else chooser.choice((OLD, NEW))
    election = chooser.choice(list(Election))
    return Case(partition, target, alive, elr_enabled, min_isr, election, unclean_shutdown, level, wanted)


def some(chooser: random.Random, of: tuple[int, ...], least: int) -> tuple[int, ...]:
    return tuple(chooser.sample(of, chooser.randint(least, len(of))))


def outcome(given: Case) -> str:
    """What java/Elections.java prints."""
    partition = given.partition
    rules = ElectionRules(
        lambda n: n in given.alive,
        given.elr_enabled,
        given.min_isr,
        given.election,
        needs_epoch_for_shrink(given.level),
    )
    record = change_partition(
        UUID(int=1),
        0,
        partition,
        given.target_isr,
        rules,
        unclean_shutdown=given.unclean_shutdown,
        leader_recovery_state=given.leader_recovery_state,
    )
    if record is None:
        return NOTHING
    changed = merge(partition, record)
    lists = [ids(row) for row in (changed.isr, changed.elr, changed.last_known_elr)]
    is_new = str(changed.leader_epoch > partition.leader_epoch).lower()
    return " ".join([str(changed.leader), *lists, str(changed.leader_recovery_state), is_new])


def unordered(text: str) -> list[str]:
    """The order of an ELR means nothing."""
    return [ids(tuple(sorted(map(int, part.split(","))))) if "," in part else part for part in text.split()]


def test_random_elections_end_as_apaches_do(tmp_path: Path) -> None:
    chooser = random.Random(4711)
    cases = [case(chooser) for _ in range(CASES)]
    asked = tmp_path / "elections"
    asked.write_text("\n".join(given.line() for given in cases))
    peer.compile_java(tmp_path / "classes")
    told = peer.run_java(tmp_path / "classes", "Elections", str(asked)).splitlines()
    assert len(told) == CASES
    wrong = [
        (given.line(), apache, ours)
        for given, apache in zip(cases, told, strict=True)
        if unordered(ours := outcome(given)) != unordered(apache)
    ]
    assert not wrong, f"{len(wrong)} differ, the first: {wrong[:3]}"
    leaders = {apache.split()[0] for apache in told}
    assert leaders >= {NOTHING, "-1", "1", "5"}
    assert sum(" 1 true" in apache for apache in told) > 1000, "unclean elections"
