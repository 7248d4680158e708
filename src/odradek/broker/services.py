"""The services of a broker that handlers may use. The node passes them to its server.

A handler's module names the services that it needs in a protocol `Needs`. Its context is
`RequestContext[Needs]`, and mypy compares the two where the handler registers itself.
"""

import asyncio
from dataclasses import dataclass

from odradek.broker.apis import ApiTable
from odradek.broker.faults import PlantedErrors
from odradek.broker.loggers import LogLevels
from odradek.broker.long_requests import LongRequests
from odradek.broker.network.server import Server
from odradek.broker.topics import TopicCreation
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.transactions.add_partitions import AddPartitionsToTxnManager
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.coordinators.transactions.marker_writer import MarkerWriter
from odradek.coordinators.transactions.producer_ids import ProducerIds
from odradek.coordinators.transactions.speakers import Speakers
from odradek.core.configs import NodeConfig
from odradek.log.manager import LogManager
from odradek.metadata.channel import ControllerChannel
from odradek.metadata.publisher import MetadataPublisher
from odradek.replication.fetch_sessions import FetchSessions
from odradek.replication.manager import ReplicaManager
from odradek.runtime.api import Runtime
from odradek.runtime.slices import Slices


@dataclass(slots=True, kw_only=True, eq=False)
class Services:
    runtime: Runtime
    slices: Slices
    config: NodeConfig
    cluster_id: str
    faults: PlantedErrors
    log_levels: LogLevels
    # requests and connections
    apis: ApiTable
    server: Server
    long_requests: LongRequests
    heavy_checks: asyncio.Semaphore
    # metadata
    metadata: MetadataPublisher
    controller: ControllerChannel
    internal_topics: TopicCreation
    # partitions
    logs: LogManager
    replicas: ReplicaManager
    fetch_sessions: FetchSessions
    fetch_max_bytes: int
    # groups and transactions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    txn_partitions: AddPartitionsToTxnManager
    marker_writer: MarkerWriter
    offset_speakers: Speakers
    producer_ids: ProducerIds
