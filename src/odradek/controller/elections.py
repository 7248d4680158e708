"""The rules of leader elections: partition in, PartitionChangeRecord out. Pure.

They are Kafka's. A leader comes from the ISR. If the ISR is empty, it comes from the eligible leader replicas
(KIP-966), which are known to be complete. Otherwise the last known leader is elected, uncleanly. Otherwise,
if the topic allows it, the first available replica.
"""

from collections.abc import Callable, Collection
from enum import Enum, auto
from typing import NamedTuple
from uuid import UUID

from odradek.core.types import NO_LEADER
from odradek.metadata.draft import NO_RECOVERY_CHANGE
from odradek.metadata.image import RECOVERING, PartitionRegistration
from odradek.metadata.records import NO_LEADER_CHANGE, PartitionChangeRecord


class Election(Enum):
    """Whom an election looks for."""

    ONLINE = auto()
    """The current leader, else another replica that is complete."""
    PREFERRED = auto()
    """The same, but the first replica goes before the current leader."""
    UNCLEAN = auto()
    """The same as ONLINE, and any replica before none."""


class ElectionKind(Enum):
    """Where a new leader came from."""

    ISR = auto()
    ELR = auto()
    UNCLEAN = auto()


class ElectionRules(NamedTuple):
    """What an election depends on, besides the partition."""

    can_lead: Callable[[int], bool]
    elr_enabled: bool
    min_isr: int
    election: Election
    bump_on_shrink: bool = False
    """Before 3.6 nodes knew only by a new leader epoch that a replica had left the ISR."""


class _Outcome(NamedTuple):
    leader: int
    unclean: bool


def change_partition(
    topic_id: UUID,
    index: int,
    partition: PartitionRegistration,
    isr: tuple[int, ...],
    rules: ElectionRules,
    *,
    unclean_shutdown: Collection[int] = (),
    leader_recovery_state: int = NO_RECOVERY_CHANGE,
) -> PartitionChangeRecord | None:
    """The record with this ISR and a matching leader; None if nothing changes.

    Replicas in `unclean_shutdown` may have lost data, so they do not count as complete.
    """
    replicas = partition.replicas
    elr, last_known_elr = partition.elr, partition.last_known_elr
    if rules.elr_enabled:
        if len(isr) >= min(rules.min_isr, len(replicas)):
            elr = ()
        else:
            complete = dict.fromkeys((*partition.elr, *partition.isr))
            elr = tuple(n for n in complete if n not in isr and n not in unclean_shutdown)
    elif not isr:
        isr = partition.isr
    leader, unclean = _elect(partition, isr, elr, rules)
    if unclean:
        isr, elr = (leader,), ()
        leader_recovery_state = RECOVERING
    elif leader != NO_LEADER and leader not in isr:
        isr, elr = (leader,), tuple(n for n in elr if n != leader)
        if len(isr) >= min(rules.min_isr, len(replicas)):
            elr = ()
    if not rules.elr_enabled and isr:
        elr = ()  # nobody keeps track of who is complete
    if leader != NO_LEADER:
        last_known_elr = ()
    elif rules.elr_enabled and not last_known_elr and partition.leader != NO_LEADER:
        last_known_elr = (partition.leader,)
    if leader_recovery_state == partition.leader_recovery_state:
        leader_recovery_state = NO_RECOVERY_CHANGE
    assert leader == NO_LEADER or leader in isr, f"leader {leader} outside the ISR {isr}"
    record = _record(topic_id, index, partition, leader, isr, elr, last_known_elr, leader_recovery_state)
    if record is None or not rules.bump_on_shrink or record.leader != NO_LEADER_CHANGE:
        return record
    if not set(partition.isr) <= set(isr):
        record.leader = leader
    return record


def _elect(
    partition: PartitionRegistration, isr: tuple[int, ...], elr: tuple[int, ...], rules: ElectionRules
) -> _Outcome:
    replicas = partition.replicas
    eligible = isr or elr
    in_order = (partition.leader, *replicas)
    if rules.election is Election.PREFERRED:
        in_order = (replicas[0], *in_order)
    for replica in in_order:
        if replica in eligible and rules.can_lead(replica):
            return _Outcome(replica, False)
    if rules.elr_enabled and not eligible and len(partition.last_known_elr) == 1:
        last = partition.last_known_elr[0]
        if last in replicas and rules.can_lead(last):
            return _Outcome(last, True)
    if rules.election is Election.UNCLEAN:
        for replica in replicas:
            if rules.can_lead(replica):
                return _Outcome(replica, True)
    return _Outcome(NO_LEADER, False)


def kind_of(partition: PartitionRegistration, record: PartitionChangeRecord) -> ElectionKind | None:
    """Where the leader of a record comes from; None if it elects nobody."""
    if record.leader in (NO_LEADER_CHANGE, NO_LEADER, partition.leader):
        return None
    if record.leader in partition.isr:
        return ElectionKind.ISR
    if record.leader_recovery_state != RECOVERING and record.leader in partition.elr:
        return ElectionKind.ELR
    return ElectionKind.UNCLEAN


def _record(
    topic_id: UUID,
    index: int,
    old: PartitionRegistration,
    leader: int,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    last_known_elr: tuple[int, ...],
    leader_recovery_state: int,
) -> PartitionChangeRecord | None:
    record = PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=None if isr == old.isr else isr,
        leader=NO_LEADER_CHANGE if leader == old.leader else leader,
        leader_recovery_state=leader_recovery_state,
        eligible_leader_replicas=None if elr == old.elr else elr,
        last_known_elr=None if last_known_elr == old.last_known_elr else last_known_elr,
    )
    unchanged = (
        record.isr is None
        and record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
    )
    return None if unchanged else record
