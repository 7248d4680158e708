"""Controller: the active controller as a pure state machine. Requests and time in, records and answers out.

Its state changes only when records are replayed: `stage`, then `take` after the driver has appended them. Its
image includes appended records that are not committed yet, so it is ahead of the published image. Broker
sessions are soft state. Long work is paced: the driver decides nothing else until its records are taken.
"""

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any
from uuid import UUID

from odradek.controller import (
    brokers,
    configs,
    directory_assignment,
    electing,
    features,
    isr,
    partitions,
    reassigning,
    registration,
    topic_deletion,
    topics,
    unregistering,
)
from odradek.controller import producer_id_blocks as producer_ids
from odradek.controller.activation import activation_records
from odradek.controller.elections import Election, ElectionKind, ElectionRules, kind_of
from odradek.controller.result import ControllerResult
from odradek.controller.sessions import BrokerSessions
from odradek.core.config.topic import topic_value
from odradek.core.configs import NodeConfig
from odradek.core.errors import KafkaError
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import (
    CLUSTER_DEFAULT,
    RESERVED_DIRS,
    RESOURCE_BROKER,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from odradek.metadata.records import MetadataRecord, PartitionChangeRecord
from odradek.metadata.replay import Replayer, StagedDelta
from odradek.metadata.topic_names import collision_key
from odradek.metadata.versions import RecordVersions, needs_epoch_for_shrink
from odradek.runtime.slices import STEP, Paced
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types

Handler = Callable[["Controller", Any, int, int], ControllerResult | Paced[ControllerResult]]


class Controller:
    """Decides requests. The caller passes everything that it depends on: configuration, random numbers, time,
    offsets.

    Each term of leadership has its own controller. It is made from a copy of the committed state
    (`Replayer.copy`) when that includes the whole log. At the end of the term it is dropped, with everything
    that it staged. A new controller first appends `activation`, then starts the brokers' sessions
    (`start_sessions`), then decides requests.
    """

    def __init__(
        self,
        *,
        config: NodeConfig,
        cluster_id: str,
        kraft_version: int,
        rng: random.Random,
        replayer: Replayer,
    ) -> None:
        self.config = config
        self.node_id = config.node_id
        self.cluster_id = cluster_id
        self.kraft_version = kraft_version
        self.voter_ids: Collection[int] = ()
        """The voters of the quorum, where they are known: no feature changes before all have registered."""
        self.rng = rng
        self.sessions = BrokerSessions(config.int("broker.session.timeout.ms"))
        self.registration_offsets = dict.fromkeys(replayer.image.brokers, replayer.image.offset)
        """The offsets of the RegisterBrokerRecords. Those of an earlier controller are unknown: the end of
        its log is an upper bound."""
        self.collisions: dict[str, str] = {}
        self._replayer = replayer
        for name in replayer.image.topics_by_name:
            self._note_name(name)

    # --- state --------------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        """The image with all appended records, committed or not."""
        return self._replayer.image

    @property
    def versions(self) -> RecordVersions:
        return RecordVersions.at(self.image.metadata_version)

    def stage(
        self, records: Sequence[MetadataRecord], *, last_offset: int, epoch: int, timestamp_ms: int
    ) -> Paced[StagedDelta]:
        """Compute the effect of records before they are appended. Raises ReplayError."""
        return self._replayer.stage(records, last_offset=last_offset, epoch=epoch, timestamp_ms=timestamp_ms)

    def take(self, staged: StagedDelta) -> MetadataDelta:
        """The staged records were appended. Run `note_names` before the next decision."""
        return self._replayer.take(staged)

    def note_names(self, delta: MetadataDelta) -> Paced[None]:
        """Update the names in use after a delta."""
        for topic in delta.deleted_topics:
            yield STEP
            key = collision_key(topic.name)
            if key is not None and self.collisions.get(key) == topic.name:
                del self.collisions[key]
        for topic_id in delta.changed_topics:
            self._note_name(delta.image.topics_by_id[topic_id].name)
            yield STEP

    def _note_name(self, name: str) -> None:
        key = collision_key(name)
        if key is not None:
            self.collisions[key] = name

    def activation(self, bootstrap: Sequence[MetadataRecord] | None) -> ControllerResult:
        """The first records of a term: abort an open transaction of the last controller, or bootstrap a new
        log.

        `bootstrap` has the records of bootstrap.checkpoint. Without them, those of this release are used.
        """
        return activation_records(
            self.image,
            in_transaction=self._replayer.in_transaction,
            bootstrap=bootstrap,
            min_insync_replicas=self.config.int("min.insync.replicas"),
        )

    def start_sessions(self, own_incarnation: UUID, now_ms: int) -> None:
        """Give every unfenced broker a session when this becomes the active controller.

        An earlier incarnation of this node gets none: it has ended, because this node holds its directory.
        """
        for broker in self.image.brokers.values():
            own_past = broker.id == self.node_id and broker.incarnation_id != own_incarnation
            if not broker.fenced and not own_past:
                self.sessions.touch(broker.id, broker.epoch, -1, now_ms)

    # --- commands -----------------------------------------------------------------------------------

    def handle(self, api_key: ApiKey, request: Any, now_ms: int, next_offset: int) -> Paced[ControllerResult]:
        """Decide a request. `now_ms` never goes back. Records would start at `next_offset`."""
        try:
            outcome = _HANDLERS[api_key](self, request, now_ms, next_offset)
            return outcome if isinstance(outcome, ControllerResult) else (yield from outcome)
        except KafkaError as e:
            return ControllerResult([], failed(api_key, e))

    def expire_session(self, now_ms: int) -> Paced[tuple[BrokerRegistration | None, list[MetadataRecord]]]:
        """The next broker whose session has ended, and the records that fence it."""
        broker = brokers.stale_broker(self, now_ms)
        if broker is None:
            return None, []
        self.sessions.drop(broker.id)
        return broker, (yield from brokers.records_for_fencing(self, broker))

    def fence(self, broker_id: int, broker_epoch: int) -> Paced[list[MetadataRecord]]:
        """The records that fence an incarnation before its session ends; none where it is fenced or gone."""
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.fenced or broker.epoch != broker_epoch:
            return []
        self.sessions.drop(broker_id)
        return (yield from brokers.records_for_fencing(self, broker))

    def elect(self, election: Election) -> Paced[list[MetadataRecord]]:
        """The records of a periodic election, no more than `MAX_ELECTIONS`."""
        if election is Election.PREFERRED:
            return electing.preferred_elections(self)
        return electing.unclean_elections(self)

    def election_of(self, record: MetadataRecord) -> ElectionKind | None:
        """Where the leader that a record elects comes from, before the record is taken."""
        if not isinstance(record, PartitionChangeRecord):
            return None
        topic = self.image.topics_by_id.get(record.topic_id)
        partition = None if topic is None else topic.partitions.get(record.partition_id)
        return None if partition is None else kind_of(partition, record)

    # --- questions its parts ask --------------------------------------------------------------------

    def new_uuid(self) -> UUID:
        """A random id that is not reserved and whose text does not look like an option."""
        while True:
            value = UUID(bytes=self.rng.randbytes(16), version=4)
            if value not in RESERVED_DIRS and value.bytes[0] >> 2 != 62:
                return value

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
        for topic in self.image.topics_by_id.values():
            for index, partition in topic.partitions.items():
                yield topic, index, partition

    def election_rules(self, topic: str, can_lead: Callable[[int], bool]) -> ElectionRules:
        """The rules for a topic, by its settings, those of this node and those of all nodes in the image.

        The node's own configuration is behind the image, and knows no dynamic settings if it is no broker.
        """
        overrides = self.image.topic_config(topic)
        dynamic = {
            **self.image.config(RESOURCE_BROKER, CLUSTER_DEFAULT),
            **self.image.config(RESOURCE_BROKER, str(self.node_id)),
        }
        min_isr = topic_value("min.insync.replicas", self.config, overrides, dynamic)
        unclean = topic_value("unclean.leader.election.enable", self.config, overrides, dynamic)
        assert isinstance(min_isr, int)
        return ElectionRules(
            can_lead,
            self.image.elr_enabled,
            min_isr,
            Election.UNCLEAN if unclean else Election.ONLINE,
            needs_epoch_for_shrink(self.image.metadata_version),
        )


def failed(api_key: ApiKey, error: KafkaError) -> Any:
    """The answer to a request that failed as a whole, if its API has a top-level error."""
    types = response_types(api_key)
    response = next(cls for name, cls in vars(types).items() if name.endswith("Response"))()
    response.error_code = error.code
    if hasattr(response, "error_message"):
        response.error_message = error.message
    return response


_HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.CREATE_TOPICS: topics.create_topics,
    ApiKey.DELETE_TOPICS: topic_deletion.delete_topics,
    ApiKey.CREATE_PARTITIONS: partitions.create_partitions,
    ApiKey.ALTER_CONFIGS: configs.alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter_configs,
    ApiKey.UPDATE_FEATURES: features.update_features,
    ApiKey.ELECT_LEADERS: electing.elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: reassigning.alter_partition_reassignments,
    ApiKey.UNREGISTER_BROKER: unregistering.unregister_broker,
    ApiKey.BROKER_REGISTRATION: registration.register_broker,
    ApiKey.BROKER_HEARTBEAT: brokers.heartbeat,
    ApiKey.ALLOCATE_PRODUCER_IDS: producer_ids.allocate_producer_ids,
    ApiKey.ALTER_PARTITION: isr.alter_partition,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: directory_assignment.assign_replicas_to_dirs,
    ApiKey.CONTROLLER_REGISTRATION: registration.register_controller,
}
