"""DescribeConfigs v1-v4: the current configs of topics, groups, this broker and its loggers, with their
sources.

Deviations: the documentation is Odradek's own and says which keys have no effect. Loggers have Odradek's
names. Client metrics have no configs. A resource that occurs twice with the same keys is answered once,
because a small request could ask for the same entries many times.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.loggers import describe_loggers
from odradek.core.config.documentation import broker_documentation, group_documentation, topic_documentation
from odradek.core.configs import (
    ConfigEntry,
    NodeConfig,
    describe_broker,
    describe_broker_default,
    describe_group,
    describe_topic,
)
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import (
    CLUSTER_DEFAULT,
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.topic_names import check_topic_name
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_configs import DescribeConfigsRequest

ENTRY_STEP = 40
_DOCUMENTATION: Mapping[int, Callable[[str], str | None]] = {
    RESOURCE_TOPIC: topic_documentation,
    RESOURCE_BROKER: broker_documentation,
    RESOURCE_GROUP: group_documentation,
}
_MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)


class Needs(Protocol):
    config: NodeConfig
    metadata: MetadataPublisher


@serves(ApiKey.DESCRIBE_CONFIGS, min_version=1, max_version=4)
def describe_configs(ctx: RequestContext[Needs], request: "DescribeConfigsRequest") -> Paced[Any]:
    asked: dict[tuple[int, str, frozenset[str]], None] = {}
    for resource in request.resources:
        keys = frozenset(resource.configuration_keys or ())
        asked[resource.resource_type, resource.resource_name, keys] = None
        yield STEP
    results = []
    for kind, name, keys in asked:
        results.append((yield from _describe(ctx, request, kind, name, keys)))
    return responses.describe_configs.DescribeConfigsResponse(results=results)


def _describe(
    ctx: RequestContext[Needs], request: "DescribeConfigsRequest", kind: int, name: str, keys: frozenset[str]
) -> Paced[Any]:
    types = responses.describe_configs
    code, message, entries = ErrorCode.NONE, "", list[Any]()
    try:
        for entry in _entries(ctx, kind, name, keys):
            entries.append(
                _result(types, entry, request.include_synonyms, _documentation(request, kind, entry))
            )
            yield ENTRY_STEP
    except KafkaError as e:
        code, message = e.code, e.message or ""
    yield STEP
    return types.DescribeConfigsResult(
        error_code=code, error_message=message, resource_type=kind, resource_name=name, configs=entries
    )


def _entries(ctx: RequestContext[Needs], kind: int, name: str, keys: frozenset[str]) -> Iterator[ConfigEntry]:
    services = ctx.services
    if kind == RESOURCE_TOPIC:
        check_topic_name(name)
        if name not in services.metadata.image.topics_by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return describe_topic(services.config, services.metadata.image.topic_config(name), keys)
    if kind == RESOURCE_BROKER:
        if name == CLUSTER_DEFAULT:
            return describe_broker_default(services.config, keys)
        _check_own_id(services.config.node_id, name, " or empty string,")
        return describe_broker(services.config, keys)
    if kind == RESOURCE_GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return describe_group(services.config, services.metadata.image.config(RESOURCE_GROUP, name), keys)
    if kind == RESOURCE_BROKER_LOGGER:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_own_id(services.config.node_id, name, "")
        return describe_loggers(keys)
    if kind == RESOURCE_CLIENT_METRICS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unsupported resource type: CLIENT_METRICS")
    raise KafkaError(ErrorCode.INVALID_REQUEST, _MALFORMED)


def _documentation(request: "DescribeConfigsRequest", kind: int, entry: ConfigEntry) -> str | None:
    """The documentation of an entry. For a logger it is always empty, as in Apache."""
    if kind == RESOURCE_BROKER_LOGGER:
        return ""
    return _DOCUMENTATION[kind](entry.name) if request.include_documentation else None


def _check_own_id(node_id: int, name: str, or_else: str) -> None:
    if not name.removeprefix("-").isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id}{or_else} but received {name}",
        )


def _result(types: Any, entry: ConfigEntry, with_synonyms: bool, documentation: str | None) -> Any:
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
        documentation=documentation,
    )
