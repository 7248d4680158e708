"""DescribeConfigs v1-v4: what is in force for topics and for this broker, and where it comes from.

Deviations: documentation is not carried, so `include_documentation` gives none; broker loggers, client
metrics and groups have no configs here.
"""

from collections.abc import Sequence
from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.configs import ConfigEntry, describe_broker, describe_broker_default, describe_topic
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import (
    CLUSTER_DEFAULT,
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from odradek.metadata.topic_names import check_topic_name
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types

_NOT_DESCRIBED = {
    RESOURCE_BROKER_LOGGER: "BROKER_LOGGER",
    RESOURCE_CLIENT_METRICS: "CLIENT_METRICS",
    RESOURCE_GROUP: "GROUP",
}
_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)


@serves(ApiKey.DESCRIBE_CONFIGS, min_version=1, max_version=4)
def describe_configs(ctx: RequestContext, request: Any) -> Any:
    types = response_types(ApiKey.DESCRIBE_CONFIGS)
    results = []
    for resource in request.resources:
        code, message, entries = ErrorCode.NONE, "", list[Any]()
        try:
            found = _entries(ctx, resource)
            entries = [_result(types, entry, request.include_synonyms) for entry in found]
        except KafkaError as e:
            code, message = e.code, e.message or ""
        results.append(
            types.DescribeConfigsResult(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=entries,
            )
        )
    return types.DescribeConfigsResponse(results=results)


def _entries(ctx: RequestContext, resource: Any) -> Sequence[ConfigEntry]:
    kind, name, keys = resource.resource_type, resource.resource_name, resource.configuration_keys
    node = ctx.node
    if kind == RESOURCE_TOPIC:
        check_topic_name(name)
        if name not in node.metadata.image.topics_by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return describe_topic(node.config, node.metadata.image.topic_config(name), keys)
    if kind == RESOURCE_BROKER:
        if name == CLUSTER_DEFAULT:
            return describe_broker_default(node.config, keys)
        _check_own_id(node.config.node_id, name)
        return describe_broker(node.config, keys)
    if kind in _NOT_DESCRIBED:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {_NOT_DESCRIBED[kind]}")
    raise KafkaError(ErrorCode.INVALID_REQUEST, _MALFORMED)


def _check_own_id(node_id: int, name: str) -> None:
    if not name.removeprefix("-").isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id} or empty string, but received {name}",
        )


def _result(types: Any, entry: ConfigEntry, with_synonyms: bool) -> Any:
    synonyms = entry.synonyms if with_synonyms else ()
    return types.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            types.DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms
        ],
        config_type=entry.type,
        documentation=None,
    )
