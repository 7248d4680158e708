"""One run of a command: its properties, its streams, its clock, and the client once it is needed.

What commands share lives here: printing in the chosen format, asking for confirmation, watching.
"""

import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

from odradek.cli.errors import FAILED, Failure, Usage, raise_all, usage
from odradek.cli.properties import resolve_properties
from odradek.cli.records.offsets import RequestedRange, parse_offsets, parse_partitions
from odradek.cli.terminal.output import Section, Table, render_sections, render_table, sections_object
from odradek.cli.terminal.progress import Progress
from odradek.cli.terminal.terminal import Terminal
from odradek.cli.terminal.times import parse_duration_ms
from odradek.core.types import TopicPartition

if TYPE_CHECKING:
    from odradek.cli.requests.cluster_access import ClusterAccess, TopicInfo


_SHOWN_TRIES = 100
_SHOWN_PAUSE_S = 0.05
_SHORTEST_WATCH_S = 0.1


class Session:
    """What a command is given. The client connects when first asked for."""

    def __init__(
        self,
        bootstrap_servers: str | None,
        settings: Sequence[str],
        output_format: str,
        quiet: bool,
        zone: tzinfo | None,
        environment: Mapping[str, str],
        *,
        raw: bool = False,
    ) -> None:
        self.terminal = Terminal(environment, quiet=quiet, raw=raw)
        self.zone = zone
        with usage():
            self.properties = resolve_properties(bootstrap_servers, settings, environment)
        self.format = output_format
        self._cluster: ClusterAccess | None = None

    @property
    def isolation_level(self) -> int:
        return 1 if self.properties["isolation.level"] == "read_committed" else 0

    def now_ms(self) -> int:
        from odradek.runtime.real import RealClock

        return RealClock().now_ms()

    @property
    def cluster(self) -> "ClusterAccess":
        """The cluster, connected to when first used."""
        if self._cluster is None:
            from odradek.cli.requests.cluster_access import ClusterAccess

            self._cluster = ClusterAccess(self.properties)
        return self._cluster

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    # Input

    def offsets(self, text: str) -> RequestedRange:
        with usage():
            return parse_offsets(text, self.now_ms(), self.zone)

    def partitions(self, text: str | None) -> list[int] | None:
        with usage():
            return parse_partitions(text)

    def choose_partitions(self, topic: "TopicInfo", text: str | None) -> list[TopicPartition]:
        """The partitions of a topic that `-p` names, all without it."""
        wanted = self.partitions(text)
        there = topic.topic_partitions
        if wanted is None:
            return there
        missing = sorted(set(wanted) - {tp.partition for tp in there})
        if missing:
            raise Usage(
                f"topic {topic.name} has no partition {missing[0]}",
                f"next: odradek topic describe {topic.name}",
            )
        return [tp for tp in there if tp.partition in wanted]

    # Output

    def table(self, table: Table) -> None:
        with usage():
            self.terminal.data(render_table(table, self.format, escaped=self.terminal.escapes_data))

    def done(self, table: Table, failures: Collection[Failure]) -> None:
        """Show what was done, if anything was, then fail for the rest."""
        if table.rows or not failures:
            self.table(table)
        raise_all(list(failures))

    def sections(self, sections: Sequence[Section]) -> None:
        with usage():
            self.terminal.data(self._render(sections))

    def documents(self, documents: Sequence[Sequence[Section]]) -> None:
        """Several descriptions: blocks in text, one array in JSON."""
        with usage():
            if self.format == "json":
                objects = [sections_object(sections) for sections in documents]
                self.terminal.data(json.dumps(objects, indent=2, ensure_ascii=False) + "\n")
                return
            between = "\n" if self.format in ("text", "wide") else ""
            self.terminal.data(between.join(self._render(sections) for sections in documents))

    def _render(self, sections: Sequence[Section]) -> str:
        return render_sections(sections, self.format, escaped=self.terminal.escapes_data)

    def progress(self, label: str, unit: str, total: int | None = None) -> Progress:
        return Progress(self.terminal, self.now_ms, label, unit, total)

    def wait_until_shown(self, is_shown: Callable[[], bool]) -> None:
        """Wait until brokers show a change that the controller has made: the next command of a script
        shall find it. A cluster that takes longer is not waited for."""
        for _ in range(_SHOWN_TRIES):
            if is_shown():
                return
            threading.Event().wait(_SHOWN_PAUSE_S)
        self.terminal.note("the cluster has accepted the change, but its brokers do not show it yet")

    def watch(self, every: str | None, show: Callable[[], None]) -> None:
        """Show once, or again and again until interrupted."""
        if every is None:
            show()
            return
        with usage():
            pause_s = parse_duration_ms(every) / 1000
        if pause_s < _SHORTEST_WATCH_S:
            raise Usage(f"--watch {every}: at least 100ms")
        try:
            while True:
                if self.terminal.is_screen and self.format in ("text", "wide"):
                    self.terminal.clear()
                show()
                threading.Event().wait(pause_s)
        except KeyboardInterrupt:
            return

    def confirm(self, change: Table, question: str, *, yes: bool, dry_run: bool) -> bool:
        """Show before and after, then ask. False: nothing is to be done (a dry run)."""
        if dry_run:
            self.table(change)
            return False
        if yes:
            return True
        if not self.terminal.can_ask:
            raise Usage(f"not a terminal: pass -y to confirm: {question}", "to look first: --dry-run")
        self.terminal.note(render_table(change, "text").rstrip("\n"))
        if not self.terminal.ask(question):
            self.terminal.note("nothing was changed")
            raise SystemExit(FAILED)
        return True
