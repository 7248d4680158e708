"""In which order, and in which portions, xdist's workers get the tests.

Long chains first: the tests of one group (a Spark, an Apache broker) run one after another in one worker,
and the whole run is not shorter than the longest of them. Then the folders with tests of many seconds, one
test at a time. Then everything else, one file at a time: what a file prepares for all of its tests is
prepared once, not in every worker.
"""

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer

CHAINS: Final = ("spark", "spark-kills", "spark-programs", "apache")
"""xdist groups, the longest first. Groups that are not named here are as short as files are."""
SLOW: Final = (
    "tests/robustness/",
    "tests/sim/",
    "tests/property/",
    "tests/cluster/",
    "tests/spark/",
    "tests/peer/",
)
"""Folders whose tests are handed out one at a time."""


class Scheduling:
    @pytest.hookimpl(trylast=True)  # when all groups are known
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if hasattr(config, "workerinput"):
            items.sort(key=lambda item: turn(item.nodeid, group_of(item)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: "Producer") -> Any:
        if config.getvalue("dist") != "loadgroup":
            return None
        from xdist.scheduler import LoadGroupScheduling

        class Portions(LoadGroupScheduling):
            def _split_scope(self, nodeid: str) -> str:
                return portion(nodeid, super()._split_scope(nodeid))

        config.option.loadscopereorder = False  # our order stands
        return Portions(config, log)


def group_of(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker else ""


def turn(nodeid: str, group: str) -> int:
    """Whose turn it is: the least comes first."""
    if group in CHAINS:
        return CHAINS.index(group)
    return len(CHAINS) + (not nodeid.startswith(SLOW))


def portion(nodeid: str, group: str) -> str:
    """What is handed out as one: a group that was asked for, a test, or a file."""
    if group != nodeid or nodeid.startswith(SLOW):
        return group
    return nodeid.partition("::")[0]
