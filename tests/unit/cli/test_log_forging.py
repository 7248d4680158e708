"""No string of a client's forges a log line: a line end is escaped wherever it stands, a name is quoted."""

import ast
import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import odradek
from odradek.cli.node.log_lines import JsonFormatter, KafkaFormatter
from tests.support.batches import batch
from tests.support.group import Member
from tests.support.node import running
from tests.support.produce import produce
from tests.support.raw import Connection

SOURCE = Path(odradek.__file__).parent
FORGED = "x\n[2026-11-15 20:42:48,123] ERROR forged (odradek)\r\x1b[2K\x85\u2028\u202ey"
# An expression that holds a string of a client's. Names of partitions do not: a topic has a legal name.
CLIENTS = re.compile(
    r"(?:.*\.)?(?:client_id|group_id|group_instance_id|instance_id|member_id|old_id|reason|regex|transactional_id)"
    r"|result\.name|request\.path"
)
CONVERSION = re.compile(r"%(?:[-0-9.]*)([sdrf%])")


class Message(NamedTuple):
    where: str
    template: str
    conversions: list[str]
    arguments: list[str]


def messages() -> Iterator[Message]:
    """Every message that the package logs."""
    for path in sorted(SOURCE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in ("debug", "info", "warning", "error", "exception", "critical")
                and ast.unparse(call.func.value) in ("log", "_log")
                and isinstance(call.args[0], ast.Constant)
            ):
                template = call.args[0].value
                conversions = [c for c in CONVERSION.findall(template) if c != "%"]
                where = f"{path.relative_to(SOURCE)}:{call.lineno}"
                yield Message(where, template, conversions, [ast.unparse(a) for a in call.args[1:]])


MESSAGES = list(messages())


def record(message: str, *args: Any, error: BaseException | None = None) -> logging.LogRecord:
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("odradek.x", logging.WARNING, __file__, 1, message, args, exc_info)


def test_messages_are_found() -> None:
    assert len(MESSAGES) > 100
    assert any("transactional_id" in argument for message in MESSAGES for argument in message.arguments)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.where)
def test_a_planted_line_end_stays_within_its_line(message: Message) -> None:
    planted = [1 if conversion in "df" else FORGED for conversion in message.conversions]
    for formatter in (KafkaFormatter(), JsonFormatter()):
        line = formatter.format(record(message.template, *planted))
        assert len(line.splitlines()) == 1
        assert "\x1b" not in line and "\u202e" not in line
    assert json.loads(line)["message"] == message.template % tuple(planted)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.where)
def test_a_clients_string_is_quoted(message: Message) -> None:
    if any(argument.startswith("*") for argument in message.arguments):
        return  # the peer's address, as the system tells it
    for conversion, argument in zip(message.conversions, message.arguments, strict=True):
        if any(CLIENTS.fullmatch(part) for part in argument.split(" or ")):
            assert conversion == "r", f"{argument} in {message.template!r}"


def test_the_text_of_an_error_forges_no_line() -> None:
    try:
        try:
            raise ValueError(FORGED)
        except ValueError as cause:
            raise RuntimeError(FORGED) from cause
    except RuntimeError as e:
        text = KafkaFormatter().format(record("failed", error=e))
        shown = JsonFormatter().format(record("failed", error=e))
    assert "\n[2026" not in text and len(text.splitlines()) == len(text.split("\n"))
    assert text.count("\nTraceback (most recent call last):\n") == 2
    assert "\nRuntimeError: x\\n[2026" in text and "\nValueError: x\\n[2026" in text
    assert len(shown.splitlines()) == 1
    assert json.loads(shown)["error.message"] == FORGED


def test_clients_cannot_forge_a_line_of_a_nodes_log(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--set", "group.initial.rebalance.delay.ms=0") as node:
        with Connection(node.bootstrap) as connection:
            topics = [{"name": FORGED, "topic_id": None}]
            connection.call(3, 12, {"topics": topics, "allow_auto_topic_creation": True}, client_id=FORGED)
            produce(connection, FORGED, batch([b"x"]))
        with Member(node.bootstrap, FORGED) as member:
            member.stabilise()
            member.leave()
    lines = io.StringIO(node.log()).read().splitlines()
    assert any("group 'x\\n[2026-11-15" in line for line in lines)
    shape = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (INFO|WARN|ERROR) .* \(odradek[.\w]*\)")
    assert [line for line in lines if not shape.fullmatch(line)] == []
    assert [line for line in lines if line.startswith("[2026-11-15 20:42:48,123]")] == []
