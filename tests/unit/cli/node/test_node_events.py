"""A node's lines in a few words."""

import pytest

from odradek.cli.node.life import Ready
from odradek.cli.node.node_events import event_text, exit_text, ready_text
from odradek.raft.roles import Follower, Leader


def logged(message: str, level: str = "INFO") -> str:
    return f"[2026-11-18 11:07:18,869] {level} {message} (odradek.some.module)"


def test_a_ready_line_is_shortened() -> None:
    line = Ready("127.0.0.1:9093", "MkU3OEVBNTcwNTJENDM2Qk", ("/a b", "/c"), None, 412).text()
    assert ready_text(line) == "ready 127.0.0.1:9093 412 ms"
    assert ready_text("something else") is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (logged(f"Node 1 is now {Leader(4, 1, 0, (1, 2))}"), "leads the quorum, epoch 4"),
        (logged("Node 1 is now Resigned(epoch=4, leader_id=1)"), "resigned as leader of epoch 4"),
        (logged("The controller of node 1 is active at epoch 4"), "active controller, epoch 4"),
        (
            logged("Fencing broker 3 at epoch 17 because its session has timed out."),
            "fenced node 3: its session has timed out",
        ),
        (logged("The broker has been unfenced", "WARN"), "unfenced"),
        (
            logged("Heartbeat failed: REQUEST_TIMED_OUT", "WARN"),
            "warning: Heartbeat failed: REQUEST_TIMED_OUT",
        ),
        (logged("It (really) broke", "ERROR"), "error: It (really) broke"),
        (logged(f"Node 2 is now {Follower(4, 1)}"), None),
        (logged("Stopping: SIGTERM"), None),
        ("  a line of a traceback", None),
    ],
)
def test_an_event_is_said_in_plain_words(line: str, text: str | None) -> None:
    assert event_text(line) == text


@pytest.mark.parametrize(("code", "text"), [(1, "ended with exit code 1"), (-9, "killed by SIGKILL")])
def test_the_end_of_a_process_names_its_cause(code: int, text: str) -> None:
    assert exit_text(code) == text
