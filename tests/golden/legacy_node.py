"""A node whose partitions were given old segments while it was down."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odradek.testing.broker import Broker
from tests.golden import loader
from tests.support.topics import create_topic

TOPICS = [name.removesuffix("-0") for name in sorted(loader.legacy())]


@contextmanager
def broker_with_old_segments(path: Path) -> Iterator[Broker]:
    old = path / "old"
    loader.unpack("legacy", old)
    with Broker(data_dir=str(path / "data")) as running:
        for topic in TOPICS:
            configs = {"cleanup.policy": "compact"} if topic.endswith(("cleaned", "upgraded")) else {}
            create_topic(running.bootstrap_servers, topic, 1, configs)
        running.stop()
        for topic in TOPICS:
            _replace(path / "data" / f"{topic}-0", old / f"{topic}-0")
        (path / "data" / ".kafka_cleanshutdown").unlink()
        running.start()
        yield running


def _replace(partition: Path, old: Path) -> None:
    for path in partition.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in old.iterdir():
        shutil.copy(path, partition / path.name)
