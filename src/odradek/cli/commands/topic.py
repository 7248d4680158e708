"""`odradek topic`: showing and changing topics. topic_admin.py has the requests."""

from typing import Annotated, Any

from odradek.cli.declaring import Argument, Noun, option
from odradek.cli.errors import Usage, raise_all, usage
from odradek.cli.options import DryRun, Partitions, Topic, Topics, Unset, Watch, Yes, command
from odradek.cli.properties import parse_pairs
from odradek.cli.session import Session
from odradek.cli.terminal.output import Table, columns

app = Noun()

ConfigPairs = Annotated[
    list[str] | None,
    option("-c", "--config", metavar="KEY=VALUE", help="A configuration of the topic."),
]


@command(app, "list", "ls")
def list_topics(
    session: Session,
    internal: Annotated[bool, option("--internal", help="Include internal topics.")] = False,
    under_replicated: Annotated[
        bool, option("--under-replicated", help="List partitions of which a replica is not in sync.")
    ] = False,
    under_min_isr: Annotated[
        bool,
        option(
            "--under-min-isr",
            help="List partitions with fewer replicas in sync than min.insync.replicas, or without a leader.",
        ),
    ] = False,
    at_min_isr: Annotated[
        bool,
        option("--at-min-isr", help="List partitions with as many replicas in sync as min.insync.replicas."),
    ] = False,
    offline: Annotated[
        bool, option("--offline", help="List partitions without a leader that is alive.")
    ] = False,
    watch: Watch = None,
) -> None:
    """List the topics of the cluster, or the partitions that have a problem.

    With --under-replicated, --under-min-isr, --at-min-isr or --offline: the partitions, also of internal
    topics, to which one of them applies. They mean the same as in kafka-topics.
    """
    wanted = [
        name
        for name, is_asked in (
            ("is_under_replicated", under_replicated),
            ("is_under_min_isr", under_min_isr),
            ("is_at_min_isr", at_min_isr),
            ("is_offline", offline),
        )
        if is_asked
    ]

    def show() -> None:
        if wanted:
            _list_partitions(session, wanted)
            return
        rows = [
            [topic.name, len(topic.partitions), topic.replication_factor, topic.id, topic.is_internal]
            for topic in session.cluster.topics()
            if internal or not topic.is_internal
        ]
        session.table(Table(columns("TOPIC PARTITIONS# REPLICAS# ID+ INTERNAL+"), rows))

    session.watch(watch, show)


def _list_partitions(session: Session, wanted: list[str]) -> None:
    from odradek.cli.requests.replication import judged_partitions, with_eligible_leaders

    topics = with_eligible_leaders(session.cluster, session.cluster.topics())
    rows = [
        [
            found.tp.topic,
            found.tp.partition,
            found.info.leader,
            found.info.replicas,
            found.info.isr,
            found.info.elr,
            found.info.offline,
            found.min_isr,
        ]
        for found in judged_partitions(session.cluster, topics)
        if any(getattr(found, name) for name in wanted)
    ]
    session.table(Table(columns("TOPIC PARTITION# LEADER# REPLICAS ISR ELR OFFLINE MIN-ISR#"), rows))


@command(app, "create")
def create(
    session: Session,
    names: Annotated[list[str], Argument(metavar="TOPIC", help="Names of the new topics.")],
    partitions: Annotated[
        int,
        option(
            "-p",
            "--partitions",
            metavar="COUNT",
            help="Number of partitions. [default: the cluster's num.partitions]",
            show_default=False,
        ),
    ] = -1,
    replicas: Annotated[
        int,
        option(
            "-r",
            "--replicas",
            metavar="COUNT",
            help="Replicas of each partition. [default: the cluster's default.replication.factor]",
            show_default=False,
        ),
    ] = -1,
    configs: ConfigPairs = None,
    if_not_exists: Annotated[
        bool, option("--if-not-exists", help="Succeed if the topic already exists.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Create topics."""
    from odradek.cli.requests.topic_admin import create_topics

    with usage():
        settings = parse_pairs("-c", configs or ())
    created, failures = create_topics(
        session.cluster, names, partitions, replicas, settings, dry_run=dry_run, if_not_exists=if_not_exists
    )
    # A topic that is only checked has no id yet.
    headers, shown = "TOPIC PARTITIONS# REPLICAS# ID", created
    if dry_run:
        headers, shown = "TOPIC PARTITIONS# REPLICAS#", [row[:3] for row in created]
    elif created:
        session.wait_until_shown(lambda: session.cluster.have_leaders([row[0] for row in created]))
    if shown:
        session.table(Table(columns(headers), shown))
    raise_all(failures)


@command(app, "describe")
def describe(
    session: Session,
    names: Topics,
    all_configs: Annotated[
        bool, option("--all-configs", help="Include configurations at their default.")
    ] = False,
) -> None:
    """Show partitions, replicas, offsets and configurations of topics.

    LAG has a number for each of REPLICAS: how many records it is behind the leader, - if its broker does not
    answer. ELR are the eligible leader replicas (KIP-966), OFFLINE those on brokers that are down or on disks
    that failed.
    """
    from odradek.cli.requests.topic_describe import describe_topics

    described, failures = describe_topics(session.cluster, names, all_configs)
    if described:
        session.documents(described)
    raise_all(failures)


@command(app, "alter")
def alter(
    session: Session,
    name: Topic,
    settings: Annotated[
        list[str] | None, option("--set", metavar="KEY=VALUE", help="Set a configuration.")
    ] = None,
    unset: Unset = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Change configurations of a topic.

    Asks first if the change can delete records.
    """
    from odradek.cli.requests.config_admin import (
        TOPIC,
        alter_configs,
        config_changes,
        deletes_records,
        shows_changes,
    )

    with usage():
        wanted = parse_pairs("--set", settings or ())
    if not wanted and not unset:
        raise Usage("nothing to change: give --set KEY=VALUE or --unset KEY")
    changes = config_changes(session.cluster, TOPIC, name, wanted, unset or ())
    table = Table(columns("CONFIG BEFORE AFTER"), [list(change) for change in changes])
    alter_configs(session.cluster, TOPIC, name, wanted, unset or (), validate_only=True)
    harmless = not deletes_records(changes)
    if session.confirm(
        table, f"Change {name}? Records may be deleted.", yes=yes or harmless, dry_run=dry_run
    ):
        alter_configs(session.cluster, TOPIC, name, wanted, unset or ())
        session.wait_until_shown(lambda: shows_changes(session.cluster, TOPIC, name, wanted, unset or ()))
        session.table(table)


@command(app, "delete")
def delete(session: Session, names: Topics, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete topics with all their records."""
    from odradek.cli.requests.topic_admin import delete_topics

    topics, missing = session.cluster.find_topics(names)
    if not topics:
        raise_all(missing)
    bounds = session.cluster.bounds(topics)
    rows: list[list[Any]] = []
    for topic in topics:
        spans = [bounds[tp] for tp in topic.topic_partitions]
        rows.append([topic.name, len(topic.partitions), sum(end - start for start, end in spans)])
    table = Table(columns("TOPIC PARTITIONS# RECORDS#"), rows)
    question = f"Delete {len(rows)} topic{'s' * (len(rows) > 1)} with all records?"
    if session.confirm(table, question, yes=yes, dry_run=dry_run):
        failures = delete_topics(session.cluster, [topic.name for topic in topics])
        deleted = [row for row in rows if row[0] not in failures]
        session.wait_until_shown(lambda: not session.cluster.find_topics([row[0] for row in deleted])[0])
        session.done(table._replace(rows=deleted), [*missing, *failures.values()])
    raise_all(missing)


@command(app, "add-partitions")
def add_partitions(
    session: Session,
    name: Topic,
    total: Annotated[
        int | None,
        option("--to", metavar="TOTAL", min=1, help="Total number of partitions.", show_default=False),
    ] = None,
    more: Annotated[
        int | None,
        option("--by", metavar="COUNT", min=1, help="Number of partitions to add.", show_default=False),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Add partitions to a topic.

    Keys will map to other partitions than before. This cannot be undone.
    """
    from odradek.cli.requests.topic_admin import create_partitions

    if (total is None) == (more is None):
        raise Usage("give either --to TOTAL or --by COUNT")
    before = len(session.cluster.topic(name).partitions)
    after = total if total is not None else before + (more or 0)
    create_partitions(session.cluster, name, after, validate_only=True)
    table = Table(columns("TOPIC PARTITIONS-BEFORE# PARTITIONS-AFTER#"), [[name, before, after]])
    count = after - before
    question = f"Add {count} partition{'s' * (count > 1)} to {name}? This cannot be undone."
    if session.confirm(table, question, yes=yes, dry_run=dry_run):
        create_partitions(session.cluster, name, after, validate_only=False)
        session.wait_until_shown(lambda: len(session.cluster.topic(name).partitions) >= after)
        session.wait_until_shown(lambda: session.cluster.have_leaders([name]))
        session.table(table)


@command(app, "trim")
def trim(
    session: Session,
    name: Topic,
    offset: Annotated[
        str,
        option("-o", "--offset", metavar="OFFSET", help="New first offset: start, end, N, +N, -N, @TIME."),
    ],
    partitions: Partitions = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete the records of a topic before an offset."""
    from odradek.cli.requests.topic_admin import delete_records

    wanted = session.offsets(offset)
    if not wanted.is_single:
        raise Usage(f"-o {offset}: one offset, not a range")
    topic = session.cluster.topic(name)
    chosen = session.choose_partitions(topic, partitions)
    places = session.cluster.resolve([topic], chosen, wanted.first)
    rows = [
        [name, place.partition, place.start, place.offset, max(0, place.offset - place.start)]
        for place in places.values()
    ]
    table = Table(columns("TOPIC PARTITION# START-BEFORE# START-AFTER# RECORDS#"), rows)
    count = sum(max(0, place.offset - place.start) for place in places.values())
    if session.confirm(table, f"Delete {count} records of {name}?", yes=yes, dry_run=dry_run):
        failures = delete_records(session.cluster, topic, {tp: place.offset for tp, place in places.items()})
        trimmed = [row for row in rows if row[1] not in failures]
        session.done(table._replace(rows=trimmed), failures.values())
