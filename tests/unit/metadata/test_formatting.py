"""New directories are formatted as Apache's tool does it; those of others are refused."""

from uuid import UUID

import pytest

from odradek.core.types import uuid_to_text
from odradek.log.checkpoints import MetaProperties, format_meta_properties
from odradek.log.files import read_file, write_file
from odradek.log.managing.log_dir import LogDir
from odradek.metadata.formatting import (
    STANDALONE,
    STATIC,
    FirstVoters,
    FormatError,
    NodeIdentity,
    prepare_directories,
    read_bootstrap,
)
from odradek.metadata.records import FeatureLevelRecord, decode_record
from odradek.raft.control import QuorumFacts
from odradek.raft.opening import FirstStartMark, QuorumError, read_mark, read_quorum_state
from odradek.raft.snapshots import read_snapshot
from odradek.raft.voters import Voter, VoterEndpoint, VoterSet
from odradek.records.batch import iter_batches, iter_records
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.world import World
from tests.golden import loader

ENDPOINT = VoterEndpoint("CONTROLLER", "127.0.0.1", 9093)


def runtime() -> SimRuntime:
    return World(1).runtime("h")


def prepare(
    rt: SimRuntime,
    *paths: str,
    node_id: int = 1,
    cluster_id: str | None = None,
    first_voters: FirstVoters = STANDALONE,
) -> tuple[NodeIdentity, list[LogDir]]:
    directories = [LogDir(rt.disk, path) for path in paths]
    for directory in directories:
        directory.open()
    try:
        identity = prepare_directories(
            rt,
            directories,
            node_id=node_id,
            metadata_log_dir=paths[0],
            controller_endpoints=[ENDPOINT],
            cluster_id=cluster_id,
            first_voters=first_voters,
        )
    finally:
        for directory in directories:
            directory.unlock()
    return identity, directories


def test_a_fresh_directory_gets_apaches_files() -> None:
    rt = runtime()
    identity, (directory,) = prepare(rt, "/data")
    assert identity.is_new
    assert sorted(rt.disk.listdir("/data")) == [
        ".lock",
        "__cluster_metadata-0",
        "bootstrap.checkpoint",
        "meta.properties",
    ]
    meta = read_file(rt.disk, "/data/meta.properties").decode().splitlines()
    assert meta[2:] == [
        "node.id=1",
        f"directory.id={uuid_to_text(identity.directory_ids['/data'])}",
        "version=1",
        f"cluster.id={identity.cluster_id}",
    ]
    first = read_file(rt.disk, "/data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
    voters = VoterSet([Voter(1, identity.directory_ids["/data"], (ENDPOINT,))])
    assert read_snapshot(first, lambda data, batch: None).facts == QuorumFacts(1, voters)
    assert directory.meta == MetaProperties(identity.cluster_id, 1, identity.directory_ids["/data"])


def test_bootstrap_records_are_those_of_apache_but_for_groups_that_are_not_served() -> None:
    rt = runtime()
    prepare(rt, "/data")
    (golden,) = loader.files("clean", "bootstrap.checkpoint").values()
    theirs = [
        decode_record(record.value or b"")
        for batch in iter_batches(golden)
        if not batch.is_control
        for record in iter_records(golden, batch)
    ]
    unserved = [FeatureLevelRecord(name=f"{kind}.version", feature_level=1) for kind in ("share", "streams")]
    assert read_bootstrap(rt.disk, "/data") == [record for record in theirs if record not in unserved]
    assert [record for record in theirs if record in unserved] == unserved
    ours = read_file(rt.disk, "/data/bootstrap.checkpoint")
    # As large as Apache's with `--feature share.version=0 --feature streams.version=0`.
    assert len(ours) == 355


def test_a_formatted_directory_stays_whose_it_is() -> None:
    rt = runtime()
    first, _ = prepare(rt, "/data")
    second, _ = prepare(rt, "/data")
    assert second == first._replace(is_new=False)


def test_the_cluster_id_can_be_given() -> None:
    rt = runtime()
    assert prepare(rt, "/data", cluster_id="gY0T1iObrjDNl0eEy1qiIQ")[0].cluster_id == "gY0T1iObrjDNl0eEy1qiIQ"


def test_another_nodes_directory_is_refused() -> None:
    rt = runtime()
    prepare(rt, "/data")
    with pytest.raises(FormatError, match="Stored node id 1 doesn't match previous node id 2"):
        prepare(rt, "/data", node_id=2)


def test_another_clusters_directory_is_refused() -> None:
    rt = runtime()
    prepare(rt, "/data")
    with pytest.raises(FormatError, match=r"Invalid cluster\.id in: /data/meta\.properties\. Expected other"):
        prepare(rt, "/data", cluster_id="other")


def test_directories_of_two_clusters_are_refused() -> None:
    rt = runtime()
    prepare(rt, "/a")
    prepare(rt, "/b")
    with pytest.raises(FormatError, match=r"Invalid cluster\.id"):
        prepare(rt, "/a", "/b")


def test_the_same_directory_id_twice_is_refused() -> None:
    rt = runtime()
    identity, _ = prepare(rt, "/a")
    rt.disk.makedirs("/b")
    meta = MetaProperties(identity.cluster_id, 1, identity.directory_ids["/a"])
    write_file(rt.disk, "/b/meta.properties", format_meta_properties(meta, 0))
    with pytest.raises(FormatError, match="Duplicate directory ID"):
        prepare(rt, "/a", "/b")


def test_a_new_directory_beside_a_formatted_one_joins_its_cluster() -> None:
    rt = runtime()
    first, _ = prepare(rt, "/a")
    both, _ = prepare(rt, "/a", "/b")
    assert both.cluster_id == first.cluster_id
    assert not both.is_new
    assert both.directory_ids["/b"] != both.directory_ids["/a"] == first.directory_ids["/a"]
    assert "bootstrap.checkpoint" not in rt.disk.listdir("/b")


def test_a_new_metadata_directory_beside_a_formatted_one_is_refused() -> None:
    rt = runtime()
    prepare(rt, "/b")
    with pytest.raises(FormatError, match="the cluster's metadata is missing"):
        prepare(rt, "/a", "/b")


def test_a_directory_with_data_and_no_owner_is_never_formatted() -> None:
    rt = runtime()
    rt.disk.makedirs("/data/orders-0")
    with pytest.raises(FormatError, match="it contains orders-0: refusing to format"):
        prepare(rt, "/data")


def test_ids_are_random_and_not_reserved() -> None:
    rt = runtime()
    one, _ = prepare(rt, "/a")
    other = World(2).runtime("h")
    two, _ = prepare(other, "/a")
    assert one.cluster_id != two.cluster_id
    assert all(isinstance(i, UUID) and i.int > 100 for i in one.directory_ids.values())


def test_a_path_may_end_in_a_slash() -> None:
    rt = runtime()
    directory = LogDir(rt.disk, "/data")
    directory.open()
    identity = prepare_directories(
        rt, [directory], node_id=1, metadata_log_dir="/data/", controller_endpoints=[ENDPOINT]
    )
    assert identity.metadata_directory_id == identity.directory_ids["/data"]


def test_a_metadata_directory_outside_the_log_directories_is_refused() -> None:
    rt = runtime()
    directory = LogDir(rt.disk, "/data")
    directory.open()
    with pytest.raises(FormatError, match="is not one of the log directories"):
        prepare_directories(
            rt, [directory], node_id=1, metadata_log_dir="/other", controller_endpoints=[ENDPOINT]
        )


def test_a_voter_that_formats_itself_leaves_a_mark_and_may_be_cut_short() -> None:
    rt = runtime()
    wiped = STATIC._replace(mark=FirstStartMark.WIPED, epoch=7)
    for _ in range(2):
        prepare(rt, "/data", first_voters=wiped)
        assert read_mark(rt.disk, "/data") is FirstStartMark.WIPED
        assert read_quorum_state(rt.disk, "/data").leader_epoch == 7
        rt.disk.unlink("/data/meta.properties")  # as if the power went before this was written


def test_a_mark_that_nobody_wrote_is_refused() -> None:
    rt = runtime()
    prepare(rt, "/data", first_voters=STATIC._replace(mark=FirstStartMark.NEW))
    write_file(rt.disk, "/data/__cluster_metadata-0/first-start", b"perhaps")
    with pytest.raises(QuorumError, match="first-start cannot be read"):
        read_mark(rt.disk, "/data")
