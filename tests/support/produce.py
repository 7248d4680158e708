"""Raw produces: one partition, one answer."""

from typing import Any

from tests.support.raw import Connection

PRODUCE = 0


def produce_values(
    topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1, timeout_ms: int = 30_000
) -> dict[str, Any]:
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout": timeout_ms,
        "topic_data": [{"name": topic, "partition_data": [{"index": partition, "records": records}]}],
    }


def produce(connection: Connection, topic: str, records: bytes | None, **options: Any) -> Any:
    """Produce v9 to one partition; the partition's answer."""
    answer = connection.call(PRODUCE, 9, produce_values(topic, records, **options))
    return answer.responses[0].partition_responses[0]
