"""What a broker checks of config changes before it hands them to the controller: its own settings.

Only the broker itself knows its static configuration, so changes of a broker's configs must come to that
broker. What remains is the controller's to judge.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odradek.core.configs import ConfigError, validate_dynamic_broker_configs
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.configs import changed_configs, replaced_configs
from odradek.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types, response_types

if TYPE_CHECKING:
    from odradek.broker.dispatch import RequestContext


async def alter(ctx: "RequestContext", api_key: ApiKey, request: Any) -> Any:
    """Answer what this broker refuses itself, and ask the controller about the rest."""
    refused: dict[int, KafkaError] = {}
    for i, resource in enumerate(request.resources):
        try:
            if resource.resource_type == RESOURCE_BROKER:
                _check_broker(ctx, api_key, resource)
        except KafkaError as e:
            refused[i] = e
    asked = [resource for i, resource in enumerate(request.resources) if i not in refused]
    answers = iter(await _ask(ctx, api_key, request, asked) if asked else [])
    types = response_types(api_key)
    responses = []
    for i, resource in enumerate(request.resources):
        if i in refused:
            responses.append(_refusal(types, resource, refused[i]))
        else:
            responses.append(next(answers))
    if api_key is ApiKey.ALTER_CONFIGS:
        return types.AlterConfigsResponse(responses=responses)
    return types.IncrementalAlterConfigsResponse(responses=responses)


async def _ask(ctx: "RequestContext", api_key: ApiKey, request: Any, asked: list[Any]) -> list[Any]:
    types = request_types(api_key)
    fields = {"resources": asked, "validate_only": request.validate_only}
    if api_key is ApiKey.ALTER_CONFIGS:
        rest = types.AlterConfigsRequest(**fields)
    else:
        rest = types.IncrementalAlterConfigsRequest(**fields)
    try:
        response = await ctx.node.controller.call(api_key, rest)
    except KafkaError as e:
        return [_refusal(response_types(api_key), resource, e) for resource in asked]
    return list(response.responses)


def _refusal(types: Any, resource: Any, error: KafkaError) -> Any:
    return types.AlterConfigsResourceResponse(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _check_broker(ctx: "RequestContext", api_key: ApiKey, resource: Any) -> None:
    node_id, name = ctx.node.config.node_id, resource.resource_name
    if name != CLUSTER_DEFAULT:
        if not name.removeprefix("-").isdecimal():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        if int(name) != node_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {node_id}, but received {name}",
            )
    current: Mapping[str, str] = ctx.node.metadata.image.config(RESOURCE_BROKER, name)
    change = replaced_configs if api_key is ApiKey.ALTER_CONFIGS else changed_configs
    try:
        validate_dynamic_broker_configs(
            ctx.node.config, change(resource, current), cluster_default=name == CLUSTER_DEFAULT
        )
    except ConfigError as e:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(e)) from e
