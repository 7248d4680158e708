"""Checks the data directories before a node opens them, so that an error names the option to change.

The node itself checks what is in them, and which node they belong to.
"""

import os
from collections.abc import Sequence

from odradek.cli.errors import Failure
from odradek.log.names import LOCK, META_PROPERTIES
from odradek.raft.opening import PARTITION_DIR
from odradek.raft.snapshots import BOOTSTRAP_FILE
from odradek.runtime.real import RealDisk

NEXT = "next: odradek start --data-dir DIR"

# What a directory may hold that is new, or whose formatting was cut short.
_UNFORMATTED = frozenset({LOCK, BOOTSTRAP_FILE, PARTITION_DIR, "lost+found"})
_SHOWN_FILES = 3


def check_data_dirs(paths: Sequence[str]) -> list[str]:
    """Warnings about the directories; Failure for the only one if it cannot be used."""
    if len(paths) == 1:
        _check_usable(paths[0])
    return [warning for path in paths for warning in _foreign_files(path)]


def _check_usable(path: str) -> None:
    disk = RealDisk()
    there = path
    while not disk.exists(there) and there != os.path.dirname(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise Failure(f"{path}: {'this' if there == path else there} is a file, not a directory", NEXT)
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        raise Failure(f"{path}: no permission to read and write in {there}", NEXT)


def _foreign_files(path: str) -> list[str]:
    disk = RealDisk()
    names = sorted(disk.listdir(path)) if os.path.isdir(path) else []
    foreign = [name for name in names if name not in _UNFORMATTED]
    if not foreign or META_PROPERTIES in names:
        return []
    shown = ", ".join(foreign[:_SHOWN_FILES]) + (", ..." if len(foreign) > _SHOWN_FILES else "")
    return [f"The data directory {path} has no meta.properties, but holds {shown}"]
