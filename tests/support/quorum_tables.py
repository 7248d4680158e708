"""What Apache Kafka's metadata-quorum tool prints, as values."""

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.peer_tools import Tools

Told = tuple[str, str]
"""An option that names a bootstrap server or controller, and its value."""


class Replica(NamedTuple):
    node_id: int
    directory_id: str
    log_end_offset: int
    lag: int
    status: str


class Status(NamedTuple):
    cluster_id: str
    leader_id: int
    epoch: int
    high_watermark: int
    max_follower_lag: int
    voters: list[dict[str, Any]]
    observers: list[dict[str, Any]]


def status(tools: Tools, at: Told) -> Status:
    lines = tools.run("metadata-quorum", *at, "describe", "--status").splitlines()
    shown = {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return Status(
        shown["ClusterId"],
        *(int(shown[key]) for key in ("LeaderId", "LeaderEpoch", "HighWatermark", "MaxFollowerLag")),
        *(json.loads(shown[key]) for key in ("CurrentVoters", "CurrentObservers")),
    )


def replication(tools: Tools, at: Told) -> dict[int, Replica]:
    """By node id."""
    head, *rows = (
        [cell.strip() for cell in line.split("\t")]
        for line in tools.run("metadata-quorum", *at, "describe", "--replication").splitlines()
        if line
    )
    found = {}
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        found[int(cells["NodeId"])] = Replica(
            int(cells["NodeId"]),
            cells["DirectoryId"],
            int(cells["LogEndOffset"]),
            int(cells["Lag"]),
            cells["Status"],
        )
    return found


def until(
    condition: Callable[[], bool], seconds: float = 60.0, what: Callable[[], object] | None = None
) -> None:
    """`what` tells, when time is up, what was seen last."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what() if what is not None else "did not come about"
        time.sleep(0.1)
