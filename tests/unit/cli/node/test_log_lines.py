"""Log lines in Kafka's shape and as JSON with ECS names."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from odradek.cli.node.log_lines import set_up_logging


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


def test_lines_have_kafkas_shape(root: logging.Logger) -> None:
    out = io.StringIO()
    set_up_logging("text", out)
    logging.getLogger("odradek.broker.node").warning("Node %d started", 1)
    line = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] WARN Node 1 started \(odradek\.broker\.node\)\n"
    assert re.fullmatch(line, out.getvalue())


def test_an_exception_follows_its_line(root: logging.Logger) -> None:
    out = io.StringIO()
    set_up_logging("text", out)
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("x").exception("failed")
    assert "ERROR failed (x)\nTraceback" in out.getvalue()
    assert out.getvalue().endswith("ValueError: broken\n")


def test_json_lines_carry_ecs_names(root: logging.Logger) -> None:
    out = io.StringIO()
    set_up_logging("json", out)
    logging.getLogger("x").info("ready")
    logging.getLogger("x").debug("not shown")
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("x").exception("failed")
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["@timestamp"])
    assert (first["log.level"], first["message"], first["log.logger"]) == ("INFO", "ready", "x")
    assert (second["error.type"], second["error.message"]) == ("ValueError", "broken")
    assert "Traceback" in second["error.stack_trace"]
