"""The consumer: assigned by hand or through a group, it fetches from leaders and hands out records in order.

partition_reader.py keeps the position in each partition, group.py the membership.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from odradek.client.admin import EARLIEST, LATEST, Admin
from odradek.client.client import Client, check, may_pass
from odradek.client.fetching import READ_COMMITTED, READ_UNCOMMITTED, fetch_request
from odradek.client.group import GroupMember
from odradek.client.partition_reader import ConsumerRecord, PartitionReader
from odradek.client.transaction_requests import GroupMetadata
from odradek.client.watching import MovedError
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER, TopicPartition
from odradek.runtime.scope import Scope
from odradek.wire.api_keys import ApiKey

_RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": None}
_OVERTAKEN = frozenset(
    {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}
)


class Consumer:
    """Use with `async with`: `assign` or `subscribe`, then `poll`.

    Offsets are committed by `commit`; with auto_commit also what was handed out before a poll, once per
    interval, when partitions are given up, and at close. While brokers cannot be reached, `lost` says why.
    """

    def __init__(
        self,
        client: Client,
        *,
        group_id: str | None = None,
        isolation_level: int = READ_UNCOMMITTED,
        auto_offset_reset: str = "latest",
        auto_commit: bool = False,
        auto_commit_interval_ms: int = 5_000,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 52_428_800,
        max_partition_bytes: int = 1_048_576,
        **group_options: Any,
    ) -> None:
        self.lost: OSError | None = None
        self._client = client
        self._admin = Admin(client)
        self._group_id = group_id
        self._isolation_level = isolation_level
        self._reset_to = _RESETS[auto_offset_reset]
        self._auto_commit = auto_commit and group_id is not None
        self._auto_commit_s = auto_commit_interval_ms / 1000
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._max_partition_bytes = max_partition_bytes
        self._group_options = group_options
        self._channel = client.new_channel("fetch")
        self._readers: dict[TopicPartition, PartitionReader] = {}
        self._generation = 0
        self._member: GroupMember | None = None
        self._scope: Scope | None = None
        self._fetching: set[int] = set()
        self._finding = False
        self._news = asyncio.Event()
        self._failure: Exception | None = None
        self._commit_due_at: float | None = None
        self._committed: dict[TopicPartition, int] = {}

    async def __aenter__(self) -> "Consumer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # What to read

    def assign(self, partitions: Sequence[TopicPartition] | Mapping[TopicPartition, int]) -> None:
        """Read these: from given offsets, else from the group's, else as auto_offset_reset says."""
        assert self._member is None, "assign cannot be combined with subscribe"
        self._take(list(partitions), partitions if isinstance(partitions, Mapping) else {})

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read what the group gives this member of some topics."""
        assert self._group_id is not None, "a subscription needs a group_id"
        assert self._member is None, "already subscribed"
        self._member = GroupMember(
            self._client,
            self._group_id,
            topics,
            self._on_assigned,
            self._on_revoked,
            **self._group_options,
        )
        self._spawn(self._member.run(), "membership")

    @property
    def assignment(self) -> list[TopicPartition]:
        return list(self._readers)

    @property
    def member_id(self) -> str:
        return "" if self._member is None else self._member.member_id

    @property
    def group_metadata(self) -> GroupMetadata:
        """As which member this consumer reads now, for a transaction that commits its offsets."""
        assert self._group_id is not None, "group_metadata needs a group_id"
        member = self._member
        if member is None:
            return GroupMetadata(self._group_id)
        return GroupMetadata(self._group_id, member.generation_id, member.member_id, member.group_instance_id)

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next record to be handed out; None where it is not known (yet, or any more)."""
        reader = self._readers.get(tp)
        return None if reader is None else reader.position

    def high_watermark(self, tp: TopicPartition) -> int:
        """As of the last fetch, -1 before it."""
        reader = self._readers.get(tp)
        return -1 if reader is None else reader.high_watermark

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._readers[tp].seek(offset)
        self._generation += 1

    def _take(self, partitions: Sequence[TopicPartition], offsets: Mapping[TopicPartition, int]) -> None:
        self._readers = {tp: PartitionReader(tp, offsets.get(tp)) for tp in partitions}
        self._generation += 1
        self._news.set()

    # Reading

    async def poll(self, timeout_ms: float = 1_000, max_records: int = 500) -> list[ConsumerRecord]:
        """Records as soon as there are any; none when the time is up."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            self._commit_when_due()
            records = self._hand_out(max_records)
            if records:
                return records
            self._news.clear()
            self._find_positions()
            self._fetch_more()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                return []

    def _hand_out(self, max_records: int) -> list[ConsumerRecord]:
        out: list[ConsumerRecord] = []
        for reader in self._readers.values():
            out += reader.take(max_records - len(out))
        return out

    def _find_positions(self) -> None:
        lost = [reader for reader in self._readers.values() if reader.position is None]
        if lost and not self._finding:
            self._finding = True
            self._spawn(self._look_up(lost), "positions")

    async def _look_up(self, lost: Sequence[PartitionReader]) -> None:
        """Where to begin: the committed offset, else the reset; the reset after an offset out of range."""
        try:
            found: dict[TopicPartition, int] = {}
            fresh = [reader.tp for reader in lost if reader.reset_to is None]
            if fresh and self._group_id is not None:
                stable = self._isolation_level == READ_COMMITTED
                committed = await self._admin.committed(self._group_id, fresh, require_stable=stable)
                found = {tp: partition.committed_offset for tp, partition in committed.items()}
            resets: dict[TopicPartition, int] = {}
            for reader in lost:
                if reader.tp not in found:
                    to = self._reset_to if reader.reset_to is None else reader.reset_to
                    if to is None:
                        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"no valid offset for {reader.tp}")
                    resets[reader.tp] = to
            if resets:
                listed = await self._admin.list_offsets(resets, isolation_level=self._isolation_level)
                found.update({tp: partition.offset for tp, partition in listed.items()})
            for reader in lost:
                if reader.position is None:
                    reader.seek(found[reader.tp])
                    reader.reset_to = None
        finally:
            self._finding = False
            self._news.set()

    def _fetch_more(self) -> None:
        """Ask every idle leader of partitions whose records have all been handed out."""
        wanted = [reader.tp for reader in self._readers.values() if reader.wants_data]
        for node_id, partitions in self._client.cluster.by_leader(wanted).items():
            if node_id in self._fetching:
                continue
            self._fetching.add(node_id)
            if node_id == NO_LEADER:
                self._spawn(self._find_leaders(partitions), "find leaders")
            else:
                # The request is made now: when the task begins, the assignment may be another one.
                request, max_version = self._fetch_request(partitions)
                work = self._fetch(node_id, partitions, request, max_version, self._generation)
                self._spawn(work, f"fetch from {node_id}")

    async def _find_leaders(self, partitions: Sequence[TopicPartition]) -> None:
        try:
            await self._client.refresh(tp.topic for tp in partitions)
            for tp in partitions:
                code = self._client.cluster.errors.get(tp.topic)
                if code is not None and not code.retriable:
                    raise KafkaError(code, place=f"topic {tp.topic}")
            if any(self._client.cluster.leader(tp) == NO_LEADER for tp in partitions):
                await self._pause()
        except (OSError, KafkaError) as e:
            if not may_pass(e):
                raise
            self._note_loss(e)
            await self._pause()
        finally:
            self._fetching.discard(NO_LEADER)
            self._news.set()

    async def _fetch(
        self,
        node_id: int,
        partitions: Sequence[TopicPartition],
        request: Any,
        max_version: int | None,
        generation: int,
    ) -> None:
        try:
            work = self._client.send(
                ApiKey.FETCH,
                request,
                node_id=node_id,
                channel=self._channel,
                max_version=max_version,
                timeout_ms=self._max_wait_ms + self._client.request_timeout_ms,
            )
            response = await self._client.while_leading(work, node_id, partitions, self._max_wait_ms)
            self.lost = None
            check(response.error_code, place=f"fetch from broker {node_id}")
            if generation == self._generation:
                for topic in response.responses:
                    name = topic.topic or self._client.cluster.names.get(topic.topic_id, "")
                    for answer in topic.partitions:
                        self._on_answer(TopicPartition(name, answer.partition_index), answer)
        except MovedError:
            pass  # the new leaders are known
        except (OSError, KafkaError) as e:
            if not may_pass(e):
                raise
            self._note_loss(e)
            for tp in partitions:
                self._client.forget_leader(tp)
            await self._pause()
        finally:
            self._fetching.discard(node_id)
            self._news.set()

    def _note_loss(self, error: Exception) -> None:
        if isinstance(error, OSError) and self.lost is None:
            self.lost = error

    async def _pause(self) -> None:
        await asyncio.sleep(self._client.backoff_ms(0) / 1000)

    def _fetch_request(self, partitions: Sequence[TopicPartition]) -> tuple[Any, int | None]:
        """The request, and the last version it may be sent in."""
        positions = {tp: self._readers[tp].position for tp in partitions}
        return fetch_request(
            self._client.cluster,
            {tp: position for tp, position in positions.items() if position is not None},
            isolation_level=self._isolation_level,
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            max_partition_bytes=self._max_partition_bytes,
        )

    def _on_answer(self, tp: TopicPartition, answer: Any) -> None:
        reader = self._readers.get(tp)
        if reader is None or not reader.wants_data:
            return
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self._reset_to is not None:
            reader.position, reader.reset_to = None, self._reset_to
        elif answer.error_code:
            try:
                check(answer.error_code, place=f"fetch from {tp} at offset {reader.position}")
            except KafkaError as e:
                self._client.forget_leader(tp)
                if not e.retriable:
                    self._failure = e
        else:
            reader.high_watermark = answer.high_watermark
            reader.last_stable_offset = answer.last_stable_offset
            if answer.records:
                aborted = None
                if self._isolation_level == READ_COMMITTED:
                    aborted = [(t.producer_id, t.first_offset) for t in answer.aborted_transactions or ()]
                reader.feed(answer.records, aborted)

    # Committing

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit given offsets, or the positions: everything that has been handed out."""
        assert self._group_id is not None, "committing needs a group_id"
        offsets = self._positions() if offsets is None else offsets
        if offsets:
            member = self._member
            await self._admin.commit(
                self._group_id,
                offsets,
                generation_id=-1 if member is None else member.generation_id,
                member_id="" if member is None else member.member_id,
                group_instance_id=None if member is None else member.group_instance_id,
            )
            self._committed.update(offsets)

    def _positions(self) -> dict[TopicPartition, int]:
        return {tp: r.position for tp, r in self._readers.items() if r.position is not None}

    def _commit_when_due(self) -> None:
        if not self._auto_commit:
            return
        now = asyncio.get_running_loop().time()
        if self._commit_due_at is None or now >= self._commit_due_at:
            if self._commit_due_at is not None:
                self._spawn(self._commit_quietly(self._positions()), "commit")
            self._commit_due_at = now + self._auto_commit_s

    async def _commit_quietly(self, offsets: Mapping[TopicPartition, int]) -> None:
        """A commit that a rebalance overtook is lost, and with it nothing but the right to skip records."""
        news = {tp: offset for tp, offset in offsets.items() if self._committed.get(tp) != offset}
        try:
            await self.commit(news)
        except KafkaError as e:
            if e.code not in _OVERTAKEN:
                raise

    async def _on_assigned(self, partitions: list[TopicPartition]) -> None:
        self._committed.clear()
        self._take(partitions, {})

    async def _on_revoked(self) -> None:
        positions = self._positions()
        self._take([], {})
        if self._auto_commit:
            await self._commit_quietly(positions)

    # Ending

    async def close(self) -> None:
        """Commit if that is automatic, stop fetching, leave the group."""
        try:
            if self._auto_commit:
                await self._commit_quietly(self._positions())
        finally:
            self._auto_commit = False
            if self._scope is not None:
                scope, self._scope = self._scope, None
                await scope.close()
            self._client.close_channel(self._channel)
        if self._member is not None:
            await self._member.leave()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        if self._scope is None:
            self._scope = Scope(self._on_failure)
        self._scope.spawn(work, name=name)

    def _on_failure(self, error: BaseException) -> None:
        self._failure = error if isinstance(error, Exception) else RuntimeError(str(error))
        self._news.set()
