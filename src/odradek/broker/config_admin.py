"""Checks changes of this broker's configs before the controller decides them.

Only the broker knows its static configuration, so requests for a broker's configs must go to that broker. It
changes the levels of its loggers itself. The controller checks everything else.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.loggers import LogLevels
from odradek.controller.configs import changed_configs, replaced_configs
from odradek.controller.result import check_count
from odradek.core.config.keys import LISTENER_PREFIX, broker_key
from odradek.core.configs import ConfigError, NodeConfig, validate_dynamic_broker_configs
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.channel import ControllerChannel
from odradek.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER, RESOURCE_BROKER_LOGGER
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.slices import FEW, STEP, Paced, Slices
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types, response_types

if TYPE_CHECKING:
    from odradek.broker.dispatch import RequestContext

VALIDATED = 1_000
"""The cost of checking a node's whole configuration."""


class Needs(Protocol):
    config: NodeConfig
    controller: ControllerChannel
    log_levels: LogLevels
    metadata: MetadataPublisher
    slices: Slices


async def alter(ctx: "RequestContext[Needs]", api_key: ApiKey, request: Any) -> Any:
    """Refuse what this broker can refuse, and pass the rest to the controller."""
    slices = ctx.services.slices
    decided, asked = await slices.run(_judged(ctx, api_key, request))
    answers = await _ask(ctx, api_key, request, asked) if asked else []
    types = response_types(api_key)
    responses = await slices.run(_merged(types, request.resources, decided, answers))
    if api_key is ApiKey.ALTER_CONFIGS:
        return types.AlterConfigsResponse(responses=responses)
    return types.IncrementalAlterConfigsResponse(responses=responses)


def _judged(
    ctx: "RequestContext[Needs]", api_key: ApiKey, request: Any
) -> Paced[tuple[dict[int, KafkaError | None], list[Any]]]:
    """(answers of this broker by their index in the request, the resources for the controller)."""
    resources = request.resources
    decided: dict[int, KafkaError | None] = {}
    asked = []
    own_loggers = (RESOURCE_BROKER_LOGGER, str(ctx.services.config.node_id))
    times = 0
    for resource in resources:
        times += (resource.resource_type, resource.resource_name) == own_loggers
        yield FEW
    for i, resource in enumerate(resources):
        yield FEW
        try:
            if resource.resource_type == RESOURCE_BROKER:
                yield from _check_broker(ctx, api_key, resource)
            elif resource.resource_type == RESOURCE_BROKER_LOGGER and api_key is not ApiKey.ALTER_CONFIGS:
                yield from _change_levels(ctx, resource, request.validate_only, is_only=times == 1)
                decided[i] = None
                continue
        except KafkaError as e:
            decided[i] = e
        else:
            asked.append(resource)
    return decided, asked


def _change_levels(
    ctx: "RequestContext[Needs]", resource: Any, validate_only: bool, *, is_only: bool
) -> Paced[None]:
    """Change the levels of this node's loggers."""
    node_id, name = ctx.services.config.node_id, resource.resource_name
    _check_number(name)
    if int(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}"
        )
    if not is_only:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    yield from ctx.services.log_levels.change(resource.configs, validate_only=validate_only)


def _merged(
    types: Any, resources: Sequence[Any], decided: dict[int, KafkaError | None], answers: Sequence[Any]
) -> Paced[list[Any]]:
    """Merge all answers in the order of the request."""
    given = iter(answers)
    responses = []
    for i, resource in enumerate(resources):
        yield FEW
        responses.append(_answer(types, resource, decided[i]) if i in decided else next(given))
    return responses


async def _ask(ctx: "RequestContext[Needs]", api_key: ApiKey, request: Any, asked: list[Any]) -> list[Any]:
    types = request_types(api_key)
    fields = {"resources": asked, "validate_only": request.validate_only}
    if api_key is ApiKey.ALTER_CONFIGS:
        rest = types.AlterConfigsRequest(**fields)
    else:
        rest = types.IncrementalAlterConfigsRequest(**fields)
    try:
        response = await ctx.services.controller.call(api_key, rest, ctx.requester)
    except KafkaError as e:
        return await ctx.services.slices.run(_all_refused(response_types(api_key), asked, e))
    answers: list[Any] = response.responses
    return answers


def _all_refused(types: Any, resources: Sequence[Any], error: KafkaError) -> Paced[list[Any]]:
    responses = []
    for resource in resources:
        responses.append(_answer(types, resource, error))
        yield STEP
    return responses


def _answer(types: Any, resource: Any, error: KafkaError | None) -> Any:
    return types.AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _check_number(name: str) -> None:
    if not name.removeprefix("-").isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")


def _check_broker(ctx: "RequestContext[Needs]", api_key: ApiKey, resource: Any) -> Paced[None]:
    node_id, name = ctx.services.config.node_id, resource.resource_name
    if name != CLUSTER_DEFAULT:
        _check_number(name)
        if int(name) != node_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {node_id}, but received {name}",
            )
    current: Mapping[str, str] = ctx.services.metadata.image.config(RESOURCE_BROKER, name)
    change = replaced_configs if api_key is ApiKey.ALTER_CONFIGS else changed_configs
    wanted = yield from change(resource, current)
    check_count(len(wanted))
    judged = {}
    for key, value in wanted.items():
        yield STEP
        if broker_key(key) is not None or key.startswith(LISTENER_PREFIX):
            judged[key] = value
    yield VALIDATED
    try:
        validate_dynamic_broker_configs(ctx.services.config, judged, cluster_default=name == CLUSTER_DEFAULT)
    except ConfigError as e:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(e)) from e
