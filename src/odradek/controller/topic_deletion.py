"""DeleteTopics, by name or by id. Pure."""

from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.controller.result import MAX_RECORDS_PER_BATCH, ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID
from odradek.metadata.image import TopicImage
from odradek.metadata.records import MetadataRecord, RemoveTopicRecord
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.delete_topics import DeleteTopicsRequest

_Target = tuple[str | None, UUID]


def delete_topics(
    c: "Controller", request: "DeleteTopicsRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    """Delete every topic that is named once. A topic that is named twice, by name or id, gets one error.

    All are deleted in one batch. Topics that do not fit into it are not deleted and get Kafka's error.
    """
    types = responses.delete_topics
    times: Counter[_Target] = Counter()
    named: set[str] = set()
    for topic in request.topics:
        times[topic.name, topic.topic_id or ZERO_UUID] += 1
        if topic.name is not None:
            named.add(topic.name)
        yield FEW
    results: list[Any] = []
    records: list[MetadataRecord] = []
    for target, count in times.items():
        yield STEP
        name, topic_id = target
        by_id = c.image.topics_by_id.get(topic_id)
        if name is None and by_id is not None and by_id.name in named:
            continue
        try:
            if len(records) == MAX_RECORDS_PER_BATCH:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            found = _resolve(c, target, count)
            if (None, found.id) in times and name is not None:
                topic_id = found.id
                raise _invalid("The provided topic name maps to an ID that was already supplied.")
        except KafkaError as e:
            results.append(
                types.DeletableTopicResult(
                    name=name, topic_id=topic_id, error_code=e.code, error_message=e.message
                )
            )
            continue
        records.append(RemoveTopicRecord(topic_id=found.id))
        results.append(types.DeletableTopicResult(name=found.name, topic_id=found.id))
    return ControllerResult(records, types.DeleteTopicsResponse(responses=results), is_atomic=True)


def _resolve(c: "Controller", target: _Target, count: int) -> TopicImage:
    name, topic_id = target
    if not c.config.bool("delete.topic.enable"):
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    if name is None and topic_id == ZERO_UUID:
        raise _invalid("Neither topic name nor id were specified.")
    if name is not None and topic_id != ZERO_UUID:
        raise _invalid("You may not specify both topic name and topic id.")
    if count > 1:
        raise _invalid("Duplicate topic id." if name is None else "Duplicate topic name.")
    topic = c.image.topics_by_id.get(topic_id) if name is None else c.image.topics_by_name.get(name)
    if topic is not None:
        return topic
    if name is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
