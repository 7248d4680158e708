"""Fetch v4-v18: records from the log, long polling, incremental sessions (KIP-227).

Coded by hand (wire/fetch.py): the records never enter Python, only their place in the log file does.
A fetch that finds less than min_bytes waits on its partitions until they move or max_wait_ms has passed.
Deviation: the preferred read replica is never set, since a follower that a consumer could read from needs
rack-aware clients and a second node.
"""

import asyncio
from typing import TYPE_CHECKING

from odradek.broker.dispatch import serves_raw
from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.log import Isolation
from odradek.replication.fetch import FetchRead, PartitionAnswer, read_partitions
from odradek.replication.fetch_sessions import FetchContext, PartitionFetch, PartitionKey
from odradek.wire.api_keys import ApiKey
from odradek.wire.fetch import FetchRequest, encode_fetch_response, parse_fetch_request
from odradek.wire.headers import RequestHeader

if TYPE_CHECKING:
    from odradek.broker.connection import Connection
    from odradek.broker.node import Node

READ_COMMITTED = 1
