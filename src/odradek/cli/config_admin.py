"""Configurations of topics and brokers over the wire: reading, changing, and what a change may delete."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from odradek.cli.cluster_access import ClusterAccess
from odradek.cli.errors import Failure, kafka_failure
from odradek.core.configs import BROKER_KEYS, TOPIC_KEYS, ConfigSource, nearest
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

# Resource types of DescribeConfigs.
TOPIC, BROKER = 2, 4
_NAMES = {TOPIC: "topic", BROKER: "broker"}
_SET, _DELETE = 0, 1


class ConfigChange(NamedTuple):
    """A configuration before and after; None where nothing is known."""

    name: str
    before: str | None
    after: str | None


def describe_configs(
    cluster: ClusterAccess, resource_type: int, name: str, *, synonyms: bool = False
) -> list[Any]:
    """The configuration entries of a topic or a broker, sorted by name."""
    types = request_types(ApiKey.DESCRIBE_CONFIGS)
    request = types.DescribeConfigsRequest(
        resources=[
            types.DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=None
            )
        ],
        include_synonyms=synonyms,
    )
    node_id = int(name) if resource_type == BROKER and name else None
    (result,) = cluster.send(ApiKey.DESCRIBE_CONFIGS, request, node_id=node_id).results
    if result.error_code:
        raise _failure(resource_type, name, result)
    return sorted(result.configs, key=lambda entry: str(entry.name))


def source_name(source: int) -> str:
    return ConfigSource(source).name if source in ConfigSource._value2member_map_ else str(source)


def alter_configs(
    cluster: ClusterAccess,
    resource_type: int,
    name: str,
    wanted: Mapping[str, str],
    unset: Sequence[str],
    *,
    validate_only: bool = False,
) -> None:
    """Set and unset configurations; the cluster is asked to check them first where `validate_only`."""
    types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    configs = [
        types.AlterableConfig(name=key, config_operation=_SET, value=value) for key, value in wanted.items()
    ]
    configs += [types.AlterableConfig(name=key, config_operation=_DELETE, value=None) for key in unset]
    request = types.IncrementalAlterConfigsRequest(
        resources=[
            types.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)
        ],
        validate_only=validate_only,
    )
    node_id = int(name) if resource_type == BROKER and name else None
    (result,) = cluster.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, node_id=node_id).responses
    if result.error_code:
        raise _failure(resource_type, name, result, [*wanted, *unset])


def config_changes(
    cluster: ClusterAccess, resource_type: int, name: str, wanted: Mapping[str, str], unset: Sequence[str]
) -> list[ConfigChange]:
    """What setting and unsetting would change; what an unset one returns to is told by its synonyms."""
    described = name
    if resource_type == BROKER and not name:
        described = str(cluster.broker_ids()[0])  # what is set for all brokers, as one of them sees it
    entries = {e.name: e for e in describe_configs(cluster, resource_type, described, synonyms=True)}
    changes = [
        ConfigChange(key, entries[key].value if key in entries else None, value)
        for key, value in wanted.items()
    ]
    changes += [ConfigChange(key, *_unset(entries.get(key), resource_type, name)) for key in unset]
    return changes


def shows_changes(
    cluster: ClusterAccess, resource_type: int, name: str, wanted: Mapping[str, str], unset: Sequence[str]
) -> bool:
    """Do the brokers tell what was set, and no more what was unset?"""
    own = _own_source(resource_type, name)
    entries = {e.name: e for e in describe_configs(cluster, resource_type, name, synonyms=True)}
    owned = {key for key, e in entries.items() if any(s.source == own for s in e.synonyms)}
    return all(key in owned for key in wanted) and not any(key in owned for key in unset)


def _own_source(resource_type: int, name: str) -> ConfigSource:
    """The source of what is set for this very topic or broker, or for all brokers."""
    if resource_type == TOPIC:
        return ConfigSource.DYNAMIC_TOPIC
    return ConfigSource.DYNAMIC_BROKER if name else ConfigSource.DYNAMIC_DEFAULT_BROKER


def _unset(entry: Any, resource_type: int, name: str) -> tuple[str | None, str | None]:
    """Before and after for a configuration that loses its own value; None where the cluster does not tell."""
    if entry is None:
        return None, None
    own = _own_source(resource_type, name)
    if entry.config_source != own:
        return entry.value, entry.value
    return entry.value, next((s.value for s in entry.synonyms if s.source != own), None)


def deletes_records(changes: Sequence[ConfigChange]) -> bool:
    """May the change make the cluster delete records that it keeps now?"""
    for name, before, after in changes:
        topic_name = name.removeprefix("log.")
        if before == after:
            continue
        if topic_name == "cleanup.policy" or (
            topic_name.startswith("retention.") and _is_less(after, before)
        ):
            return True
    return False


def _is_less(after: str | None, before: str | None) -> bool:
    """-1 keeps everything; what is unknown is taken for less."""
    try:
        new, old = int(after or ""), int(before or "")
    except ValueError:
        return True
    return new != -1 and (old == -1 or new < old)


def _failure(resource_type: int, name: str, result: Any, keys: Sequence[str] = ()) -> Failure:
    failure = kafka_failure(
        f"{_NAMES[resource_type]} {name}".rstrip(),
        name,
        KafkaError(ErrorCode(result.error_code), result.error_message),
    )
    known = TOPIC_KEYS if resource_type == TOPIC else BROKER_KEYS
    unknown = [key for key in keys if key not in known]
    close = nearest(unknown[0]) if unknown else None
    if result.error_code == ErrorCode.INVALID_CONFIG and close in known:
        failure.hint = f"did you mean {close}?"
    return failure
