"""`odradek cluster`: brokers, features, configuration and log directories. Configuration requests are
config_admin.py's."""

from typing import Annotated, Any

from odradek.cli.declaring import Noun, option
from odradek.cli.errors import kafka_failure, usage
from odradek.cli.options import DryRun, Unset, Watch, Yes, command
from odradek.cli.properties import parse_pairs
from odradek.cli.session import Session
from odradek.cli.terminal.output import Table, columns

app = Noun()

Broker = Annotated[
    int | None,
    option("--broker", metavar="ID", help="Only this broker. [default: all]", show_default=False),
]


@command(app, "info")
def info(
    session: Session,
    unsupported: Annotated[
        bool,
        option("--unsupported", help="List Kafka's configurations that have no effect in Odradek."),
    ] = False,
) -> None:
    """Show the cluster and its brokers.

    Lists the defaults that differ from Apache Kafka's.
    """
    from odradek.cli.requests.cluster_info import describe_cluster, unsupported_table

    if unsupported:
        session.table(unsupported_table(session.cluster))
    else:
        session.sections(describe_cluster(session.cluster))


@command(app, "features")
def features(session: Session) -> None:
    """Show the features of the cluster.

    For each feature: the finalized level, and the levels that brokers support.
    """
    from odradek import __version__
    from odradek.wire.api_keys import ApiKey
    from odradek.wire.messages import request_types

    types = request_types(ApiKey.API_VERSIONS)
    request = types.ApiVersionsRequest(client_software_name="odradek", client_software_version=__version__)
    response = session.cluster.send(ApiKey.API_VERSIONS, request)
    finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
    rows = [
        [feature.name, finalized.get(feature.name), feature.min_version, feature.max_version]
        for feature in sorted(response.supported_features, key=lambda feature: str(feature.name))
    ]
    session.table(Table(columns("FEATURE FINALIZED# MIN-SUPPORTED# MAX-SUPPORTED#"), rows))


@command(app, "config")
def config(
    session: Session,
    broker: Broker = None,
    all_configs: Annotated[bool, option("--all", help="Include configurations at their default.")] = False,
    settings: Annotated[
        list[str] | None,
        option(
            "--set", metavar="KEY=VALUE", help="Set a dynamic configuration; without --broker on all brokers."
        ),
    ] = None,
    unset: Unset = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Show or change the configuration of brokers.

    Asks first if the change can delete records.
    """
    with usage():
        wanted = parse_pairs("--set", settings or ())
    if wanted or unset:
        _change(session, broker, wanted, unset or [], yes=yes, dry_run=dry_run)
        return
    from odradek.cli.requests.config_admin import BROKER, describe_configs, source_name
    from odradek.core.configs import ConfigSource

    rows: list[list[Any]] = []
    for node_id in session.cluster.broker_ids() if broker is None else [broker]:
        for entry in describe_configs(session.cluster, BROKER, str(node_id)):
            if all_configs or entry.config_source != ConfigSource.DEFAULT:
                shown = "(hidden)" if entry.is_sensitive and entry.value is None else entry.value
                rows.append([node_id, entry.name, shown, source_name(entry.config_source), entry.read_only])
    session.table(Table(columns("BROKER# CONFIG VALUE SOURCE READ-ONLY+"), rows))


def _change(
    session: Session,
    broker: int | None,
    wanted: dict[str, str],
    unset: list[str],
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    from odradek.cli.requests.config_admin import (
        BROKER,
        alter_configs,
        config_changes,
        deletes_records,
        shows_changes,
    )

    name = "" if broker is None else str(broker)
    changes = config_changes(session.cluster, BROKER, name, wanted, unset)
    table = Table(columns("CONFIG BEFORE AFTER"), [list(change) for change in changes])
    alter_configs(session.cluster, BROKER, name, wanted, unset, validate_only=True)
    scope = "all brokers" if broker is None else f"broker {broker}"
    question = f"Change {scope}? Records may be deleted."
    harmless = not deletes_records(changes)
    if session.confirm(table, question, yes=yes or harmless, dry_run=dry_run):
        alter_configs(session.cluster, BROKER, name, wanted, unset)
        session.wait_until_shown(lambda: shows_changes(session.cluster, BROKER, name, wanted, unset))
        session.table(table)


@command(app, "logdirs")
def logdirs(
    session: Session,
    broker: Broker = None,
    partitions: Annotated[bool, option("--partitions", help="One row for each partition.")] = False,
    watch: Watch = None,
) -> None:
    """Show the log directories of brokers and what they hold."""
    from odradek.core.errors import ErrorCode, KafkaError
    from odradek.wire.api_keys import ApiKey
    from odradek.wire.messages import request_types

    types = request_types(ApiKey.DESCRIBE_LOG_DIRS)

    def show() -> None:
        directories: list[list[Any]] = []
        contents: list[list[Any]] = []
        for node_id in session.cluster.broker_ids() if broker is None else [broker]:
            request = types.DescribeLogDirsRequest(topics=None)
            response = session.cluster.send(ApiKey.DESCRIBE_LOG_DIRS, request, node_id=node_id)
            if response.error_code:
                error = KafkaError(ErrorCode(response.error_code))
                raise kafka_failure(f"log directories of broker {node_id}", "", error)
            for found in response.results:
                held = [(topic, partition) for topic in found.topics for partition in topic.partitions]
                directories.append(
                    [
                        node_id,
                        found.log_dir,
                        len(held),
                        sum(partition.partition_size for _, partition in held),
                        found.usable_bytes if found.usable_bytes >= 0 else None,
                        found.total_bytes if found.total_bytes >= 0 else None,
                        ErrorCode(found.error_code).name if found.error_code else None,
                    ]
                )
                contents += [
                    [
                        node_id,
                        found.log_dir,
                        topic.name,
                        partition.partition_index,
                        partition.partition_size,
                        partition.offset_lag,
                        partition.is_future_key,
                    ]
                    for topic, partition in held
                ]
        if partitions:
            rows = sorted(contents, key=lambda row: (row[0], row[1], row[2], row[3]))
            session.table(Table(columns("BROKER# LOG-DIR TOPIC PARTITION# SIZE% OFFSET-LAG# FUTURE+"), rows))
        else:
            session.table(
                Table(columns("BROKER# LOG-DIR PARTITIONS# SIZE% USABLE% TOTAL% ERROR"), directories)
            )

    session.watch(watch, show)
