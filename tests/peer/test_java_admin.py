"""Every public method of Java's Admin has the same result on Odradek as on Apache Kafka, except those on a
list.

java/AdminCalls.java makes the calls on a new node and prints each result. The list is exact: a method that no
longer differs must be removed from it.
"""

import pathlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from odradek.runtime.ports import free_port
from tests.support import peer
from tests.support.node import running

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

FEW_PARTITIONS = ("offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1")

DIFFERENCES = {
    "share groups are not served yet": [
        "describeShareGroups",
        "describeShareGroups, options",
        "alterShareGroupOffsets",
        "alterShareGroupOffsets, options",
        "listShareGroupOffsets",
        "listShareGroupOffsets, options",
        "deleteShareGroupOffsets",
        "deleteShareGroupOffsets, options",
    ],
    "streams groups are not served yet": ["describeStreamsGroups", "describeStreamsGroups, options"],
    "share.version and streams.version are 0 until their groups are served": [
        "describeFeatures",
        "describeFeatures, options",
    ],
    "quotas are not enforced, so none can be set": ["alterClientQuotas", "alterClientQuotas, options"],
    "there is no SASL, so no credential can be set": [
        "alterUserScramCredentials",
        "alterUserScramCredentials, options",
    ],
    "client metrics are not collected, so they have no configs": [
        "incrementalAlterConfigs of client metrics",
        "describeConfigs of client metrics",
        "listConfigResources",
        "listClientMetricsResources",
        "listClientMetricsResources, options",
    ],
    "loggers have the names of Odradek's modules, not of Java's classes": ["describeConfigs of loggers"],
    "a quorum has one member, whose listener is not bound": [
        "describeMetadataQuorum",
        "describeMetadataQuorum, options",
    ],
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What came of each call, on Apache and on Odradek."""
    path = tmp_path_factory.mktemp("admin")
    with ThreadPoolExecutor() as pool:
        compiling = pool.submit(peer.compile_java, path / "classes")
        apache = peer.start(path / "apache", free_port(), *FEW_PARTITIONS)
        settings = [arg for setting in FEW_PARTITIONS for arg in ("--set", setting)]
        try:
            compiling.result()
            with running(path / "data", *settings) as node:
                asked = [pool.submit(calls, path / "classes", b) for b in (apache, node.bootstrap)]
                yield tuple(future.result() for future in asked)
        finally:
            peer.stop(path / "apache")


def calls(classes: pathlib.Path, bootstrap: str) -> dict[str, str]:
    done = peer.run_java(classes, "AdminCalls", bootstrap)
    rows = [line.split("\t", 1) for line in done.splitlines()]
    found = dict(rows)
    assert len(found) == len(rows), "two calls have the same name"
    return found


def test_every_public_method_of_admin_is_called(outcomes):
    for found in outcomes:
        assert "not called" not in found, found["not called"]
        assert len(found) > 180


def test_java_admin_sees_what_it_sees_on_apache_but_for_the_list(outcomes):
    apache, odradek = outcomes
    assert apache.keys() == odradek.keys()
    different = {what for what in apache if apache[what] != odradek[what]}
    listed = {what for reason in DIFFERENCES.values() for what in reason}
    unexpected = "\n".join(
        f"{what}\n  Apache:  {apache[what]}\n  Odradek: {odradek[what]}"
        for what in sorted(different - listed)
    )
    assert not unexpected
    assert listed - different == set(), "these do not differ any more: take them off the list"
