"""What the broker knew when a test failed: topics, groups, open transactions, its log. Text for pytest."""

import time
from typing import TYPE_CHECKING

from odradek.client.admin import EARLIEST, LATEST
from odradek.client.fetching import READ_COMMITTED, READ_UNCOMMITTED
from odradek.client.partition_reader import ConsumerRecord
from odradek.core.types import TopicPartition

if TYPE_CHECKING:
    from odradek.testing.kafka import Kafka
    from odradek.testing.server import KafkaServer

TAIL_RECORDS = 5
TEXT_CHARACTERS = 60
LOG_LINES = 30
READ_S = 1.0


def failure_report(view: "Kafka") -> str:
    """Of what the test made, and of the log since it began: what others left would only mislead."""
    server = view.server
    lines = [f"broker {server.bootstrap_servers}"]
    topics, groups = view.made()
    for topic in sorted(topics):
        lines += _topic(server, topic)
    for group in sorted(groups):
        lines += _group(server, group)
    lines += _open_transactions(server, set(topics))
    log = view.log()
    if log:
        lines += ["broker log:", *(f"  {line}" for line in log[-LOG_LINES:])]
    return "\n".join(lines)


def _short(data: bytes | None) -> str:
    text = repr(data)
    return text if len(text) <= TEXT_CHARACTERS else text[:TEXT_CHARACTERS] + "..."


def _topic(server: "KafkaServer", topic: str) -> list[str]:
    client = server.client
    partitions = server.partitions(topic)
    starts = client.call(client.admin.list_offsets, dict.fromkeys(partitions, EARLIEST))
    ends = client.call(client.admin.list_offsets, dict.fromkeys(partitions, LATEST))
    stable = client.call(client.admin.list_offsets, dict.fromkeys(partitions, LATEST), isolation_level=1)
    lines = []
    for tp in partitions:
        start, end = starts[tp].offset, ends[tp].offset
        lines.append(f"{tp}: offsets {start} to {end}")
        if start == end:
            continue
        tail = max(start, end - TAIL_RECORDS)
        committed = {record.offset for record in _read(server, tp, tail, stable[tp].offset, READ_COMMITTED)}
        for record in _read(server, tp, tail, end, READ_UNCOMMITTED):
            decided = record.offset < stable[tp].offset
            outcome = "committed" if record.offset in committed else "aborted" if decided else "open"
            lines.append(f"  {record.offset} {outcome} key={_short(record.key)} value={_short(record.value)}")
    return lines


def _read(
    server: "KafkaServer", tp: TopicPartition, start: int, end: int, isolation_level: int
) -> list[ConsumerRecord]:
    """The records between two offsets; what takes longer than a moment is left out of a report."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + READ_S
    with server.client.consumer(isolation_level=isolation_level, max_wait_ms=50) as consumer:
        consumer.assign({tp: start})
        while (consumer.position(tp) or 0) < end and time.monotonic() < deadline:
            records += consumer.poll(50, TAIL_RECORDS)
    return [record for record in records if record.offset < end]


def _open_transactions(server: "KafkaServer", topics: set[str]) -> list[str]:
    """Those that hold something of the test's topics."""
    lines = []
    for found in server.client.call(server.client.admin.open_transactions):
        held = [f"{t.topic}-{i}" for t in found.topics for i in t.partitions if t.topic in topics]
        if held:
            name, state = found.transactional_id, found.transaction_state
            lines.append(f"transaction of {name}: {state}, holds {', '.join(sorted(held))}")
    return lines


def _group(server: "KafkaServer", group: str) -> list[str]:
    client = server.client
    described = client.call(client.admin.describe_group, group)
    lines = [f"group {group}: {described.group_state}, {len(described.members)} members"]
    committed = client.call(client.admin.committed, group)
    ends = client.call(client.admin.list_offsets, dict.fromkeys(committed, LATEST)) if committed else {}
    for tp, row in sorted(committed.items()):
        behind = max(0, ends[tp].offset - row.committed_offset)
        lines.append(f"  {tp}: committed {row.committed_offset}, {behind} behind")
    return lines
