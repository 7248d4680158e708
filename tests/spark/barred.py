"""The format "barred": Odradek's own, with barriers at every step of the protocol, for tests that kill.

A test arms a step by writing its name into the barrier's folder. The first process to reach that step (or the
first few) says so in a file and waits there, to be killed or released; the next ones go on.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odradek.spark.datasource import OdradekSource
from odradek.spark.ledger import finishing
from odradek.spark.ledger.deciding import Decider
from odradek.spark.sink import participating
from odradek.spark.sink.writers import StreamWriter, Writer, _Writer
from odradek.spark.source import readers as source

STEPS = (
    "source read",
    "write begun",
    "written",
    "after the decision",
    "between the ends",
    "before the decision",
    "in the sweep",
    "committed",
)
"""In the order in which a query is killed there: who sweeps comes after one who has left something open."""
_HELD_S = 120
_held: list[str] = []
"""Where this process has been held."""


def reach(step: str) -> None:
    """Wait here, if this is the step that is armed and it does not hold enough processes yet."""
    folder = Path(os.environ["ODRADEK_BARRIER"])
    armed = _armed(folder)
    if not armed or armed.split("\n")[0] != step or not _enter(folder, int(armed.split("\n")[1])):
        return
    _held.append(step)
    held_until = time.monotonic() + _HELD_S
    while time.monotonic() < held_until and _armed(folder) == armed and not (folder / "released").exists():
        time.sleep(0.01)


def _enter(folder: Path, places: int) -> bool:
    for place in range(places):
        try:
            with (folder / f"reached-{place}").open("x") as file:
                file.write(str(os.getpid()))
            return True
        except FileExistsError:
            continue
    return False


def _armed(folder: Path) -> str:
    """The step, how many it holds, and a number of this arming: to arm anew lets go whoever waits."""
    try:
        return (folder / "step").read_text()
    except FileNotFoundError:
        return ""


def _bar() -> None:
    """Put the barriers in, in this process."""
    begin, finish = participating.Attempt.begin.__func__, participating.Attempt.finish  # type: ignore[attr-defined]
    write, finish_all, fence = Decider._write, Decider.finish, Decider._fence
    commit, commit_job = StreamWriter.commit, Writer.commit
    read, write_task = source._read, _Writer.write_task

    def barred_write_task(self: Any, *args: Any) -> Any:
        """An attempt that was held, and was refused when it went on, says why."""
        try:
            return write_task(self, *args)
        except BaseException as e:
            if _held:
                (Path(os.environ["ODRADEK_BARRIER"]) / "refused").write_text(repr(e))
            raise

    def barred_read(*args: Any) -> Iterator[Any]:
        for batch in read(*args):
            reach("source read")
            yield batch

    async def barred_begin(cls: Any, *args: Any) -> Any:
        attempt = await begin(cls, *args)
        reach("write begun")
        return attempt

    async def barred_finish(self: Any) -> Any:
        participant = await finish(self)
        reach("written")
        return participant

    async def barred_write(self: Any, entry: Any, offsets: Any) -> Any:
        reach("before the decision")
        written = await write(self, entry, offsets)
        reach("after the decision")
        return written

    async def barred_finish_all(self: Any, decision: Any, run: str) -> None:
        """Where this step is armed, the second end is not sent before the first is answered."""
        first, *others = decision.participants or (None,)
        if others and _armed(Path(os.environ["ODRADEK_BARRIER"])).startswith("between the ends\n"):
            await finishing.commit_one(self._client, first, run, self._timeout_s)
            states = await self._describe([p.transactional_id for p in others])
            if any(state.transaction_state == "Ongoing" for state in states.values()):
                reach("between the ends")
        await finish_all(self, decision, run)

    async def barred_fence(self: Any, *args: Any) -> None:
        """What is to be fenced has been listed."""
        reach("in the sweep")
        await fence(self, *args)

    def barred_commit(self: Any, messages: Any, batch: int) -> None:
        commit(self, messages, batch)
        reach("committed")

    def barred_commit_job(self: Any, messages: Any) -> None:
        commit_job(self, messages)
        reach("committed")

    source._read = barred_read
    _Writer.write_task = barred_write_task  # type: ignore[method-assign]
    participating.Attempt.begin = classmethod(barred_begin)  # type: ignore[assignment, method-assign]
    participating.Attempt.finish = barred_finish  # type: ignore[method-assign]
    Decider._write = barred_write  # type: ignore[method-assign]
    Decider.finish = barred_finish_all  # type: ignore[method-assign]
    Decider._fence = barred_fence  # type: ignore[method-assign]
    StreamWriter.commit = barred_commit  # type: ignore[method-assign]
    Writer.commit = barred_commit_job  # type: ignore[method-assign]


class BarredReader(source.StreamReader):
    """Of this module, so that who gets one has the barriers."""


class BarredWriter(Writer):
    """Likewise."""


class BarredSource(OdradekSource):
    @classmethod
    def name(cls) -> str:
        return "barred"

    def streamReader(self, schema: Any) -> Any:
        made = super().streamReader(schema)
        made.__class__ = BarredReader
        return made

    def writer(self, schema: Any, overwrite: bool) -> Any:
        made = super().writer(schema, overwrite)
        made.__class__ = BarredWriter
        return made


if "ODRADEK_BARRIER" in os.environ:  # in drivers and their workers, not in the tests
    _bar()
