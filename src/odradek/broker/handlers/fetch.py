"""Fetch v4-v18: records from the log, long polling, incremental sessions (KIP-227).

Coded by hand (wire/fetch.py): the records never enter Python, only their place in the log file does.
A fetch that finds less than min_bytes waits on its partitions until they move or max_wait_ms has passed.
A fetch of many partitions reads them in slices: each is looked at, leadership and all, when its turn comes.
Deviation: the preferred read replica is never set: reading from a follower needs a second node.
"""

from typing import TYPE_CHECKING

from odradek.broker.dispatch import serves_raw
from odradek.broker.pending_fetch import Needs, PendingFetch
from odradek.wire.api_keys import ApiKey
from odradek.wire.fetch import FetchRequest
from odradek.wire.headers import RequestHeader

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection


@serves_raw(ApiKey.FETCH, min_version=4, max_version=18)
def fetch(
    services: Needs, connection: "Connection", header: RequestHeader, frame: memoryview, position: int
) -> None:
    request = FetchRequest.parse(frame, position, header.api_version, services.slices.few_entries)
    PendingFetch(services, connection, header, request).begin()
