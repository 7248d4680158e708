"""Every scenario there is: importing a file of them registers its conversations."""

from tests.compat import (
    scenarios_admin,
    scenarios_consumer_groups,
    scenarios_data,
    scenarios_groups,
    scenarios_operations,
    scenarios_transactions,
)
from tests.compat.world import SCENARIOS, World

__all__ = [
    "SCENARIOS",
    "World",
    "scenarios_admin",
    "scenarios_consumer_groups",
    "scenarios_data",
    "scenarios_groups",
    "scenarios_operations",
    "scenarios_transactions",
]
