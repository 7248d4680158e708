"""What must hold in a cluster of whole nodes, whatever happens to them. Each rule has a name. Pure.

The checker hears what clients were answered and what the nodes show, and keeps it over all
lives of the nodes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Final
from uuid import UUID

SAME_IMAGE: Final = "nodes at the same offset have the same image"
FORWARD: Final = "an image never goes back"
CREATED: Final = "a topic whose creation was answered exists"
DELETED: Final = "a topic whose deletion was answered is gone"
PRODUCER_IDS: Final = "a producer id is given once"
BROKER_EPOCHS: Final = "a broker epoch belongs to one incarnation"
ONE_LEADER: Final = "one leader for each epoch"
ONE_CONTROLLER: Final = "a controller that does not lead is not active"
LIVENESS: Final = "a healed cluster creates topics"
RULES: Final = (
    SAME_IMAGE,
    FORWARD,
    CREATED,
    DELETED,
    PRODUCER_IDS,
    BROKER_EPOCHS,
    ONE_LEADER,
    ONE_CONTROLLER,
    LIVENESS,
)


@dataclass(slots=True)
class Counters:
    """How much happened that puts the rules to the test."""

    topics_created: int = 0
    topics_deleted: int = 0
    producer_ids: int = 0
    broker_epochs: int = 0
    images_compared: int = 0
    leaders: int = 0
    deposed: int = 0
    snapshots: int = 0
    truncated: int = 0

    def as_dict(self) -> dict[str, int]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


MUST_HAPPEN: Final = {
    "topics_created": "a topic was created",
    "topics_deleted": "a topic was deleted",
    "images_compared": "two nodes showed an image of the same offset",
    "deposed": "a leader was deposed",
    "snapshots": "a snapshot was fetched",
    "truncated": "a divergence was truncated",
}


def missing(happened: Mapping[str, int]) -> list[str]:
    """What never happened: rules that were never put to the test."""
    return [text for name, text in MUST_HAPPEN.items() if not happened.get(name)]


@dataclass(slots=True)
class Checker:
    violations: list[str] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    created: dict[UUID, str] = field(default_factory=dict)
    """Topics that must exist, by id: their creation was answered, and nobody asked for their deletion."""
    deleted: dict[UUID, str] = field(default_factory=dict)
    _digests: dict[int, tuple[str, str]] = field(default_factory=dict)
    _producer_ids: dict[int, str] = field(default_factory=dict)
    _epochs: dict[int, tuple[int, UUID]] = field(default_factory=dict)
    _leaders: dict[int, str] = field(default_factory=dict)

    def fail(self, rule: str, details: str) -> None:
        self.violations.append(f"{rule}: {details}")

    # --- what the nodes show --------------------------------------------------------------------------

    def image_shown(self, node: str, offset: int, digest: str, before: int) -> None:
        """A node shows the image of an offset; in the same life it showed that of `before`, or -1."""
        if offset < before:
            self.fail(FORWARD, f"{node} shows offset {offset} after {before}")
        other, known = self._digests.setdefault(offset, (node, digest))
        if other != node:
            self.counters.images_compared += 1
        if known != digest:
            self.fail(SAME_IMAGE, f"at offset {offset} {node} has {digest}, {other} had {known}")

    def leads(self, node: str, epoch: int) -> None:
        other = self._leaders.setdefault(epoch, node)
        if other != node:
            self.fail(ONE_LEADER, f"{node} leads epoch {epoch}, and so did {other}")
        self.counters.leaders = len(self._leaders)

    def broker_epoch(self, broker_id: int, epoch: int, incarnation: UUID) -> None:
        """An incarnation of a broker has an epoch: it was told so, or an image says so."""
        known = self._epochs.setdefault(epoch, (broker_id, incarnation))
        if known != (broker_id, incarnation):
            self.fail(
                BROKER_EPOCHS,
                f"epoch {epoch} of broker {broker_id}, incarnation {incarnation}, was that of broker "
                f"{known[0]}, incarnation {known[1]}",
            )
        self.counters.broker_epochs = len(self._epochs)

    # --- what clients were answered -------------------------------------------------------------------

    def topic_created(self, topic_id: UUID, name: str) -> None:
        self.created[topic_id] = name
        self.counters.topics_created += 1

    def topic_deletes(self, topic_id: UUID) -> None:
        """Its deletion is asked for: until that is answered it may or may not exist."""
        self.created.pop(topic_id, None)

    def topic_deleted(self, topic_id: UUID, name: str) -> None:
        self.deleted[topic_id] = name
        self.counters.topics_deleted += 1

    def producer_ids_given(self, first: int, count: int, to: str) -> None:
        """Ids for producers, or blocks of them for brokers: tell apart what is handed on from what is not."""
        self.counters.producer_ids += 1
        for producer_id in range(first, first + count):
            other = self._producer_ids.setdefault(producer_id, to)
            if other != to:
                self.fail(PRODUCER_IDS, f"{producer_id} was given to {other} and to {to}")
                return

    def check_topics(self, node: str, topic_ids: Collection[UUID]) -> None:
        """When all is healed, and a node shows all that was decided before."""
        for topic_id, name in self.created.items():
            if topic_id not in topic_ids:
                self.fail(CREATED, f"{node} does not know {name} {topic_id}")
        for topic_id, name in self.deleted.items():
            if topic_id in topic_ids:
                self.fail(DELETED, f"{node} has {name} {topic_id}")
