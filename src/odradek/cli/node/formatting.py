"""Formats the directories of a node that does not run: `odradek cluster format`, and every node of `up`."""

from odradek.cli.errors import Failure
from odradek.core.configs import NodeConfig
from odradek.core.errors import StorageError
from odradek.log.checkpoints import CheckpointError
from odradek.log.managing.log_dir import DirectoryInUseError, LogDir
from odradek.metadata.formatting import (
    OBSERVER,
    STANDALONE,
    STATIC,
    FirstVoters,
    FormatError,
    prepare_directories,
)
from odradek.raft.voters import VoterEndpoint, VoterSet
from odradek.runtime.real import RealRuntime


def controller_endpoints(config: NodeConfig) -> list[VoterEndpoint]:
    return [VoterEndpoint(c.name, c.host, c.port) for c in config.advertised_controller_listeners]


def choose_first_voters(
    config: NodeConfig, *, standalone: bool, initial: VoterSet | None, nobody: bool
) -> FirstVoters:
    """What the options of `cluster format` ask for. ValueError, in Kafka's words, where they do not go with
    the configuration."""
    if sum((standalone, initial is not None, nobody)) > 1:
        raise ValueError("give only one of --standalone, --initial-controllers, --no-initial-controllers")
    is_static = bool(config.list("controller.quorum.voters"))
    if standalone and not config.is_controller:
        raise ValueError("You can only use --standalone on a controller.")
    if is_static and (standalone or initial is not None):
        raise ValueError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and "
            "specify controller.quorum.bootstrap.servers instead."
        )
    if config.is_controller and not (is_static or standalone or nobody or initial is not None):
        raise ValueError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the "
            "following: --standalone, --initial-controllers, or --no-initial-controllers."
        )
    if initial is not None:
        return FirstVoters(voters=initial)
    if standalone:
        return STANDALONE
    return STATIC if is_static else OBSERVER


def directory_kind(config: NodeConfig, path: str, first_voters: FirstVoters) -> str:
    """Kafka's word for what a directory is formatted as."""
    if path != config.metadata_log_dir.rstrip("/"):
        return "data directory"
    if first_voters is STANDALONE:
        return "dynamic metadata voter directory"
    if first_voters.voters is None:
        return "metadata directory"
    is_voter = first_voters.voters.get(config.node_id) is not None
    return "dynamic metadata voter directory" if is_voter else "dynamic metadata directory"


def format_node(
    config: NodeConfig, cluster_id: str, first_voters: FirstVoters, *, ignores_formatted: bool = True
) -> list[str]:
    """Format what is not formatted yet, and give these directories, that of the metadata first.

    Failure where a directory is another cluster's or in use, or is formatted and that is not ignored.
    """
    runtime = RealRuntime()
    paths = dict.fromkeys((config.metadata_log_dir, *config.log_dirs))
    directories = [LogDir(runtime.disk, path.rstrip("/")) for path in paths]
    try:
        for directory in directories:
            directory.open()
        formatted = [directory.path for directory in directories if directory.meta is not None]
        if formatted and not ignores_formatted:
            raise Failure(
                f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore this "
                "directory and format the others."
            )
        prepare_directories(
            runtime,
            directories,
            node_id=config.node_id,
            metadata_log_dir=config.metadata_log_dir,
            controller_endpoints=controller_endpoints(config),
            cluster_id=cluster_id,
            first_voters=first_voters,
        )
        return [d.path for d in directories if d.path not in formatted and d.meta is not None]
    except (CheckpointError, DirectoryInUseError, FormatError, StorageError) as e:
        raise Failure(str(e)) from e
    except OSError as e:
        raise Failure(f"Cannot format {e.filename}: {e.strerror}") from e
    finally:
        for directory in directories:
            directory.unlock()
        runtime.close()
