"""Applies published metadata to this broker: partitions take their roles, then coordinators load or resign.

`replication/` decides the roles. dynamic_configs.py applies configs.
"""

from odradek.broker.coordinator_roles import CoordinatorRoles
from odradek.broker.directory_assigner import DirectoryAssigner
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.log.manager import LogManager
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.publisher import MetadataPublisher
from odradek.replication.manager import ReplicaManager, RoleChanges
from odradek.runtime.reply import Reply
from odradek.runtime.slices import FEW, Paced, Slices


class MetadataApplier:
    """Call `subscribe` when the logs are open, and `open_waiting` regularly, for partitions that could not be
    opened."""

    def __init__(
        self,
        replicas: ReplicaManager,
        logs: LogManager,
        assigner: DirectoryAssigner,
        roles: CoordinatorRoles,
        groups: GroupCoordinator,
        slices: Slices,
    ) -> None:
        self._replicas = replicas
        self._logs = logs
        self._assigner = assigner
        self._roles = roles
        self._groups = groups
        self._slices = slices

    def subscribe(self, metadata: MetadataPublisher) -> None:
        """Subscribe. The current image is applied at once."""
        metadata.subscribe(self._apply_partitions, self._assign_directories, self._tell_groups)

    def open_waiting(self) -> Reply[None]:
        """Retry to open the partitions that failed because descriptors or memory ran out."""
        return self._slices.run(self._open_waiting(), own=True)

    def _open_waiting(self) -> Paced[None]:
        waiting = self._replicas.waiting()
        if waiting:
            changes = yield from self._replicas.open_waiting()
            self._logs.persist_topic_ids()
            yield from self._assigner.look_at(waiting)
            yield from self._take_roles(changes)

    def _apply_partitions(self, delta: MetadataDelta) -> Paced[None]:
        changes = yield from self._replicas.apply_delta(delta)
        self._logs.persist_topic_ids()
        yield from self._take_roles(changes)

    def _take_roles(self, changes: RoleChanges) -> Paced[None]:
        for tp in changes.resigned:
            self._roles.resigned(tp)
            yield FEW
        for partition in changes.elected:
            yield FEW
            if partition.is_leading:  # otherwise its topic was deleted or its directory failed since
                self._roles.elected(partition)

    def _assign_directories(self, delta: MetadataDelta) -> Paced[None]:
        return self._assigner.look_at(delta.changed_partitions)

    def _tell_groups(self, delta: MetadataDelta) -> Paced[None]:
        known, before = delta.image.topics_by_id, delta.previous.topics_by_id
        names = {topic.name for topic in delta.deleted_topics}
        has_new = False
        for topic_id in delta.changed_topics:
            yield FEW
            topic = known.get(topic_id)
            if topic is not None:
                names.add(topic.name)
                has_new = has_new or topic_id not in before
        if names:
            yield from self._groups.on_topics_changed(names, has_new=has_new)
        if delta.deleted_topics:
            self._groups.on_topics_deleted({topic.name: topic.id for topic in delta.deleted_topics})
