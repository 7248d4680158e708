"""`odradek cluster format`: what it writes, says and refuses, as Apache Kafka's storage tool does."""

from pathlib import Path

import pytest

from odradek.core.types import uuid_from_text
from odradek.log.checkpoints import parse_meta_properties
from tests.support.command import Outcome, odradek

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
FIRST, SECOND = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"
SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


class Storage:
    def __init__(self, folder: Path, *lines: str, roles: str = "broker,controller") -> None:
        self.metadata, self.data = folder / "m", folder / "d"
        controller = ",CONTROLLER://127.0.0.1:19093" if "controller" in roles else ""
        listeners = f"PLAINTEXT://127.0.0.1:19092{controller}"
        self.path = folder / "server.properties"
        self.path.write_text(
            f"node.id=1\nprocess.roles={roles}\nlisteners={listeners}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={self.metadata},{self.data}\nmetadata.log.dir={self.metadata}\n"
            + "".join(
                line + "\n" for line in lines or ("controller.quorum.bootstrap.servers=127.0.0.1:19093",)
            )
        )

    def format(self, *arguments: str, cluster_id: str = CLUSTER_ID) -> Outcome:
        return odradek(
            "cluster", "format", "--cluster-id", cluster_id, "--config", str(self.path), *arguments
        )

    def said(self, kind: str) -> str:
        return (
            f"Formatting {kind} {self.metadata} with metadata.version 4.3-IV0.\n"
            f"Formatting data directory {self.data} with metadata.version 4.3-IV0.\n"
        )


def test_a_standalone_controller_begins_with_itself_as_voter(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    outcome = storage.format("--standalone")
    assert (outcome.code, outcome.text) == (0, storage.said("dynamic metadata voter directory"))
    metas = [
        parse_meta_properties((p / "meta.properties").read_bytes()) for p in (storage.metadata, storage.data)
    ]
    assert {(meta.cluster_id, meta.node_id) for meta in metas} == {(CLUSTER_ID, 1)}
    assert (storage.metadata / SNAPSHOT).exists()
    assert (storage.metadata / "bootstrap.checkpoint").exists()


def test_a_first_controller_has_the_directory_id_of_the_list(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    voters = f"1@127.0.0.1:19093:{FIRST},2@127.0.0.1:19094:{SECOND}"
    assert storage.format("--initial-controllers", voters).text == storage.said(
        "dynamic metadata voter directory"
    )
    meta = parse_meta_properties((storage.metadata / "meta.properties").read_bytes())
    assert meta.directory_id == uuid_from_text(FIRST)


def test_a_controller_that_joins_later_begins_without_voters(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    assert storage.format("--no-initial-controllers").text == storage.said("metadata directory")
    assert not (storage.metadata / SNAPSHOT).exists()


@pytest.mark.parametrize("roles", ["broker", "broker,controller"])
def test_static_voters_and_brokers_need_no_option(tmp_path: Path, roles: str) -> None:
    given = () if roles == "broker" else ("controller.quorum.voters=1@127.0.0.1:19093",)
    storage = Storage(tmp_path, *given, roles=roles)
    assert storage.format().text == storage.said("metadata directory")


def test_a_formatted_directory_is_refused_or_ignored(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.format("--standalone")
    before = (storage.metadata / "meta.properties").read_bytes()
    again = storage.format("--standalone")
    assert (again.code, again.stderr) == (
        1,
        f"error: Log directory {storage.metadata} is already formatted. Use --ignore-formatted to ignore "
        "this directory and format the others.\n",
    )
    ignored = storage.format("--standalone", "--ignore-formatted")
    assert (ignored.code, ignored.text) == (0, "All of the log directories are already formatted.\n")
    (storage.data / "meta.properties").unlink()
    assert storage.format("--standalone", "-g").text == storage.said("").splitlines(keepends=True)[1]
    assert (storage.metadata / "meta.properties").read_bytes() == before


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.format("--standalone")
    outcome = storage.format("--standalone", "-g", cluster_id="another")
    assert outcome.code == 1
    assert f"Expected another, but read {CLUSTER_ID}" in outcome.stderr


STATIC = "controller.quorum.voters=1@127.0.0.1:19093"


@pytest.mark.parametrize(
    ("lines", "roles", "arguments", "message"),
    [
        ((), "controller", (), "Because controller.quorum.voters is not set on this controller, you must"),
        ((), "broker", ("--standalone",), "You can only use --standalone on a controller."),
        (
            (STATIC,),
            "controller",
            ("--standalone",),
            "You cannot specify controller.quorum.voters and format",
        ),
        ((), "controller", ("--standalone", "-N"), "give only one of"),
        ((), "controller", ("-I", "nobody"), "No @ found in dynamic voter string."),
    ],
)
def test_options_that_do_not_fit_the_configuration_are_refused(
    tmp_path: Path, lines: tuple[str, ...], roles: str, arguments: tuple[str, ...], message: str
) -> None:
    storage = Storage(tmp_path, *lines, roles=roles)
    if roles == "controller":
        text = storage.path.read_text().replace("PLAINTEXT://127.0.0.1:19092,", "")
        storage.path.write_text(text)
    outcome = storage.format(*arguments)
    assert outcome.code == 2
    assert outcome.stderr.startswith(f"error: {message}")
    assert not storage.metadata.exists()


def test_an_id_that_no_cluster_can_have_is_refused(tmp_path: Path) -> None:
    outcome = Storage(tmp_path).format("--standalone", cluster_id="a b")
    assert outcome.code == 1
    assert "cluster.id 'a b' must be" in outcome.stderr
