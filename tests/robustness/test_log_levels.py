"""A level that is set at run time decides what a node logs from then on."""

import time

from tests.support.group import Member
from tests.support.node import NodeProcess, running
from tests.support.raw import Connection

GROUPS = "odradek.coordinators.groups"


def change(node: NodeProcess, operation: int, level: str | None) -> None:
    config = {"name": GROUPS, "config_operation": operation, "value": level}
    resource = {"resource_type": 8, "resource_name": "1", "configs": [config]}
    with Connection(node.bootstrap) as connection:
        answer = connection.call(44, 1, {"resources": [resource], "validate_only": False})
    assert answer.responses[0].error_code == 0, answer


def logged(node: NodeProcess, group: str) -> bool:
    """Whether the node tells of a group that is joined and left."""
    with Member(node.bootstrap, group) as member:
        member.stabilise()
        member.leave()
    time.sleep(0.2)
    return group in node.log()


def test_a_logger_is_silenced_and_heard_again(tmp_path):
    with running(tmp_path / "data") as node:
        assert logged(node, "first")
        change(node, 0, "WARN")
        assert not logged(node, "second")
        change(node, 1, None)
        assert logged(node, "third")
        assert "second" not in node.log()
