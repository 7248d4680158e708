"""MachineController: the controller's decisions about one partition and its brokers, committed at once.

The decisions are those of the real controller (controller/isr.py, brokers.py, elections.py). The world brings
each image to each node, late and in order.
"""

from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import Any
from uuid import UUID

from odradek.controller import brokers, isr
from odradek.controller.controller import Controller
from odradek.controller.elections import ElectionRules
from odradek.controller.result import ControllerResult
from odradek.core.configs import NodeConfig
from odradek.metadata.draft import merge
from odradek.metadata.image import (
    RESOURCE_TOPIC,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from odradek.metadata.records import (
    FENCE,
    UNFENCE,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
)
from odradek.runtime.slices import Paced
from odradek.sim.replication.machine.log import TOPIC, TOPIC_ID

_ELR = "eligible.leader.replicas.version"
_NEWEST = 25
NODE_CONFIG, _ = NodeConfig.from_sources({"node.id": "1", "process.roles": "broker,controller"}, {})


class MachineController:
    """`image` is committed. `rejected` counts what leaders proposed in vain."""

    def __init__(self, replicas: tuple[int, ...], *, elr: bool, min_isr: int, unclean: bool) -> None:
        partition = PartitionRegistration(replicas, replicas, replicas[0], 0, 0)
        topic = TopicImage(TOPIC, TOPIC_ID, {0: partition})
        registered = {
            n: BrokerRegistration(n, n, UUID(int=n), {}, None, False, False, (), None, {}) for n in replicas
        }
        configs = {
            "min.insync.replicas": str(min_isr),
            "unclean.leader.election.enable": str(unclean).lower(),
        }
        self.image = MetadataImage(
            offset=len(replicas),
            topics_by_name={TOPIC: topic},
            topics_by_id={TOPIC_ID: topic},
            brokers=registered,
            features={"metadata.version": _NEWEST, _ELR: int(elr)},
            configs={(RESOURCE_TOPIC, TOPIC): configs},
        )
        self.rejected = 0
        self.config = NODE_CONFIG
        self.node_id = NODE_CONFIG.node_id

    @property
    def partition(self) -> PartitionRegistration:
        return self.image.topics_by_id[TOPIC_ID].partitions[0]

    # --- what the real decisions ask for --------------------------------------------------------------

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
        topic = self.image.topics_by_id[TOPIC_ID]
        yield topic, 0, topic.partitions[0]

    def election_rules(self, topic: str, can_lead: Callable[[int], bool]) -> ElectionRules:
        return Controller.election_rules(self, topic, can_lead)  # type: ignore[arg-type]

    # --- decisions ------------------------------------------------------------------------------------

    def alter_partition(self, request: Any) -> Any:
        """Raises KafkaError if the broker is not registered so."""
        result: Any = isr.alter_partition(self, request, 0, 0)  # type: ignore[arg-type]
        if not isinstance(result, ControllerResult):
            result = run(result)
        self.rejected += any(row.error_code for topic in result.response.topics for row in topic.partitions)
        self._commit(result.records)
        return result.response

    def register(self, broker_id: int, clean_epoch: int | None) -> int:
        """A new incarnation. Returns its epoch."""
        broker = self.image.brokers[broker_id]
        is_clean = clean_epoch == broker.epoch
        records = run(brokers.records_for_shutdown(self, broker_id, is_clean))  # type: ignore[arg-type]
        self._commit(records)
        epoch = self.image.offset + 1
        self._replace(broker._replace(epoch=epoch, incarnation_id=UUID(int=epoch), fenced=True))
        return epoch

    def fence(self, broker_id: int) -> None:
        broker = self.image.brokers[broker_id]
        if not broker.fenced:
            self._commit(run(brokers.records_for_fencing(self, broker)))  # type: ignore[arg-type]

    def elect(self, broker_id: int) -> None:
        """Somebody asks for another leader of the ISR."""
        partition, broker = self.partition, self.image.brokers[broker_id]
        if broker_id in partition.isr and broker_id != partition.leader and broker.is_active:
            self._commit([PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=broker_id)])

    def unfence(self, broker_id: int, epoch: int) -> None:
        """A heartbeat of an incarnation that has seen its registration."""
        broker = self.image.brokers[broker_id]
        if broker.fenced and broker.epoch == epoch:
            change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=UNFENCE)
            led = self.partition.has_leader
            entries = () if led else self.partitions()
            changes = brokers.leader_and_isr_changes(self, entries, add=broker_id)  # type: ignore[arg-type]
            self._commit([change, *run(changes)])

    # --- the image ------------------------------------------------------------------------------------

    def _commit(self, records: Iterable[MetadataRecord]) -> None:
        for record in records:
            if isinstance(record, PartitionChangeRecord):
                topic = self.image.topics_by_id[TOPIC_ID]
                topic = topic._replace(partitions={0: merge(topic.partitions[0], record)})
                self.image = self.image._replace(
                    offset=self.image.offset + 1,
                    topics_by_id={TOPIC_ID: topic},
                    topics_by_name={TOPIC: topic},
                )
            else:
                assert isinstance(record, BrokerRegistrationChangeRecord)
                assert record.fenced in (FENCE, UNFENCE)
                broker = self.image.brokers[record.broker_id]
                self._replace(broker._replace(fenced=record.fenced == FENCE))

    def _replace(self, broker: BrokerRegistration) -> None:
        known = {**self.image.brokers, broker.id: broker}
        self.image = self.image._replace(offset=self.image.offset + 1, brokers=MappingProxyType(known))


def run(work: Paced[Any]) -> Any:
    """Run paced work to its end."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
