"""Shell completion with the names a live cluster knows. A failure completes nothing."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.cli.requests.cluster_access import ClusterAccess

_TIMEOUT_MS = "1000"


def complete_topics(incomplete: str) -> list[str]:
    return _complete(incomplete, lambda cluster: cluster.topic_names())


def complete_groups(incomplete: str) -> list[str]:
    return _complete(incomplete, lambda cluster: cluster.group_names())


def complete_transactions(incomplete: str) -> list[str]:
    from odradek.cli.requests.txn_admin import list_transactions

    return _complete(
        incomplete, lambda cluster: [listed.transactional_id for listed in list_transactions(cluster)]
    )


def complete_groups_and_topics(incomplete: str) -> list[str]:
    return _complete(incomplete, lambda cluster: [*cluster.group_names(), *cluster.topic_names()])


def _complete(incomplete: str, names: "Callable[[ClusterAccess], list[str]]") -> list[str]:
    from odradek.cli.errors import Failure
    from odradek.cli.properties import resolve_properties
    from odradek.cli.requests.cluster_access import ClusterAccess

    try:
        properties = resolve_properties(None, (), os.environ)
        cluster = ClusterAccess({**properties, "request.timeout.ms": _TIMEOUT_MS})
        try:
            # A shell puts the name on the command line: what it or the terminal would obey is left out.
            return [name for name in names(cluster) if name.startswith(incomplete) and name.isprintable()]
        finally:
            cluster.close()
    except (Failure, ValueError):
        return []
