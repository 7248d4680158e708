"""What `make soak-replication` runs alone: minutes of kills, cuts and pauses of real processes."""

import os

collect_ignore = (
    []
    if "ODRADEK_SOAK_LEADER_KILLS" in os.environ
    else [
        "test_lost_disks.py",
        "test_network_faults.py",
        "test_replicated_kills.py",
        "test_replicated_restarts.py",
        "test_replicated_zombie.py",
    ]
)
