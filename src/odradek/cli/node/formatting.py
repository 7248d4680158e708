"""Formats the directories of a node that does not run: `odradek cluster format`, and every node of `up`."""

from odradek.cli.errors import Failure
from odradek.core.configs import NodeConfig
from odradek.core.errors import StorageError
from odradek.log.checkpoints import CheckpointError
from odradek.log.managing.log_dir import DirectoryInUseError, LogDir
from odradek.metadata.formatting import FirstVoters, FormatError, NodeIdentity, prepare_directories
from odradek.raft.voters import VoterEndpoint
from odradek.runtime.real import RealRuntime


def controller_endpoints(config: NodeConfig) -> list[VoterEndpoint]:
    return [VoterEndpoint(c.name, c.host, c.port) for c in config.controller_listeners]


def format_node(config: NodeConfig, cluster_id: str, first_voters: FirstVoters) -> NodeIdentity:
    """Format what is not formatted yet. Failure where a directory is another cluster's, or in use."""
    runtime = RealRuntime()
    paths = dict.fromkeys((*config.log_dirs, config.metadata_log_dir))
    directories = [LogDir(runtime.disk, path.rstrip("/")) for path in paths]
    try:
        for directory in directories:
            directory.open()
        return prepare_directories(
            runtime,
            directories,
            node_id=config.node_id,
            metadata_log_dir=config.metadata_log_dir,
            controller_endpoints=controller_endpoints(config),
            cluster_id=cluster_id,
            first_voters=first_voters,
        )
    except (CheckpointError, DirectoryInUseError, FormatError, StorageError) as e:
        raise Failure(str(e)) from e
    except OSError as e:
        raise Failure(f"Cannot format {e.filename}: {e.strerror}") from e
    finally:
        for directory in directories:
            directory.unlock()
        runtime.close()
