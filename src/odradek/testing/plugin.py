"""The pytest plugin: options, marker and fixtures. Nothing heavy is imported before a fixture is used."""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from odradek.testing.kafka import Kafka
    from odradek.testing.server import KafkaServer
    from odradek.testing.servers import Servers

MARKER = "kafka(brokers=1, config={}): the brokers that the `kafka` fixture of this test runs on"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("odradek")
    group.addoption(
        "--kafka-bootstrap",
        metavar="HOST:PORT",
        help="run the tests that use the kafka fixture against this Kafka instead of a broker of their own",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    _keep_asserts_plain(config)


def _keep_asserts_plain(config: pytest.Config) -> None:
    """Take the package off pytest's list of modules whose asserts it rewrites, because one is a plugin.

    The broker's asserts are invariants, not test assertions. Rewriting them would compile the package again
    and triple the time to the first test if bytecode is not cached. pytest has no public way for this;
    without it everything still works.
    """
    hook = getattr(config.pluginmanager, "rewrite_hook", None)
    getattr(hook, "_must_rewrite", set()).discard("odradek")
    getattr(hook, "_marked_for_rewrite_cache", {}).pop("odradek", None)


@pytest.fixture(scope="session")
def _kafka_servers(request: pytest.FixtureRequest) -> "Iterator[Servers]":
    from odradek.testing.servers import Servers

    servers = Servers(request.config.getoption("--kafka-bootstrap"))
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def kafka_server(_kafka_servers: "Servers") -> "KafkaServer":
    """A broker for the whole session: `kafka_server.bootstrap_servers`."""
    return _kafka_servers.shared()


@pytest.fixture
def kafka(request: pytest.FixtureRequest, _kafka_servers: "Servers") -> "Iterator[Kafka]":
    """A broker with topic and group names of this test's own, cleaned up after it."""
    marker = request.node.get_closest_marker("kafka")
    wanted = dict(marker.kwargs) if marker else {}
    brokers, config = wanted.pop("brokers", 1), wanted.pop("config", {})
    if wanted or (marker and marker.args):
        pytest.fail(f"unknown arguments of the kafka marker; it is {MARKER}", pytrace=False)
    if type(brokers) is not int or brokers < 1:
        pytest.fail(f"kafka(brokers={brokers!r}): give a whole number of at least 1", pytrace=False)
    view = _kafka_servers.view(brokers, config, uses_shared="kafka_server" in request.fixturenames)
    request.node.stash[_VIEW] = view
    yield view
    _kafka_servers.take_back(view)


_VIEW = pytest.StashKey["Kafka"]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    view = item.stash.get(_VIEW, None)
    if view is not None and report.when == "call" and report.failed:
        from odradek.testing.report import failure_report

        try:
            report.sections.append(("kafka", failure_report(view)))
        except Exception as e:  # the report of a failure must not hide the failure
            report.sections.append(("kafka", f"could not ask the broker: {e!r}"))
    return report
