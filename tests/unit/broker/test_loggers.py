"""Levels of a node's loggers are described, set and given back to their parents: all of a request or none."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.core.errors import ErrorCode
from odradek.testing.broker import Broker
from odradek.wire.api_keys import ApiKey
from tests.support.raw import Connection
from tests.unit.broker.handlers.admin_node import AdminNode, types_of

LOGGERS = 8
NAME = "odradek.broker.dispatch"
OTHER = "odradek.broker.node"
SET, DELETE = 0, 1


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """Loggers are the process's: what a test changes is changed back."""
    loggers = [logging.getLogger(name) for name in (None, "odradek", NAME, OTHER)]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def alter(*changes: tuple[str, int, str | None], validate_only: bool = False) -> tuple[int, str | None]:
    types = types_of(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    configs = [types.AlterableConfig(name=n, config_operation=op, value=v) for n, op, v in changes]
    resource = types.AlterConfigsResource(resource_type=LOGGERS, resource_name="1", configs=configs)
    request = types.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (answer,) = AdminNode().ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1).responses
    assert (answer.resource_type, answer.resource_name) == (LOGGERS, "1")
    return answer.error_code, answer.error_message


def described(*names: str) -> dict[str, str]:
    types = types_of(ApiKey.DESCRIBE_CONFIGS)
    resource = types.DescribeConfigsResource(
        resource_type=LOGGERS, resource_name="1", configuration_keys=list(names) or None
    )
    request: Any = types.DescribeConfigsRequest(resources=[resource])
    (answer,) = AdminNode().ask(ApiKey.DESCRIBE_CONFIGS, request, 4).results
    assert answer.error_code == 0
    assert {(e.config_source, e.read_only, e.documentation) for e in answer.configs} <= {(6, False, "")}
    return {entry.name: entry.value for entry in answer.configs}


def test_a_node_that_stops_leaves_the_levels_as_they_were() -> None:
    logger = logging.getLogger(NAME)
    before = logger.level
    with Broker() as broker, Connection(broker.bootstrap_servers) as connection:
        change = {"name": NAME, "config_operation": SET, "value": "FATAL"}
        resource = {"resource_type": LOGGERS, "resource_name": "1", "configs": [change]}
        answer = connection.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
        assert answer.responses[0].error_code == 0
        assert logger.level == logging.CRITICAL
    assert logger.level == before


def test_a_level_is_set_and_taken_back() -> None:
    logger = logging.getLogger(NAME)
    assert alter((NAME, SET, "TRACE")) == (0, None)
    assert logger.isEnabledFor(5)
    assert described(NAME) == {NAME: "TRACE"}
    assert alter((NAME, SET, "FATAL")) == (0, None)
    assert not logger.isEnabledFor(logging.ERROR)
    assert alter(("odradek", SET, "WARN"), (NAME, DELETE, None)) == (0, None)
    assert logger.getEffectiveLevel() == logging.WARNING
    assert described(NAME, "odradek") == {NAME: "WARN", "odradek": "WARN"}


def test_the_root_is_set_and_described_by_its_name() -> None:
    assert alter(("root", SET, "ERROR")) == (0, None)
    assert logging.getLogger().level == logging.ERROR
    assert described("root") == {"root": "ERROR"}


def test_all_loggers_of_the_node_are_described_and_nobody_elses() -> None:
    logging.getLogger("somebody.else")
    found = described()
    assert {"root", NAME, OTHER} <= found.keys()
    assert all(name == "root" or name.split(".")[0] == "odradek" for name in found)
    assert described("somebody.else", "odradek.no.such") == {}


def test_nothing_is_changed_where_one_change_is_refused_or_none_is_wanted() -> None:
    before = logging.getLogger(NAME).level
    code, message = alter((NAME, SET, "DEBUG"), ("odradek.no.such", SET, "DEBUG"))
    assert (code, message) == (ErrorCode.INVALID_CONFIG, "Logger odradek.no.such does not exist!")
    assert alter((NAME, SET, "DEBUG"), (NAME, SET, "INFO"))[0] == ErrorCode.INVALID_REQUEST
    assert alter((NAME, SET, "DEBUG"), validate_only=True) == (0, None)
    assert logging.getLogger(NAME).level == before
