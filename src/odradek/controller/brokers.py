"""The controller's side of brokers: heartbeats, fencing, controlled shutdown. Pure.

registration.py has the registration, broker/lifecycle.py the broker's side.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.controller.elections import ElectionRules, change_partition
from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER
from odradek.metadata.directories import directory_of, is_online
from odradek.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration, TopicImage
from odradek.metadata.records import FENCE, UNFENCE, BrokerRegistrationChangeRecord, MetadataRecord
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.broker_heartbeat import BrokerHeartbeatRequest

Entry = tuple[TopicImage, int, PartitionRegistration]
_CHANGED = 2 * STEP
"""The cost of finding a partition's next leader."""


class _State(Enum):
    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


def heartbeat(
    c: "Controller", request: "BrokerHeartbeatRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    broker = registered(c, request.broker_id, request.broker_epoch)
    caught_up = request.current_metadata_offset >= c.registration_offsets[broker.id]
    before = _state(c, broker)
    c.sessions.touch(broker.id, broker.epoch, request.current_metadata_offset, now_ms)
    after = yield from _next_state(c, broker, request, caught_up)
    records: list[MetadataRecord] = []
    if after is not before:
        records = yield from _transition(c, broker, after)
    elif request.offline_log_dirs:
        # Every heartbeat repeats them, so one change at a time is enough.
        records = yield from _records_for_offline(c, broker, tuple(request.offline_log_dirs))
    cordoned = request.cordoned_log_dirs
    if cordoned is not None and tuple(cordoned) != broker.cordoned_log_dirs and c.versions.can_cordon:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=tuple(cordoned)
            )
        )
    if after is _State.CONTROLLED_SHUTDOWN:
        c.sessions.set_shutdown_offset(broker.id, next_offset + len(records) - 1)
    elif after is _State.SHUTDOWN_NOW:
        c.sessions.drop(broker.id)
    types = responses.broker_heartbeat
    return ControllerResult(
        records,
        types.BrokerHeartbeatResponse(
            is_caught_up=caught_up,
            is_fenced=after in (_State.FENCED, _State.SHUTDOWN_NOW),
            should_shut_down=after is _State.SHUTDOWN_NOW,
        ),
    )


def _state(c: "Controller", broker: BrokerRegistration) -> _State:
    """The state of a broker. A controlled shutdown under an earlier controller starts again, because its last
    records may be lost."""
    if broker.fenced:
        return _State.FENCED
    session = c.sessions.get(broker.id)
    is_stopping = session is not None and session.shutdown_offset is not None
    return _State.CONTROLLED_SHUTDOWN if is_stopping else _State.UNFENCED


def _next_state(
    c: "Controller", broker: BrokerRegistration, request: "BrokerHeartbeatRequest", caught_up: bool
) -> Paced[_State]:
    state = _state(c, broker)
    if state is _State.FENCED:
        if request.want_shut_down:
            return _State.SHUTDOWN_NOW
        return _State.UNFENCED if caught_up and not request.want_fence else _State.FENCED
    if state is _State.UNFENCED:
        if request.want_fence:
            return _State.SHUTDOWN_NOW if request.want_shut_down else _State.FENCED
        if not request.want_shut_down:
            return _State.UNFENCED
        leads = yield from _leads(c, broker.id)
        return _State.CONTROLLED_SHUTDOWN if leads else _State.SHUTDOWN_NOW
    session = c.sessions.get(broker.id)
    assert session is not None, "a broker in controlled shutdown has a session"
    assert session.shutdown_offset is not None, "a broker in controlled shutdown knows its offset"
    lowest = c.sessions.lowest_offset(n for n, other in c.image.brokers.items() if other.is_active)
    others_know = lowest is None or lowest >= session.shutdown_offset
    leads = yield from _leads(c, broker.id)
    return _State.CONTROLLED_SHUTDOWN if leads or not others_know else _State.SHUTDOWN_NOW


def _transition(c: "Controller", broker: BrokerRegistration, after: _State) -> Paced[list[MetadataRecord]]:
    if after is _State.UNFENCED:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE
        )
        return [change, *(yield from leader_and_isr_changes(c, _without_leader(c), add=broker.id))]
    if after is _State.CONTROLLED_SHUTDOWN:
        changes = yield from leader_and_isr_changes(c, with_isr(c, broker.id), remove=broker.id)
        if broker.in_controlled_shutdown:
            return changes
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
        )
        return [change, *changes]
    if broker.fenced:
        return []
    return (yield from records_for_fencing(c, broker))


def records_for_fencing(c: "Controller", broker: BrokerRegistration) -> Paced[list[MetadataRecord]]:
    changes = yield from leader_and_isr_changes(c, with_isr(c, broker.id), remove=broker.id)
    changes.append(
        BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)
    )
    return changes


def _records_for_offline(
    c: "Controller", broker: BrokerRegistration, offline_log_dirs: tuple[UUID, ...]
) -> Paced[list[MetadataRecord]]:
    """A broker's directories failed: remove them, and elect other leaders for the partitions in them."""
    failed = [directory for directory in broker.log_dirs if directory in offline_log_dirs]
    if not failed:
        return []
    hit = (
        None if entry is None or directory_of(entry[2], broker.id) not in failed else entry
        for entry in with_isr(c, broker.id)
    )
    records = yield from leader_and_isr_changes(c, hit, remove=broker.id)
    left = tuple(directory for directory in broker.log_dirs if directory not in failed)
    if left:
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=left)
        )
    return records


def stale_broker(c: "Controller", now_ms: int) -> BrokerRegistration | None:
    """The first unfenced broker whose session has ended, if any.

    One at a time: fencing one broker changes what fencing the next one does.
    """
    for broker in c.image.brokers.values():
        if not broker.fenced and not c.sessions.is_valid(broker.id, broker.epoch, now_ms):
            return broker
    return None


def registered(c: "Controller", broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """The registration of a broker with this epoch. Raises STALE_BROKER_EPOCH."""
    broker = c.image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}"
        )
    if broker.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}",
        )
    return broker


def can_lead(c: "Controller", partition: PartitionRegistration, replica: int) -> bool:
    """Whether a replica is on an active broker, in a directory that works."""
    broker = c.image.brokers.get(replica)
    return broker is not None and broker.is_active and is_online(c.image, partition, replica)


class RulesByTopic:
    """The rules of elections, with the settings of a topic looked up once for all its partitions."""

    __slots__ = ("_c", "_rules")

    def __init__(self, c: "Controller") -> None:
        self._c = c
        self._rules: dict[str, ElectionRules] = {}

    def of(self, topic: TopicImage, partition: PartitionRegistration) -> ElectionRules:
        can_lead_it = partial(can_lead, self._c, partition)
        rules = self._rules.get(topic.name)
        if rules is None:
            rules = self._rules[topic.name] = self._c.election_rules(topic.name, can_lead_it)
        return rules._replace(can_lead=can_lead_it)


def _leads(c: "Controller", broker_id: int) -> Paced[bool]:
    for _, _, partition in c.partitions():
        if partition.leader == broker_id:
            return True
        yield FEW
    return False


def with_isr(c: "Controller", broker_id: int) -> Iterator[Entry | None]:
    for entry in c.partitions():
        yield entry if broker_id in entry[2].isr else None


def _without_leader(c: "Controller") -> Iterator[Entry | None]:
    for entry in c.partitions():
        yield entry if entry[2].leader == NO_LEADER else None


def records_for_shutdown(c: "Controller", broker_id: int, clean: bool) -> Paced[list[MetadataRecord]]:
    """The changes of a broker's partitions after its previous incarnation ended."""
    if clean or not c.image.elr_enabled:
        return (yield from leader_and_isr_changes(c, with_isr(c, broker_id), remove=broker_id))
    held = (
        entry if broker_id in entry[2].isr or broker_id in entry[2].elr else None for entry in c.partitions()
    )
    return (yield from leader_and_isr_changes(c, held, unclean=broker_id))


def _can_lead_from(
    can_lead: Callable[[int], bool], image: MetadataImage, partition: PartitionRegistration, replica: int
) -> bool:
    return can_lead(replica) and is_online(image, partition, replica)


def leader_and_isr_changes(
    c: "Controller",
    partitions: Iterable[Entry | None],
    *,
    remove: int = NO_LEADER,
    add: int = NO_LEADER,
    unclean: int = NO_LEADER,
) -> Paced[list[MetadataRecord]]:
    """New leaders and ISRs when a broker leaves (`remove`), lost data (`unclean`) or joins (`add`).

    Yields None for a partition without a change, because checking it takes time too.
    """

    def can_lead(replica: int) -> bool:
        if replica in (remove, unclean):
            return False
        broker = c.image.brokers.get(replica)
        return replica == add or (broker is not None and broker.is_active)

    gone = (remove, unclean)
    lost = () if unclean == NO_LEADER else (unclean,)
    changes: list[MetadataRecord] = []
    rules_by_topic: dict[str, ElectionRules] = {}
    for entry in partitions:
        if entry is None:
            yield FEW
            continue
        topic, index, partition = entry
        isr = tuple(n for n in partition.isr if n not in gone)
        rules = rules_by_topic.get(topic.name)
        if rules is None:
            rules = rules_by_topic[topic.name] = c.election_rules(topic.name, can_lead)
        if partition.directories:
            rules = rules._replace(can_lead=partial(_can_lead_from, can_lead, c.image, partition))
        record = change_partition(topic.id, index, partition, isr, rules, unclean_shutdown=lost)
        if record is not None:
            changes.append(record)
        yield _CHANGED
    return changes
