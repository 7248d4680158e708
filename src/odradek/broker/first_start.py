"""How a node of a quorum of several learns its cluster where nobody formatted its directories.

A static voter asks every other voter, and formats itself as new or as wiped (raft/first_start.py: the rule).
A broker takes the cluster id from any controller. Who is waited for is logged every few seconds.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from odradek.broker.waiting_services import WaitingServices
from odradek.core.configs import NodeConfig
from odradek.log.managing.log_dir import LogDir
from odradek.log.names import META_PROPERTIES
from odradek.metadata.formatting import OBSERVER, STATIC, FirstVoters, FormatError, NodeIdentity
from odradek.metadata.formatting import prepare_directories as prepare
from odradek.raft import first_start
from odradek.raft.first_questions import FirstQuestions
from odradek.raft.opening import FirstStartMark, read_mark, read_quorum_state, remove_mark
from odradek.raft.peers import Endpoint
from odradek.raft.settings import bootstrap_servers, static_voters
from odradek.raft.voters import VoterEndpoint
from odradek.runtime.api import Runtime

_log = logging.getLogger(__name__)

_ASK_AGAIN_S: Final = 0.1
_ASK_AGAIN_LATER_S: Final = 1.0
_TELL_S: Final = 3.0


class FirstStart:
    """`identify` gives the ids of this node. `listen` is called before it has to wait for other voters."""

    def __init__(
        self,
        config: NodeConfig,
        runtime: Runtime,
        directories: Sequence[LogDir],
        endpoints: Sequence[VoterEndpoint],
        services: WaitingServices,
        listen: Callable[[], None],
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._directories = directories
        self._endpoints = endpoints
        self._services = services
        self._listen = listen
        self._questions = FirstQuestions(
            runtime, config.node_id, config.int("controller.quorum.request.timeout.ms")
        )
        self._began_s = asyncio.get_running_loop().time()
        self._told_s = self._began_s

    async def identify(self) -> NodeIdentity:
        """Raises FormatError, CheckpointError, OSError, QuorumError, QuorumStateError."""
        config = self._config
        metadata_dir = next(
            (d for d in self._directories if d.path == config.metadata_log_dir.rstrip("/")), None
        )
        is_known = any(d.meta is not None for d in self._directories)
        if config.is_quorum_of_one or metadata_dir is None or metadata_dir.failure is not None:
            return self._format()
        voters = static_voters(config)
        if not config.is_controller:
            return self._format() if is_known else await self._join_as_broker()
        if voters is None:
            if metadata_dir.meta is None:
                raise FormatError(
                    f"No `{META_PROPERTIES}` found in {metadata_dir.path}. A controller without "
                    "controller.quorum.voters is formatted before its first start: odradek cluster format"
                )
            return self._known(self._format())
        if voters.get(config.node_id) is None:
            raise FormatError(
                f"node {config.node_id} is a controller and not among the voters {list(voters.ids)} of "
                "controller.quorum.voters"
            )
        others = {
            v.id: (v.endpoints[0].host, v.endpoints[0].port) for v in voters.voters if v.id != config.node_id
        }
        return await self._start_as_voter(others, is_known=is_known)

    def _format(self, cluster_id: str | None = None, first_voters: FirstVoters | None = None) -> NodeIdentity:
        return prepare(
            self._runtime,
            self._directories,
            node_id=self._config.node_id,
            metadata_log_dir=self._config.metadata_log_dir,
            controller_endpoints=self._endpoints,
            cluster_id=cluster_id,
            **({} if first_voters is None else {"first_voters": first_voters}),
        )

    # --- a broker -------------------------------------------------------------------------------------

    async def _join_as_broker(self) -> NodeIdentity:
        voters = static_voters(self._config)
        asked = list(bootstrap_servers(self._config))
        asked += [(v.endpoints[0].host, v.endpoints[0].port) for v in (voters.voters if voters else ())]
        while True:
            for endpoint in asked:
                cluster_id = await self._questions.cluster_id(endpoint)
                if cluster_id is not None:
                    return self._format(cluster_id, STATIC if voters else OBSERVER)
            self._tell("a controller that names its cluster: " + ", ".join(map(_address, asked)))
            await self._pause()

    # --- a voter --------------------------------------------------------------------------------------

    async def _start_as_voter(self, others: Mapping[int, Endpoint], *, is_known: bool) -> NodeIdentity:
        """It answers while it asks: the others may be as new as this one."""
        if is_known:
            identity = self._format()
        else:
            self._listen()
            identity = await self._format_as_voter(others)
        if self._is_new():
            self._services.cluster_id = identity.cluster_id
            self._listen()
            await self._until_all_formatted(others)
        return self._known(identity)

    def _known(self, identity: NodeIdentity) -> NodeIdentity:
        """From now on it says which cluster it belongs to, and leaves its epoch to the replica."""
        self._services.cluster_id = identity.cluster_id
        self._services.has_epoch = True
        self._listen()
        return identity

    async def _format_as_voter(self, others: Mapping[int, Endpoint]) -> NodeIdentity:
        node_id = self._config.node_id
        voters = (node_id, *others)
        while True:
            answers = await self._questions.ask_all(others)
            decision = first_start.decide(node_id, voters, answers)
            if not isinstance(decision, first_start.Wait):
                try:
                    cluster_id = first_start.choose_cluster_id(node_id, voters, answers)
                except first_start.ClusterIdError as e:
                    raise FormatError(f"Cannot format {self._config.metadata_log_dir}: {e}") from e
                if not isinstance(cluster_id, first_start.Wait):
                    return self._format_as(decision, cluster_id)
                self._tell_voters(cluster_id, others, "to learn the id of the cluster")
            else:
                self._tell_voters(decision, others, "to learn whether the quorum is new")
            await self._pause()

    def _format_as(self, decision: first_start.Format, cluster_id: str | None) -> NodeIdentity:
        mark = FirstStartMark.NEW if decision.may_vote else FirstStartMark.WIPED
        identity = self._format(cluster_id, STATIC._replace(mark=mark, epoch=decision.epoch))
        if decision.may_vote:
            _log.info("Formatted as a voter of the new cluster %s", identity.cluster_id)
        else:
            _log.warning(
                "Formatted as a voter with a new disk: cluster %s is in epoch %d already. This voter votes "
                "when it has caught up",
                identity.cluster_id,
                decision.epoch,
            )
        return identity

    def _is_new(self) -> bool:
        disk, path = self._runtime.disk, self._config.metadata_log_dir
        return read_mark(disk, path) is FirstStartMark.NEW and not read_quorum_state(disk, path).leader_epoch

    async def _until_all_formatted(self, others: Mapping[int, Endpoint]) -> None:
        node_id = self._config.node_id
        while True:
            answers = await self._questions.ask_all(others)
            late = first_start.may_start(node_id, (node_id, *others), answers)
            if late is None:
                break
            self._tell_voters(late, others, "which are to be formatted before this one votes")
            await self._pause()
        remove_mark(self._runtime.disk, self._config.metadata_log_dir)

    # --- waiting --------------------------------------------------------------------------------------

    def _tell_voters(self, wait: first_start.Wait, others: Mapping[int, Endpoint], why: str) -> None:
        named = ", ".join(f"{n} at {_address(others[n])}" for n in wait.voters)
        self._tell(f"{'voter' if len(wait.voters) == 1 else 'voters'} {named}, {why}")

    def _tell(self, text: str) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._told_s + _TELL_S:
            self._told_s = now_s
            _log.warning("Waiting for %s", text)

    async def _pause(self) -> None:
        is_early = asyncio.get_running_loop().time() < self._began_s + _TELL_S
        await asyncio.sleep(_ASK_AGAIN_S if is_early else _ASK_AGAIN_LATER_S)


def _address(endpoint: Endpoint) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
