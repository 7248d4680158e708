"""What an image shows once it has followed an answer of the controller. Pure.

A broker that asked a controller on another node answers its client when its own image shows the change: the
client's next request finds it. Where others change the same again at once, no image may ever show it: wait
with a bound. Answers that cannot be recognized in an image are not waited for.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID
from odradek.metadata.image import MetadataImage
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.broker_registration import BrokerRegistrationRequest
    from odradek.wire.requests.create_partitions import CreatePartitionsRequest
    from odradek.wire.requests.create_topics import CreateTopicsRequest
    from odradek.wire.requests.incremental_alter_configs import IncrementalAlterConfigsRequest
    from odradek.wire.requests.unregister_broker import UnregisterBrokerRequest
    from odradek.wire.requests.update_features import UpdateFeaturesRequest
    from odradek.wire.responses.broker_registration import BrokerRegistrationResponse
    from odradek.wire.responses.create_partitions import CreatePartitionsResponse
    from odradek.wire.responses.create_topics import CreateTopicsResponse
    from odradek.wire.responses.delete_topics import DeleteTopicsResponse
    from odradek.wire.responses.unregister_broker import UnregisterBrokerResponse
    from odradek.wire.responses.update_features import UpdateFeaturesResponse

Condition = Callable[[MetadataImage], bool]

_SET, _DELETE = 0, 1  # of IncrementalAlterConfigs; appended and subtracted entries may stand among others


def shown(api_key: ApiKey, request: Any, response: Any) -> Condition | None:
    """What to look for in the own image, or None where there is nothing to wait for."""
    condition = _CONDITIONS.get(api_key)
    if condition is None or getattr(request, "validate_only", False):
        return None
    return condition(request, response)


def _topics_created(request: "CreateTopicsRequest", response: "CreateTopicsResponse") -> Condition:
    """A topic that exists already was perhaps created a moment ago."""
    ids = [t.topic_id for t in response.topics if not t.error_code and t.topic_id != ZERO_UUID]
    names = [
        t.name
        for t in response.topics
        if t.error_code == ErrorCode.TOPIC_ALREADY_EXISTS or (not t.error_code and t.topic_id == ZERO_UUID)
    ]
    return lambda image: (
        all(topic_id in image.topics_by_id for topic_id in ids)
        and all(name in image.topics_by_name for name in names)
    )


def _topics_deleted(request: Any, response: "DeleteTopicsResponse") -> Condition:
    deleted = [t for t in response.responses if not t.error_code]
    ids = [t.topic_id for t in deleted if t.topic_id != ZERO_UUID]
    names = [t.name for t in deleted if t.topic_id == ZERO_UUID]
    return lambda image: (
        not any(topic_id in image.topics_by_id for topic_id in ids)
        and not any(name in image.topics_by_name for name in names)
    )


def _partitions_created(
    request: "CreatePartitionsRequest", response: "CreatePartitionsResponse"
) -> Condition:
    refused = {result.name for result in response.results if result.error_code}
    counts = [(topic.name, topic.count) for topic in request.topics if topic.name not in refused]

    def is_shown(image: MetadataImage) -> bool:
        topics = image.topics_by_name
        return all(name not in topics or len(topics[name].partitions) >= count for name, count in counts)

    return is_shown


def _configs_replaced(request: Any, response: Any) -> Condition:
    wanted = [
        (resource.resource_type, resource.resource_name, {c.name: c.value for c in resource.configs})
        for resource in _altered(request, response)
    ]
    return lambda image: all(dict(image.config(kind, name)) == values for kind, name, values in wanted)


def _configs_changed(request: "IncrementalAlterConfigsRequest", response: Any) -> Condition:
    wanted = [
        (resource.resource_type, resource.resource_name, c.name, None if c.config_operation else c.value)
        for resource in _altered(request, response)
        for c in resource.configs
        if c.config_operation in (_SET, _DELETE)
    ]
    return lambda image: all(image.config(kind, name).get(key) == value for kind, name, key, value in wanted)


def _altered(request: Any, response: Any) -> list[Any]:
    refused = {(r.resource_type, r.resource_name) for r in response.responses if r.error_code}
    return [r for r in request.resources if (r.resource_type, r.resource_name) not in refused]


def _features_updated(
    request: "UpdateFeaturesRequest", response: "UpdateFeaturesResponse"
) -> Condition | None:
    if response.error_code:
        return None
    refused = {result.feature for result in response.results or () if result.error_code}
    levels = [(u.feature, u.max_version_level) for u in request.feature_updates if u.feature not in refused]
    return lambda image: all(image.features.get(name, 0) == level for name, level in levels)


def _broker_registered(
    request: "BrokerRegistrationRequest", response: "BrokerRegistrationResponse"
) -> Condition | None:
    if response.error_code:
        return None

    def is_shown(image: MetadataImage) -> bool:
        broker = image.brokers.get(request.broker_id)
        return broker is not None and broker.epoch >= response.broker_epoch

    return is_shown


def _broker_unregistered(
    request: "UnregisterBrokerRequest", response: "UnregisterBrokerResponse"
) -> Condition | None:
    return None if response.error_code else lambda image: request.broker_id not in image.brokers


_CONDITIONS: dict[ApiKey, Callable[[Any, Any], Condition | None]] = {
    ApiKey.CREATE_TOPICS: _topics_created,
    ApiKey.DELETE_TOPICS: _topics_deleted,
    ApiKey.CREATE_PARTITIONS: _partitions_created,
    ApiKey.ALTER_CONFIGS: _configs_replaced,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs_changed,
    ApiKey.UPDATE_FEATURES: _features_updated,
    ApiKey.BROKER_REGISTRATION: _broker_registered,
    ApiKey.UNREGISTER_BROKER: _broker_unregistered,
}
