"""`odradek cluster`: brokers, quorum, features, configuration, log directories and their formatting. What is
asked of the cluster is in cli/requests."""

from typing import TYPE_CHECKING, Annotated, Any

from odradek.cli.declaring import Argument, Noun, option
from odradek.cli.errors import FoundProblem, kafka_failure, usage
from odradek.cli.options import DryRun, Unset, Watch, Yes, command
from odradek.cli.properties import parse_pairs
from odradek.cli.session import Session
from odradek.cli.terminal.output import Table, columns

if TYPE_CHECKING:
    from odradek.cli.requests.voters import VoterChange

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


@command(app, "quorum")
def quorum(
    session: Session,
    change: Annotated[
        list[str] | None,
        Argument(metavar="CHANGE", help="add ID@HOST:PORT[:DIRECTORY-ID], or remove ID."),
    ] = None,
    watch: Watch = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Show the quorum of the metadata log, or change its voters.

    Shows its leader, epoch and high watermark, and how far each voter and observer is behind the leader.

    A controller that is added must run and follow the quorum: format it with --no-initial-controllers. Its
    directory id is looked up if it is left out. A removal asks first.
    """
    from odradek.cli.requests.quorum import current_quorum, quorum_sections
    from odradek.cli.requests.voters import VoterChange

    if change:
        with usage():
            wanted = VoterChange.parse(change)
        _change_voters(session, wanted, yes=yes, dry_run=dry_run)
    else:
        session.watch(watch, lambda: session.sections(quorum_sections(current_quorum(session.properties))))


def _change_voters(session: Session, wanted: "VoterChange", *, yes: bool, dry_run: bool) -> None:
    from odradek.cli.requests.quorum import current_quorum
    from odradek.cli.requests.voters import change_voters, directory_of, role_of

    found = current_quorum(session.properties)
    voter = directory_of(wanted, found)
    row = [voter.id, role_of(voter.id, found), "observer" if wanted.is_removal else "voter"]
    table = Table(columns("NODE# BEFORE AFTER"), [row])
    question = f"Remove voter {voter.id}?"
    if session.confirm(table, question, yes=yes or not wanted.is_removal, dry_run=dry_run):
        change_voters(session.cluster, wanted._replace(voter=voter), found.listener_name)
        session.table(table)


@command(app, "health")
def health(session: Session) -> None:
    """Say whether the cluster is healthy.

    Exits with 3 if there is no active controller, if a voter lags or does not fetch, if a broker is down, or
    if a partition has no leader, is under min ISR or under-replicated; says why, and what to do next.
    """
    from odradek.cli.requests.health import examine, findings, verdict

    examined = examine(session.properties, session.cluster)
    found = findings(examined)
    if session.format not in ("text", "wide"):
        session.table(Table(columns("PROBLEM CAUSE NEXT"), [list(finding) for finding in found]))
    elif not found:
        session.terminal.data(f"{verdict(examined)}\n")
    if found:
        lines = [f"{finding.problem} ({finding.cause})" for finding in found]
        raise FoundProblem(lines, f"next: {found[0].next}")


@command(app, "features")
def features(
    session: Session,
    change: Annotated[
        list[str] | None,
        Argument(metavar="CHANGE", help="upgrade FEATURE LEVEL, or downgrade FEATURE LEVEL."),
    ] = None,
    unsafe: Annotated[
        bool, option("--unsafe", help="Downgrade even if metadata is lost; not every cluster can.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Show or change the features of the cluster.

    For each feature: the finalized level, and the levels that brokers support. A downgrade asks first. The
    controller checks a dry run, too.
    """
    from odradek.cli.requests.features import (
        FeatureChange,
        feature_rows,
        finalized_level,
        update_feature,
    )

    cluster = session.cluster
    if not change:
        table = Table(columns("FEATURE FINALIZED# MIN-SUPPORTED# MAX-SUPPORTED#"), feature_rows(cluster))
        session.table(table)
        return
    with usage():
        wanted = FeatureChange.parse(change)
    row = [wanted.feature, finalized_level(cluster, wanted.feature), wanted.level]
    table = Table(columns("FEATURE BEFORE# AFTER#"), [row])
    update_feature(cluster, wanted, is_unsafe=unsafe, validate_only=True)
    question = f"Downgrade {wanted.feature} to {wanted.level}?"
    if session.confirm(table, question, yes=yes or not wanted.is_downgrade, dry_run=dry_run):
        update_feature(cluster, wanted, is_unsafe=unsafe, validate_only=False)
        session.wait_until_shown(lambda: finalized_level(cluster, wanted.feature) == wanted.level)
        session.table(table)


@command(app, "format", connects=False)
def format_storage(
    session: Session,
    config: Annotated[str, option("-c", "--config", metavar="FILE", help="A server.properties file.")],
    cluster_id: Annotated[str, option("-t", "--cluster-id", metavar="ID", help="The id of the cluster.")],
    standalone: Annotated[
        bool, option("-s", "--standalone", help="The node is the only voter, until others are added.")
    ] = False,
    initial_controllers: Annotated[
        str | None,
        option(
            "-I",
            "--initial-controllers",
            metavar="VOTERS",
            help="The first voters, as ID@HOST:PORT:DIRECTORY-ID,...; the same on all nodes.",
            show_default=False,
        ),
    ] = None,
    no_initial_controllers: Annotated[
        bool, option("-N", "--no-initial-controllers", help="The node joins voters that exist.")
    ] = False,
    ignore_formatted: Annotated[
        bool, option("-g", "--ignore-formatted", help="Leave formatted directories as they are.")
    ] = False,
) -> None:
    """Format the directories of a node that does not run.

    Voters that controller.quorum.voters names, and brokers, format themselves at their first start. Takes the
    options of Apache Kafka's storage tool. Without controller.quorum.voters, a controller needs one of
    --standalone, --initial-controllers and --no-initial-controllers.
    """
    from odradek.cli.commands.start import config_of_file
    from odradek.cli.node.formatting import choose_first_voters, directory_kind, format_node
    from odradek.cli.node.voter_list import parse_voters
    from odradek.metadata.versions import NEWEST_RELEASE

    node = config_of_file(config)
    with usage():
        initial = None
        if initial_controllers is not None:
            initial = parse_voters(initial_controllers, node.controller_listener_names[0])
        voters = choose_first_voters(
            node, standalone=standalone, initial=initial, nobody=no_initial_controllers
        )
    formatted = format_node(node, cluster_id, voters, ignores_formatted=ignore_formatted)
    for path in formatted:
        kind = directory_kind(node, path, voters)
        session.terminal.data(f"Formatting {kind} {path} with metadata.version {NEWEST_RELEASE}.\n")
    if not formatted:
        session.terminal.data("All of the log directories are already formatted.\n")


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
