"""What the quorum needs to know from the node's configuration: its log's settings, its voters. Pure."""

from odradek.core.configs import NodeConfig, TopicConfig
from odradek.core.types import ZERO_UUID
from odradek.raft.times import RaftTimes
from odradek.raft.voters import Voter, VoterEndpoint, VoterSet

_NEVER = (1 << 63) - 1


def metadata_log_config(config: NodeConfig) -> TopicConfig:
    """Retention of the metadata log follows its snapshots, never the age or size of its segments alone.

    It is flushed by the quorum, which has to know of it, and never by the log's own count or clock.
    """
    return TopicConfig.resolve(
        config,
        {
            "cleanup.policy": "delete",
            "segment.bytes": config.string("metadata.log.segment.bytes"),
            "segment.ms": config.string("metadata.log.segment.ms"),
            "retention.bytes": "-1",
            "retention.ms": "-1",
            "flush.messages": str(_NEVER),
            "flush.ms": str(_NEVER),
        },
    )


def static_voters(config: NodeConfig) -> VoterSet | None:
    """The voters that the configuration names, for a log that does not record its own (kraft.version 0).

    A node that is given somebody to ask is no quorum of its own, though it be a single address.
    """
    voters = []
    for entry in config.list("controller.quorum.voters"):
        node_id, _, address = entry.partition("@")
        host, _, port = address.rpartition(":")
        endpoint = VoterEndpoint(config.controller_listener_names[0], host.strip("[]"), int(port))
        voters.append(Voter(int(node_id), ZERO_UUID, (endpoint,), max_kraft_version=0))
    if voters:
        return VoterSet(voters)
    is_alone = config.is_quorum_of_one and not config.list("controller.quorum.bootstrap.servers")
    return VoterSet([Voter(config.node_id, ZERO_UUID, ())]) if is_alone else None


def bootstrap_servers(config: NodeConfig) -> tuple[tuple[str, int], ...]:
    """Where to ask for the leader while the log names no voters."""
    found = []
    for server in config.list("controller.quorum.bootstrap.servers"):
        host, _, port = server.rpartition(":")
        found.append((host.strip("[]"), int(port)))
    return tuple(found)


def raft_times(config: NodeConfig) -> RaftTimes:
    return RaftTimes(
        election_timeout_ms=config.int("controller.quorum.election.timeout.ms"),
        fetch_timeout_ms=config.int("controller.quorum.fetch.timeout.ms"),
        election_backoff_max_ms=config.int("controller.quorum.election.backoff.max.ms"),
        request_timeout_ms=config.int("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=config.int("controller.quorum.retry.backoff.ms"),
        append_linger_ms=config.int("controller.quorum.append.linger.ms"),
    )
