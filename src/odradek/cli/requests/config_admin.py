"""Configurations of topics and brokers over the wire: reading, changing, and what a change may delete."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from odradek.cli.errors import Failure, Usage, kafka_failure
from odradek.cli.requests.cluster_access import ClusterAccess
from odradek.core.configs import BROKER_KEYS, TIME_FAMILIES, TOPIC_KEYS, ConfigSource, is_known, nearest
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

# Resource types of DescribeConfigs.
TOPIC, BROKER = 2, 4
_NAMES = {TOPIC: "topic", BROKER: "broker"}
_SET, _DELETE = 0, 1
_UNITS_MS = {name: unit_ms for family in TIME_FAMILIES.values() for name, unit_ms in family}


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
    """What setting and unsetting would change; for one that is unset, what it falls back on."""
    described = name
    if resource_type == BROKER and not name:
        described = str(cluster.broker_ids()[0])  # what is set for all brokers, as one of them sees it
    entries = {e.name: e for e in describe_configs(cluster, resource_type, described, synonyms=True)}
    # Which of a topic's configurations can be set the cluster says itself; a broker's it takes as they come.
    given = unset if resource_type == TOPIC else [*wanted, *unset]
    unknown = [key for key in given if key not in entries and (resource_type == TOPIC or not is_known(key))]
    if unknown:
        raise Usage(
            f"unknown configuration of a {_NAMES[resource_type]}: {unknown[0]}",
            did_you_mean(unknown[:1], entries),
        )
    changes = [
        ConfigChange(key, entries[key].value if key in entries else None, value)
        for key, value in wanted.items()
    ]
    own = _own_source(resource_type, name)
    for key in unset:
        entry = entries.get(key)
        before = after = None if entry is None else entry.value
        if entry is not None and entry.config_source == own:
            after = _told_by_synonyms(entry, own) or _told_by_broker(cluster, resource_type, key)
        changes.append(ConfigChange(key, before, after))
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


def _told_by_synonyms(entry: Any, own: ConfigSource) -> str | None:
    """What stands behind a configuration's own value, as far as its description says."""
    behind = (s for s in entry.synonyms if s.source != own and s.value is not None)
    return next((_in_unit_of(entry.name, s.name, s.value) for s in behind), None)


def _told_by_broker(cluster: ClusterAccess, resource_type: int, key: str) -> str | None:
    """What a broker has under the names a configuration falls back on: of those in coarser units of time no
    description of a topic speaks."""
    known = (TOPIC_KEYS if resource_type == TOPIC else BROKER_KEYS).get(key)
    if known is None:
        return None
    entries = {e.name: e for e in describe_configs(cluster, BROKER, str(cluster.broker_ids()[0]))}
    behind = (entries[name] for name in known.synonyms if name != key and name in entries)
    return next((_in_unit_of(key, e.name, e.value) for e in behind if e.value is not None), known.default)


def _in_unit_of(key: str, name: str, value: str) -> str:
    """The value of a synonym (log.retention.hours) in the unit of the key (retention.ms)."""
    factor = _UNITS_MS.get(name, 1) // _UNITS_MS.get(key, 1)
    return value if factor <= 1 or int(value) < 0 else str(int(value) * factor)


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
    if result.error_code == ErrorCode.INVALID_CONFIG:
        failure.hint = did_you_mean(keys, TOPIC_KEYS if resource_type == TOPIC else BROKER_KEYS)
    return failure


def did_you_mean(keys: Iterable[str], known: Collection[str]) -> str | None:
    """The hint for the first key that is misspelt, if one is."""
    closest = (nearest(key, known) for key in keys if key not in known)
    return next((f"did you mean {close}?" for close in closest if close), None)
