"""`odradek demo`: exactly-once processing while driver and broker are killed. odradek.spark.demo runs it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

from odradek.cli.commands.prove import require_spark
from odradek.cli.declaring import Noun, option
from odradek.cli.errors import Failure, FoundProblem, Usage
from odradek.cli.options import command
from odradek.cli.session import Session
from odradek.cli.terminal.demo_view import DemoView
from odradek.cli.terminal.output import Section, Table, columns

if TYPE_CHECKING:
    from odradek.spark.demo.director import Director, Outcome

_KILLS = columns("TIME# KILLED PID# WHEN")
_LOG_LINES = 15
_TERMINATED = 128 + signal.SIGTERM


root = Noun()


@command(root, "demo", connects=False)
def demo(
    session: Session,
    orders: Annotated[
        int, option("--orders", min=100, metavar="COUNT", help="How many orders to produce.")
    ] = 20_000,
    rate: Annotated[int, option("--rate", min=10, metavar="COUNT", help="Orders per second.")] = 400,
    seed: Annotated[int, option("--seed", metavar="SEED", help="Seed of the random orders.")] = 0,
    driver_kills: Annotated[
        int, option("--driver-kills", min=0, metavar="COUNT", help="How often to kill Spark's driver.")
    ] = 3,
    broker_kills: Annotated[
        int, option("--broker-kills", min=0, metavar="COUNT", help="How often to kill the broker.")
    ] = 2,
    folder: Annotated[
        Path | None,
        option(
            "--dir",
            metavar="DIR",
            help="Keep data, pipeline, checkpoint and logs in this new folder. [default: keep nothing]",
            show_default=False,
        ),
    ] = None,
    picture: Annotated[
        Path, option("--picture", metavar="FILE", help="Where to write the picture of the run (SVG).")
    ] = Path("demo.svg"),
) -> None:
    """Process a stream of orders exactly once while Spark's driver and the broker are killed.

    Starts a broker, a generator of orders, and Spark. Spark enriches the orders, and sums them by window and
    region. Driver and broker are killed with SIGKILL in the middle of batches. At the end, the output is read
    and compared with the input. Exits with 3 if there is a finding. Needs pyspark.
    """
    require_spark()
    from odradek.spark.demo.director import Audience, Director, Place, Plan

    if folder is not None and folder.exists():
        raise Usage(f"{folder} already exists")
    if not picture.parent.is_dir():
        raise Usage(f"--picture {picture}: there is no folder {picture.parent}")
    view = DemoView(session.terminal, {"driver": driver_kills, "broker": broker_kills})
    with _folder(folder) as place:
        director = Director(
            Plan(orders, rate, seed, driver_kills, broker_kills),
            Place([sys.executable, "-m", "odradek.cli.node.tethered"], place, _environment(place)),
            Audience(view.tell, view.show),
        )
        outcome = _run(director, view)
    _show(session, outcome, picture)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True)
        yield given.resolve()
        return
    with TemporaryDirectory(prefix="odradek-demo-") as made:
        yield Path(made).resolve()


def _environment(folder: Path) -> dict[str, str]:
    """Of the processes: the package's Java, in the mood for short lives, and nothing of another Spark."""
    from odradek.spark import worker_python
    from odradek.spark.demo.stage import SCRATCH
    from odradek.spark.java import packaged_java

    scratch = folder / SCRATCH
    scratch.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    java = f'-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData "-Djava.io.tmpdir={scratch}"'
    python = {"PYSPARK_PYTHON": worker_python.find()}
    return {**kept, **packaged_java(), **python, "JDK_JAVA_OPTIONS": java, "TMPDIR": str(scratch)}


def _run(director: "Director", view: DemoView) -> "Outcome":
    import asyncio

    from odradek.spark.demo.processes import ProcessError

    async def run() -> "Outcome":
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await director.run()

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise SystemExit(_TERMINATED) from None
    except ProcessError as e:
        said = e.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        raise Failure([f"{e}; its log ends with:", *(f"  {line}" for line in said)]) from e
    finally:
        view.clear()


def _show(session: Session, outcome: "Outcome", picture: Path) -> None:
    from odradek.spark.demo.picture import svg

    picture.write_text(svg(outcome.story, outcome.proof, outcome.elapsed_s))
    proof, story = outcome.proof, outcome.story
    drivers, brokers = story.killed("driver"), story.killed("broker")
    facts = {
        "orders": story.orders,
        "inputs": proof.inputs.found,
        "outputs": proof.enriched.found,
        "windows": proof.windows.found,
        "windows_open": proof.windows_open,
        "driver_kills": drivers,
        "broker_kills": brokers,
        "batches": len(story.batches),
        "aborted": proof.aborted,
        "open_transactions": proof.open_transactions,
        "duplicates": proof.duplicates,
        "lost": proof.lost,
        "wrong": sum(tally.wrong + tally.unexpected for tally in proof.tallies.values()),
        "prove_eos": outcome.eos["proven"],
        "seconds": round(outcome.elapsed_s, 1),
        "picture": str(picture),
        "proven": not outcome.findings,
    }
    rows = [[round(kill.at_s, 1), kill.target, kill.pid, kill.told] for kill in story.kills]
    session.sections([Section("kills", Table(_KILLS, rows)), Section("proof", facts)])
    if outcome.findings:
        raise FoundProblem("; ".join(outcome.findings))
    session.terminal.note(
        f"proven: {proof.inputs.found:,} orders in, {proof.enriched.found:,} out, {proof.windows.found:,} "
        f"windows correct, duplicates: 0, lost: 0; killed the driver {drivers} times, the broker {brokers}"
    )
