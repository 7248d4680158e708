"""The quorum's settings come from the node's configuration."""

from odradek.core.configs import NodeConfig
from odradek.raft.settings import metadata_log_config, static_voters
from odradek.raft.voters import VoterEndpoint


def config(**settings: str) -> NodeConfig:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return NodeConfig.from_sources({}, given)[0]


def test_the_metadata_log_has_its_own_segments_and_no_retention_of_its_own() -> None:
    log = metadata_log_config(config(metadata_log_segment_bytes="8388608", log_retention_bytes="5"))
    assert (log.segment_bytes, log.retention_bytes, log.retention_ms) == (8388608, -1, -1)
    assert log.cleanup_policy == ("delete",)


def test_voters_are_read_from_the_configuration() -> None:
    voters = static_voters(config(controller_quorum_voters="1@a.example:9093,2@[::1]:9094"))
    assert voters is not None
    assert voters.ids == (1, 2)
    assert [v.endpoints for v in voters.voters] == [
        (VoterEndpoint("CONTROLLER", "a.example", 9093),),
        (VoterEndpoint("CONTROLLER", "::1", 9094),),
    ]


def test_a_node_alone_is_its_own_voter() -> None:
    voters = static_voters(config())
    assert voters is not None
    assert voters.ids == (1,)
    assert static_voters(config(controller_quorum_bootstrap_servers="a:1,b:1")) is None
    assert static_voters(config(controller_quorum_bootstrap_servers="a:1")) is None, "a leads, or knows who"


def test_the_brokers_flush_settings_do_not_reach_the_metadata_log() -> None:
    log = metadata_log_config(config(log_flush_interval_messages="1", log_flush_interval_ms="1"))
    assert (log.flush_messages, log.flush_ms) == ((1 << 63) - 1, (1 << 63) - 1)
