"""All that handlers of a controller listener may use: the services that the node hands to its second server.

Handlers in `broker/handlers/` that both kinds of listener share find what they need here under the same name.
"""

from dataclasses import dataclass, field

from odradek.broker.apis import CONTROLLER_APIS, ApiTable
from odradek.broker.faults import PlantedErrors
from odradek.broker.loggers import LogLevels
from odradek.broker.long_requests import LongRequests
from odradek.controller.quorum import QuorumController
from odradek.core.configs import NodeConfig
from odradek.metadata.publisher import MetadataPublisher
from odradek.raft.driver import RaftDriver
from odradek.raft.serving import ReplicaService
from odradek.runtime.slices import Slices


@dataclass(slots=True, kw_only=True, eq=False)
class ControllerServices:
    slices: Slices
    config: NodeConfig
    cluster_id: str
    log_levels: LogLevels
    metadata: MetadataPublisher
    controller: QuorumController
    """The controller of this very node: where it is not the active one, it says so."""
    raft: RaftDriver
    replica: ReplicaService
    apis: ApiTable = CONTROLLER_APIS
    long_requests: LongRequests = field(default_factory=LongRequests)
    faults: PlantedErrors = field(default_factory=PlantedErrors)
