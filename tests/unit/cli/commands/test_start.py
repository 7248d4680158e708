"""`odradek start`: which source of a setting wins, and a node's life from its ready line to its end."""

import json
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from odradek.cli.commands.start import OPTIONS, _configure
from odradek.cli.errors import Usage
from odradek.cli.plain import read
from odradek.core.configs import ConfigError
from odradek.metadata.bootstrap import bootstrap_features
from odradek.metadata.records import ConfigRecord
from odradek.testing.broker import Broker
from tests.support.command import odradek
from tests.support.node import ODRADEK, NodeProcess, running

STARTING = re.compile(
    r"\[.{23}\] INFO Starting odradek 0\.1\.0 as node \d+ \(broker, controller\): listeners PLAINTEXT://\S+, "
    r"CONTROLLER://\S+, directories (.*), Python \d+\.\d+\.\d+, process (\d+) \(odradek\.cli\.node\.life\)\n"
)
READY = re.compile(r"odradek 0\.1\.0 ready: 127\.0\.0\.1:\d+, cluster [\w-]{22}, data (.*), \d+ ms\n")

READY_WITH_HTTP = re.compile(
    r"odradek 0\.1\.0 ready: 127\.0\.0\.1:\d+, cluster [\w-]{22}, data .*, http 127\.0\.0\.1:\d+, \d+ ms"
)


def test_plain_command_lines_are_read_without_typer() -> None:
    values = read(OPTIONS, ["--port", "0", "--set=a=1", "--set", "b=2", "--http=off"])
    assert values is not None
    assert (values["port"], values["set"], values["http"], values["config"]) == (
        "0",
        ["a=1", "b=2"],
        "off",
        None,
    )
    assert set(values) == {option.name for option in OPTIONS}


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--prot", "0"], ["--port"], ["extra"]])
def test_anything_else_is_left_to_typer(arguments: list[str]) -> None:
    assert read(OPTIONS, arguments) is None
    assert odradek("start", *arguments).code == (0 if "h" in arguments[0][:3] else 2)


def test_options_and_set_win_over_the_file_over_the_defaults() -> None:
    file = {"log.dirs": "/file", "num.partitions": "3", "log.retention.hours": "1"}
    config, _ = _configure(file, {"num.partitions": "5"}, "/option", None, 0)
    assert config.log_dirs == ("/option",)
    assert config.num_partitions == 5
    assert config.int("log.retention.hours") == 1
    assert [str(listener) for listener in config.broker_listeners] == ["PLAINTEXT://127.0.0.1:0"]
    assert config.node_id == 1


@pytest.mark.parametrize("name", ["log.dirs", "log.dir"])
def test_a_data_directory_is_named_once(name: str) -> None:
    config, _ = _configure({}, {name: "/set"}, None, None, 0)
    assert config.log_dirs == ("/set",)
    with pytest.raises(Usage, match=f"--data-dir and --set {name} cannot be combined"):
        _configure({}, {name: "/set"}, "/option", None, 0)


def test_directories_are_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    config, _ = _configure({"log.dirs": "a,b", "metadata.log.dir": "b"}, {}, None, None, 0)
    assert config.log_dirs == (f"{tmp_path}/a", f"{tmp_path}/b")
    assert config.metadata_log_dir == f"{tmp_path}/b"
    assert _configure({}, {}, None, None, 0)[0].log_dirs == (f"{tmp_path}/odradek-data",)


def test_a_line_without_a_name_is_shown_as_it_is() -> None:
    _, warnings = _configure({"": "nonsense"}, {}, None, None, 0)
    assert warnings == ["Ignoring the unknown configuration =nonsense"]


def test_listeners_of_a_file_stand_and_do_not_go_with_a_port() -> None:
    file = {"listeners": "PLAINTEXT://10.0.0.1:5,CONTROLLER://10.0.0.1:6"}
    config, _ = _configure(file, {}, None, None, None)
    assert [str(listener) for listener in config.broker_listeners] == ["PLAINTEXT://10.0.0.1:5"]
    with pytest.raises(Usage, match="cannot be combined with a configuration that sets listeners"):
        _configure(file, {}, None, None, 9092)


def test_a_listener_without_a_host_is_advertised_under_this_machines_name() -> None:
    config, _ = _configure({"listeners": "PLAINTEXT://:5,CONTROLLER://:6"}, {}, None, None, None)
    assert [listener.host for listener in config.advertised_listeners] == [socket.getfqdn()]
    assert [listener.host for listener in config.advertised_controller_listeners] == [socket.getfqdn()]
    assert [listener.host for listener in config.broker_listeners] == [""]


def test_a_wildcard_address_asks_for_an_advertised_one() -> None:
    outcome = odradek("start", "--host", "0.0.0.0", "--port", "0")
    assert outcome.code == 2
    assert outcome.stderr == (
        "error: advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
        "Use a routable IP address.\n"
        "  next: odradek start --set advertised.listeners=PLAINTEXT://HOST:PORT\n"
    )


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_node_says_when_it_is_ready_and_stops_cleanly(tmp_path: Path, ending: signal.Signals) -> None:
    node = NodeProcess(tmp_path / "data")
    found = READY.fullmatch(node.ready_line)
    assert found, node.ready_line
    assert found[1] == str(tmp_path / "data")
    assert node.stop(ending) == 0
    assert (tmp_path / "data/.kafka_cleanshutdown").exists()
    assert "Traceback" not in node.log()


def test_a_node_logs_its_start_and_its_stop(tmp_path: Path) -> None:
    settings = ("num.partitions=3", "log.retention.hours=168", "ssl.keystore.password=secret")
    arguments = [part for setting in settings for part in ("--set", setting)]
    node = NodeProcess(tmp_path / "data", *arguments)
    assert node.stop() == 0
    first, second, *_, stopping, stopped = node.log().splitlines(keepends=True)
    found = STARTING.fullmatch(first)
    assert found, first
    assert found.groups() == (str(tmp_path / "data"), str(node.pid))
    # What is set to its default does not differ; a secret is not shown.
    assert " INFO Settings that differ from their defaults: num.partitions=3, " in second
    assert second.endswith("ssl.keystore.password=[hidden] (odradek.cli.node.life)\n")
    assert "secret" not in node.log()
    assert "INFO Stopping: SIGTERM (" in stopping
    assert re.search(r"INFO Stopped after \d+ ms \(", stopped)


def test_a_start_after_a_kill_says_what_was_recovered(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data")
    try:
        assert odradek("topic", "create", "t", "-p", "3", "-b", node.bootstrap).code == 0
    finally:
        node.kill()
    again = NodeProcess(tmp_path / "data")
    assert again.stop() == 0
    assert re.search(
        r"INFO The last stop was not clean: recovered (\d+) of \1 partitions, 0\.0 of 0\.0 GB \(", again.log()
    )
    assert NodeProcess(tmp_path / "data").stop() == 0
    assert again.log().count("The last stop was not clean") == 1


def test_a_directory_belongs_to_one_node_at_a_time_and_to_one_node_id(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node:
        refused = start_and_wait("--data-dir", str(tmp_path / "data"), "--port", "0", "--http", "off")
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"error: Failed to acquire lock on file .lock in {tmp_path}/data.")
        port = node.bootstrap.rpartition(":")[2]
        taken = start_and_wait("--data-dir", str(tmp_path / "other"), "--port", port, "--http", "off")
        assert (taken.returncode, taken.stderr) == (
            1,
            f"error: PLAINTEXT://127.0.0.1:{port}: the port is taken\n"
            "  a node may already run here; for another one: odradek start --port 0 --data-dir DIR\n",
        )
    other = start_and_wait(
        "--data-dir", str(tmp_path / "data"), "--port", "0", "--http", "off", "--set", "node.id=7"
    )
    assert other.returncode == 1
    assert "node id" in other.stderr
    assert "Traceback" not in other.stderr


def test_a_host_that_has_no_address_is_a_problem_of_the_listener(tmp_path: Path) -> None:
    refused = start_and_wait("--data-dir", str(tmp_path), "--host", "no.such.host.invalid", "--http", "off")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: PLAINTEXT://no.such.host.invalid:9092: ")
    assert refused.stderr.endswith("\n  next: odradek start --host 127.0.0.1 --port 9092\n")


def test_a_directory_that_is_not_a_nodes_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("garbage\n")
    refused = start_and_wait("--data-dir", str(tmp_path), "--port", "0", "--http", "off")
    assert (refused.returncode, refused.stderr) == (
        1,
        f"error: {tmp_path}/meta.properties: meta.properties has version None, not 1\n"
        "  next: odradek start --data-dir DIR\n",
    )


def test_json_logs_and_http(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partition=3\nlog.retention.hours=\\\n  5\n")
    node = NodeProcess(tmp_path / "data", "--log-format", "json", "--config", str(file), "--http", "0")
    try:
        ready = json.loads(node.ready_line)
        host, _, port = ready["odradek.http"].partition(":")
        assert READY_WITH_HTTP.fullmatch(ready["message"]), ready
        assert ready["odradek.log_dirs"] == [str(tmp_path / "data")]
        assert (ready["log.level"], ready["process.pid"]) == ("INFO", node.pid)
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    finally:
        assert node.stop() == 0
    lines = [json.loads(line) for line in node.log().splitlines()]
    assert "Ignoring the unknown configuration num.partition; did you mean num.partitions?" in [
        line["message"] for line in lines
    ]


def start_and_wait(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """A start that is refused; of its log only the first line, that it starts, may stand before the error."""
    refused = subprocess.run(
        [ODRADEK, "start", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    first, end, rest = refused.stderr.partition("\n")
    if STARTING.fullmatch(first + end):
        refused.stderr = rest
    return refused


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        (
            "listeners=SASL_SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
            "listener.security.protocol.map=SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT\n"
            "inter.broker.listener.name=SASL_SSL\n"
            "sasl.enabled.mechanisms=SCRAM-SHA-512\n"
            "ssl.client.auth=required\n",
            "listeners: SASL_SSL is not supported yet; use PLAINTEXT",
        ),
        (
            "listeners=SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0\nsecurity.inter.broker.protocol=SSL\n",
            "listeners: SSL is not supported yet; use PLAINTEXT",
        ),
        (
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer: "
            "authorizers are not supported yet; remove the setting to run without",
        ),
    ],
)
def test_a_node_that_could_not_protect_as_asked_does_not_start(
    tmp_path: Path, properties: str, error: str
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path}/data\n{properties}")
    refused = start_and_wait("--config", str(file), "--http", "off")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.splitlines()[0] == f"error: {error}"
    assert not (tmp_path / "data").exists()


def test_a_directory_whose_metadata_asks_for_protection_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = ConfigRecord(resource_type=4, resource_name="1", name="principal.builder.class", value="Mine")
    records = [*bootstrap_features(), setting]
    monkeypatch.setattr("odradek.metadata.formatting.bootstrap_features", lambda: records)
    with pytest.raises(ConfigError):
        Broker(data_dir=str(tmp_path)).start()
    refused = start_and_wait("--data-dir", str(tmp_path), "--port", "0", "--http", "off")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.splitlines() == [
        "error: principal.builder.class=Mine: principal builders are not supported yet; "
        "remove the setting to run without (set in the metadata log)",
        "  next: odradek start --data-dir DIR",
    ]


def test_apache_kafkas_own_server_properties_start_without_a_warning(tmp_path: Path) -> None:
    """The file that its distribution brings, but for the ports, which may be taken, and the directory."""
    arguments = [
        *("--config", Path(__file__).with_name("stock-server.properties"), "--data-dir", tmp_path / "data"),
        *("--set", "listeners=PLAINTEXT://:0,CONTROLLER://:0", "--http", "off"),
        *("--set", "advertised.listeners=PLAINTEXT://localhost:0,CONTROLLER://localhost:0"),
    ]
    node = subprocess.Popen(
        [ODRADEK, "start", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with node:
        try:
            assert node.stdout is not None
            assert " ready: " in node.stdout.readline()
        finally:
            node.terminate()
            _, log = node.communicate(timeout=20)
    assert node.returncode == 0
    lines = [line for line in log.splitlines() if "without effect" in line]
    assert len(lines) == 1, log
    assert " INFO Settings without effect" in lines[0]
    assert lines[0].endswith(
        ": num.io.threads, num.network.threads, share.coordinator.state.topic.min.isr, "
        "share.coordinator.state.topic.replication.factor, socket.receive.buffer.bytes, "
        "socket.send.buffer.bytes (odradek.broker.no_effect)"
    )
    assert " WARN " not in log
