"""Fixtures that every black-box test shares: the broker under test and names that no other test uses.

ODRADEK_TEST_BOOTSTRAP=HOST:PORT runs the same tests against any other broker; against Apache Kafka they
must pass too, which is how we know that they are right.
"""

import gc
import os
import signal
import uuid
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.support import peer
from tests.support.durations import Durations
from tests.support.lite import skip_what_lacks_spark
from tests.support.node import running
from tests.support.raw import Connection
from tests.support.scheduling import Scheduling
from tests.support.topics import create_topic


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "apache: needs java and Apache Kafka's jars; skipped without them")
    config.pluginmanager.register(Durations(), "durations")
    config.pluginmanager.register(Scheduling(), "scheduling")
    if os.environ.get("ODRADEK_REQUIRE_KERNEL") == "1":
        _require_kernel()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background of a shell: what we start must be able to be interrupted all the same.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _require_kernel() -> None:
    """Where a compiler is at hand, as in CI, tests on the slow twin of the kernel would prove too little."""
    from odradek.records.kernel import NATIVE

    if not NATIVE:
        raise pytest.UsageError("ODRADEK_REQUIRE_KERNEL=1, but the record kernel was not built")


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = peer.missing()
    for item in items:
        if item.get_closest_marker("apache"):
            if not item.get_closest_marker("xdist_group"):
                item.add_marker(pytest.mark.xdist_group("apache"))
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Ten thousand collected tests stay to the end: the collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    skip_what_lacks_spark(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    skip_what_lacks_spark(report)
    return report


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the broker under test: one node for all tests of this worker."""
    given = os.environ.get("ODRADEK_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    with running(tmp_path_factory.mktemp("node") / "data") as node:
        yield node.bootstrap


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Names for topics and groups that no other test uses."""
    return lambda prefix="t": f"{prefix}-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def raw(bootstrap: str) -> Iterator[Connection]:
    with Connection(bootstrap) as connection:
        yield connection


@pytest.fixture
def make_topic(bootstrap: str, unique: Callable[[str], str]) -> Callable[..., str]:
    """Creates a topic and waits for its leaders; configs are given with _ for a dot."""

    def make(partitions: int = 1, prefix: str = "t", **configs: object) -> str:
        name = unique(prefix)
        create_topic(bootstrap, name, partitions, {k.replace("_", "."): str(v) for k, v in configs.items()})
        return name

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    return make_topic()
