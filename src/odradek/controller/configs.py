"""AlterConfigs and IncrementalAlterConfigs: the controller's side. Pure.

Before a request reaches the controller, the broker checks its own settings (broker/config_admin.py). Topics,
brokers and groups have configs here. Log levels are set on each broker (broker/loggers.py).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from odradek.controller.result import MAX_RECORDS_PER_BATCH, TOO_MANY_RECORDS, ControllerResult
from odradek.core.configs import (
    BROKER_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    ConfigError,
    validate_group_configs,
    validate_topic_configs,
)
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC
from odradek.metadata.records import ClearElrRecord, ConfigRecord, MetadataRecord
from odradek.metadata.topic_names import check_topic_name
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.alter_configs import AlterConfigsRequest
    from odradek.wire.requests.incremental_alter_configs import IncrementalAlterConfigsRequest

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
_MIN_ISR = "min.insync.replicas"
_MAX_VALUE_BYTES = 32767
_KEYS = {RESOURCE_TOPIC: TOPIC_KEYS, RESOURCE_GROUP: GROUP_KEYS}

Configs = Mapping[str, str]


def alter_configs(
    c: "Controller", request: "AlterConfigsRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    """Replace all configs of each resource with the given ones."""
    types = responses.alter_configs
    records, answers = yield from _alter_resources(c, request.resources, replaced_configs, types)
    response = types.AlterConfigsResponse(responses=answers)
    return ControllerResult([] if request.validate_only else records, response, is_atomic=True)


def incremental_alter_configs(
    c: "Controller", request: "IncrementalAlterConfigsRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    """Set, delete, append to or subtract from single configs of each resource."""
    types = responses.incremental_alter_configs
    records, answers = yield from _alter_resources(c, request.resources, changed_configs, types)
    response = types.IncrementalAlterConfigsResponse(responses=answers)
    return ControllerResult([] if request.validate_only else records, response, is_atomic=True)


def replaced_configs(resource: Any, current: Configs) -> Paced[dict[str, str]]:
    """The configs of a resource after AlterConfigs."""
    nulls = []
    configs = {}
    for config in resource.configs:
        yield FEW
        configs[config.name] = config.value
        if config.value is None:
            nulls.append(config.name)
    _refuse_nulls(nulls)
    return configs


def _refuse_nulls(names: list[str]) -> None:
    if names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(names)}")


def check_values_given(changes: Any) -> Paced[None]:
    """Raise INVALID_REQUEST if IncrementalAlterConfigs has an operation other than DELETE without a value."""
    nulls = []
    for change in changes:
        yield FEW
        if change.config_operation != DELETE and change.value is None:
            nulls.append(change.name)
    _refuse_nulls(nulls)


def changed_configs(resource: Any, current: Configs) -> Paced[dict[str, str]]:
    """The configs of a resource after IncrementalAlterConfigs."""
    keys: Mapping[str, Any] = _KEYS.get(resource.resource_type, BROKER_KEYS)
    yield from check_values_given(resource.configs)
    configs = dict(current)
    for op in resource.configs:
        yield STEP
        if op.config_operation == DELETE:
            configs.pop(op.name, None)
        elif op.config_operation == SET:
            configs[op.name] = op.value
        elif op.config_operation in (APPEND, SUBTRACT):
            configs[op.name] = _list_operation(op, keys.get(op.name), configs.get(op.name))
        else:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Apache's answer to an unknown operation
    return configs


def _list_operation(op: Any, key: Any, current: str | None) -> str:
    if key is None or key.type != "list":
        verb = "APPEND" if op.config_operation == APPEND else "SUBTRACT"
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Can't {verb} to key {op.name} because its type is not LIST."
        )
    items = _items(current if current is not None else key.default)
    given = _items(op.value)
    if op.config_operation == APPEND:
        return ",".join(dict.fromkeys((*items, *given)))
    return ",".join(item for item in items if item not in given)


def _items(text: str | None) -> list[str]:
    return [item for part in (text or "").split(",") if (item := part.strip())]


def _alter_resources(
    c: "Controller", resources: Any, change: Callable[[Any, Configs], Paced[dict[str, str]]], types: Any
) -> Paced[tuple[list[MetadataRecord], list[Any]]]:
    times: Counter[tuple[int, str]] = Counter()
    for resource in resources:
        times[resource.resource_type, resource.resource_name] += 1
        yield FEW
    records: list[MetadataRecord] = []
    responses = []
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        code, message = ErrorCode.NONE, None
        yield 2 * STEP
        try:
            if times[key] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            yield from check_config_names(resource.configs)
            _check_resource(c, *key)
            current = c.image.config(*key)
            wanted = yield from change(resource, current)
            records += yield from _records(c, key, current, wanted)
            if len(records) > MAX_RECORDS_PER_BATCH:
                return [], (yield from _refused(resources, types))
        except KafkaError as e:
            code, message = e.code, e.message
        responses.append(_response(types, resource, code, message))
    return records, responses


def _response(types: Any, resource: Any, code: ErrorCode, message: str | None) -> Any:
    return types.AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _refused(resources: Any, types: Any) -> Paced[list[Any]]:
    """A request becomes one atomic batch, so its size is limited."""
    responses = []
    for resource in resources:
        responses.append(_response(types, resource, ErrorCode.POLICY_VIOLATION, TOO_MANY_RECORDS))
        yield STEP
    return responses


def check_config_names(configs: Any) -> Paced[None]:
    """Raise INVALID_REQUEST for a duplicate key."""
    names = set()
    for config in configs:
        names.add(config.name)
        yield FEW
    if len(names) < len(configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _check_resource(c: "Controller", resource_type: int, name: str) -> None:
    if resource_type == RESOURCE_TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_topic_name(name)
        if name not in c.image.topics_by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif resource_type == RESOURCE_BROKER:
        if name == CLUSTER_DEFAULT:
            return
        if not name.removeprefix("-").isdecimal():
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
        if int(name) < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
        if int(name) not in c.image.brokers:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} found.")
    elif resource_type == RESOURCE_GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def topic_config_records(
    c: "Controller", topic: str, current: Configs, wanted: Configs
) -> Paced[list[MetadataRecord]]:
    """The records that change a topic's configs to the wanted ones. Raises INVALID_CONFIG."""
    return (yield from _records(c, (RESOURCE_TOPIC, topic), current, wanted))


def _records(
    c: "Controller", key: tuple[int, str], current: Configs, wanted: Configs
) -> Paced[list[MetadataRecord]]:
    resource_type, name = key
    values: dict[str, str | None] = {}
    for k, new in wanted.items():
        yield FEW
        if current.get(k) != new:
            values[k] = new
    for k in current:
        yield FEW
        if k not in wanted:
            values[k] = None
    for value in values.values():
        yield FEW
        if value is not None and len(value.encode()) > _MAX_VALUE_BYTES:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{_MAX_VALUE_BYTES} bytes.",
            )
    if resource_type == RESOURCE_TOPIC:
        try:
            validate_topic_configs((yield from _first_unknown(wanted)), c.config)
        except ConfigError as e:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(e)) from e
    elif resource_type == RESOURCE_GROUP:
        try:
            validate_group_configs(wanted, c.config)
        except ConfigError as e:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(e)) from e
    elif _MIN_ISR in values and c.image.elr_enabled:
        _check_broker_min_isr(name, values[_MIN_ISR])
    records: list[MetadataRecord] = []
    for k, v in values.items():
        records.append(ConfigRecord(resource_type=resource_type, resource_name=name, name=k, value=v))
        yield FEW
    if _MIN_ISR in values and c.image.elr_enabled:
        records.append(ClearElrRecord(topic_name=name if resource_type == RESOURCE_TOPIC else ""))
    return records


def _first_unknown(wanted: Configs) -> Paced[Configs]:
    """The known settings of a topic and the first unknown one, which is enough to refuse the request."""
    unknown: str | None = None
    for name in wanted:
        yield FEW
        if name not in TOPIC_KEYS and (unknown is None or name < unknown):
            unknown = name
    if unknown is None:
        return wanted
    known = {name: wanted[name] for name in TOPIC_KEYS if name in wanted}
    return {unknown: wanted[unknown], **known}


def _check_broker_min_isr(broker: str, value: str | None) -> None:
    """Eligible leader replicas need the same min ISR on all brokers, so a single broker cannot change it."""
    if broker != CLUSTER_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled.",
        )
    if value is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled.",
        )
