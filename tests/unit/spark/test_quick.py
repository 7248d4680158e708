"""Two small writes in a row, as Spark sends them, and how long the second one takes."""

import pickle
import socket
import statistics
import time
from collections.abc import Callable

import pytest

from odradek.spark.quick import SentToTasks, acknowledge

HELD_BACK_S = 0.03
"""A kernel acknowledges after 40 ms what nobody answers."""


def waits_s(between: Callable[[], object]) -> list[float]:
    """How long a receiver waits for the second write, if it does something after the first."""
    waits = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
        with sender, receiver:
            for turn in range(40):
                sender.sendall(b"first")
                receiver.recv(100)
                sender.sendall(b"second")
                between()
                began = time.perf_counter()
                receiver.recv(100)
                if turn >= 30:  # a new connection is acknowledged at once
                    waits.append(time.perf_counter() - began)
                receiver.sendall(b"done")
                sender.recv(100)
    return waits


def test_what_was_held_back_comes_at_once() -> None:
    if statistics.median(waits_s(lambda: None)) < HELD_BACK_S:
        pytest.skip("this kernel does not wait to acknowledge")
    assert statistics.median(waits_s(acknowledge)) < HELD_BACK_S / 3


def test_an_object_acknowledges_its_own_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("odradek.spark.quick.acknowledge", lambda: asked.append(True))
    sent = Sent()
    sent.name = "x"
    assert pickle.loads(pickle.dumps(sent)).name == "x"
    assert asked == [True]


class Sent(SentToTasks):
    name = ""
