"""What the broker knew when a test failed: topic tails, groups, its log. Text for pytest's report."""

from typing import TYPE_CHECKING

from odradek.client.admin import EARLIEST, LATEST

if TYPE_CHECKING:
    from odradek.testing.kafka import Kafka
    from odradek.testing.server import KafkaServer

TAIL_RECORDS = 5
TEXT_CHARACTERS = 60
LOG_LINES = 30


def failure_report(view: "Kafka") -> str:
    """Of what the test made, and of the log since it began: what others left would only mislead."""
    server = view.server
    lines = [f"broker {server.bootstrap_servers}"]
    topics, groups = view.made()
    for topic in sorted(topics):
        lines += _topic(server, topic)
    for group in sorted(groups):
        lines += _group(server, group)
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
        with client.consumer(auto_offset_reset="earliest", max_wait_ms=50) as consumer:
            consumer.assign({tp: max(start, end - TAIL_RECORDS)})
            for record in consumer.poll(1000, TAIL_RECORDS):
                outcome = "committed" if record.offset < stable[tp].offset else "open"
                lines.append(
                    f"  {record.offset} {outcome} key={_short(record.key)} value={_short(record.value)}"
                )
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
