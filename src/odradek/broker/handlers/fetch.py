"""Fetch v4-v18: records from the log, long polling, incremental sessions (KIP-227).

The codec is hand-written (wire/fetch.py). Records are sent from the log files without a copy in Python. A
fetch that finds less than min_bytes waits until its partitions change or max_wait_ms has passed. A fetch of
many partitions reads them in slices, and checks the leadership of each one when it is read. Deviation: the
preferred read replica is never set, because a node does not serve reads from followers yet.
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
