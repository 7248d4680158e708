"""Auditor: reads everything back over the wire after a restart, and compares it with the history."""

import asyncio
import random
from collections.abc import Sequence
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition
from odradek.records.batch import Record
from odradek.runtime.api import Runtime
from odradek.sim.checkers import logs as checkers
from odradek.sim.checkers.history import CommitLog, History
from odradek.sim.workloads.administering import present_topics
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.sim.workloads.consuming import earliest_offset, fetch_committed, fetch_request, records_from
from odradek.wire.api_keys import ApiKey

PATIENCE_SECONDS = 60.0
RETRY_SECONDS = 0.1
FETCH_BYTES = 1 << 20


class Flushed:
    """What was durable at the last power loss: records by partition, committed offsets by group."""

    def __init__(
        self,
        records: dict[TopicPartition, list[Record]],
        commits: dict[tuple[str, TopicPartition], int],
    ) -> None:
        self.records = {
            tp: {record.offset: record.value or b"" for record in found} for tp, found in records.items()
        }
        self.commits = commits


class NotAvailable(Exception):
    """The node is up, but has not served a request for too long."""


class Auditor:
    """A reader that is not part of the workload."""

    def __init__(
        self,
        runtime: Runtime,
        bootstrap: Sequence[tuple[str, int]],
        history: History,
        partitions: Sequence[TopicPartition],
        groups: Sequence[str],
        topic_ids: dict[str, UUID],
        rng: random.Random,
    ) -> None:
        self._caller = Caller(runtime, bootstrap, "auditor", rng)
        self._history = history
        self._partitions = partitions
        self._groups = groups
        self._topic_ids = topic_ids

    async def audit(self, born: int, flushed: Flushed | None) -> list[str]:
        """Check a node after a restart.

        `born` is the position in the history at which it started. `flushed` is given after a power loss.
        Without it nothing may be missing.
        """
        found = await self._audit_topics()
        for tp in self._partitions:
            found += await self._audit_partition(tp, flushed)
        for group in self._groups:
            found += await self._audit_group(group, born, flushed)
        self._caller.close()
        return found

    async def _audit_topics(self) -> list[str]:
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            asked = self._history.next_place()
            try:
                present = await present_topics(self._caller)
            except NoAnswer as e:
                await self._wait(deadline, f"the topics cannot be listed: {e}")
                continue
            found = checkers.wrong_topics(self._history.topics, present, asked)
            for topic, topic_id in self._topic_ids.items():
                if present.get(topic) != topic_id:
                    found.append(f"topic {topic} was {topic_id} and is {present.get(topic)}")
            return found

    async def _audit_partition(self, tp: TopicPartition, flushed: Flushed | None) -> list[str]:
        history = self._history
        # Records that are acknowledged during the read may be missing in it.
        expected = dict(history.acknowledged.get(tp, {}))
        if flushed is not None:
            expected.update(flushed.records.get(tp, {}))
        present, log_start, log_end = await self._read(tp)
        expected = {offset: value for offset, value in expected.items() if offset >= log_start}
        found = checkers.wrong_start(tp, log_start, history.trims.get(tp, 0))
        found += checkers.missing_records(tp, expected, present)
        found += checkers.holes(tp, present, log_start, log_end)
        found += checkers.invented_records(tp, present, history.sent)
        found += checkers.broken_order(tp, present, history.sent)
        history.survived(tp, present)
        return found

    async def _audit_group(self, group: str, born: int, flushed: Flushed | None) -> list[str]:
        history = self._history
        asked = history.next_place()
        committed = await self._committed(group)
        found: list[str] = []
        for tp in self._partitions:
            log = history.commits.setdefault((group, tp), CommitLog())
            name = f"{group} on {tp}"
            if flushed is None or GROUP_METADATA_TOPIC in history.flushed_topics:
                found += checkers.lost_commits(name, log, committed[tp], asked)
            else:
                least = flushed.commits.get((group, tp), -1)
                found += checkers.lost_flushed_commits(name, log, committed[tp], least)
            found += checkers.zombie_commits(log)
            log.audited(committed[tp], born, keep_generation=flushed is None)
        return found

    async def _read(self, tp: TopicPartition) -> tuple[dict[int, bytes], int, int]:
        """All records from the log start to the first high watermark."""
        present: dict[int, bytes] = {}
        position, log_start, log_end = 0, -1, -1
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while log_end < 0 or position < log_end:
            try:
                request = fetch_request({tp: position}, self._topic_ids, max_wait_ms=0, max_bytes=FETCH_BYTES)
                response = await self._caller.call(ApiKey.FETCH, request, version=12)
                (data,) = response.responses[0].partitions
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    earliest = await earliest_offset(self._caller, tp)
                    if earliest <= position:
                        raise NoAnswer(f"OFFSET_OUT_OF_RANGE at {position}, but the log starts at {earliest}")
                    # The log start has moved: continue there.
                    position = log_start = earliest
                    continue
                if data.error_code:
                    raise NoAnswer(ErrorCode(data.error_code).name)
            except NoAnswer as e:
                await self._wait(deadline, f"{tp} cannot be read: {e}")
                continue
            if log_end < 0:
                log_start, log_end = max(log_start, data.log_start_offset), data.high_watermark
            records = [entry for entry in records_from(data.records, position) if entry[0] < log_end]
            present.update(records)
            if not records and position < log_end:
                await self._wait(
                    deadline, f"{tp} returns nothing at {position}, but the log ends at {log_end}"
                )
            position = records[-1][0] + 1 if records else position
        return (
            {o: value for o, value in present.items() if o >= log_start},
            log_start,
            max(log_end, log_start),
        )

    async def _committed(self, group: str) -> dict[TopicPartition, int]:
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            try:
                return await fetch_committed(self._caller, group, self._partitions, self._topic_ids)
            except NoAnswer as e:
                await self._wait(deadline, f"the offsets of {group} cannot be read: {e}")

    async def _wait(self, deadline: float, complaint: str) -> None:
        if asyncio.get_running_loop().time() > deadline:
            raise NotAvailable(complaint)
        await asyncio.sleep(RETRY_SECONDS)
