"""Places for Spark programs, from the pip package alone: standalone clusters, and servers of Spark Connect.

A program is told of them by its environment, and every process by a file with the same properties. It is no
spark-defaults.conf: the folder of one comes first in the class path, and the JVM shares no classes then.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from odradek.runtime.ports import free_port
from odradek.spark.demo.processes import descendants
from tests.spark.driver import ROOT, kill
from tests.spark.support import SETTINGS, packaged_java, spark_home

_CLASSES = Path(pyspark.__file__).parent / "bin"
_START_S = 60


def environment(folder: Path, master: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """For a program that runs on a master."""
    properties = _properties(folder, master, more)
    return {**_environment(folder), "PYSPARK_SUBMIT_ARGS": f"--properties-file {properties} pyspark-shell"}


def _environment(folder: Path) -> dict[str, str]:
    """Of every process of Spark."""
    with packaged_java(folder):
        return {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_HOME": spark_home(folder)}


def _properties(folder: Path, master: str, more: Mapping[str, str] | None = None) -> str:
    settings = {
        **SETTINGS,
        "spark.master": master,
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        **(more or {}),
    }
    file = folder / f"properties-{time.monotonic_ns()}"
    file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return str(file)


@contextmanager
def standalone(folder: Path, hosts: Sequence[str] = ("127.0.0.1",)) -> Iterator[str]:
    """A master, and a worker of one core on every host: its address."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    env = _environment(folder)
    del env["PYSPARK_PYTHON"]  # which Python it is, executors are told by the driver
    # The address of a worker is that of its executors; Spark has no two copies of a task on one.
    settings = ("--webui-port", "0", "--properties-file", _properties(folder, address))
    with ExitStack() as stack:
        at = ("--host", "127.0.0.1", "--port", str(port), *settings)
        stack.enter_context(
            _daemon(folder, env, port, "spark-class", "org.apache.spark.deploy.master.Master", *at)
        )
        for host in hosts:
            at = ("--host", host, "--cores", "1", "--memory", "1g", *settings)
            there = {**env, "SPARK_LOCAL_IP": host}
            worker = (
                "org.apache.spark.deploy.worker.Worker",
                *at,
                "--work-dir",
                str(folder / "work"),
                address,
            )
            stack.enter_context(_daemon(folder, there, None, "spark-class", *worker))
        yield address


@contextmanager
def connect_server(folder: Path, master: str) -> Iterator[str]:
    """A server of Spark Connect: its address, for SPARK_REMOTE."""
    port = free_port()
    properties = _properties(folder, master, {"spark.connect.grpc.binding.port": str(port)})
    service = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
    with _daemon(
        folder, _environment(folder), port, "spark-submit", "--properties-file", properties, *service
    ):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _daemon(
    folder: Path, env: Mapping[str, str], port: int | None, command: str, *args: str
) -> Iterator[None]:
    """A process of Spark until its port answers, and all that it starts, until the end."""
    log = folder / f"{args[-1].rpartition('/')[2]}-{time.monotonic_ns()}.log"
    with log.open("ab") as out:
        process = subprocess.Popen([str(_CLASSES / command), *args], env=env, stdout=out, stderr=out)
        try:
            deadline = time.monotonic() + _START_S
            while port is not None and not _answers(port):
                assert process.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield
        finally:
            for pid in descendants(process.pid):
                kill(pid)
            process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
