"""Creates topics over the wire, and waits until every partition serves."""

import time
import uuid
from collections.abc import Mapping

from tests.support.raw import Connection

LIST_OFFSETS, CREATE_TOPICS = 2, 19
LATEST = -1


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> uuid.UUID:
    with Connection(bootstrap) as connection:
        answer = connection.call(
            CREATE_TOPICS,
            7,
            {
                "topics": [
                    {
                        "name": name,
                        "num_partitions": partitions,
                        "replication_factor": 1,
                        "configs": [{"name": k, "value": v} for k, v in (configs or {}).items()],
                    }
                ],
                "timeout": 30_000,
            },
        ).topics[0]
        assert answer.error_code == 0, f"{answer.error_code!r}: {answer.error_message}"
        wait_until_led(connection, name, partitions)
        topic_id: uuid.UUID = answer.topic_id
        return topic_id


def wait_until_led(connection: Connection, name: str, partitions: int, timeout_s: float = 30) -> None:
    """Until the broker answers for every partition: metadata may name a leader a moment before it leads."""
    deadline = time.monotonic() + timeout_s
    wanted = [
        {"partition_index": i, "current_leader_epoch": -1, "timestamp": LATEST} for i in range(partitions)
    ]
    while True:
        answer = connection.call(
            LIST_OFFSETS,
            7,
            {"replica_id": -1, "isolation_level": 0, "topics": [{"name": name, "partitions": wanted}]},
        )
        codes = [int(p.error_code) for p in answer.topics[0].partitions]
        if not any(codes):
            return
        assert time.monotonic() < deadline, f"{name} is not led: {codes}"
        time.sleep(0.02)
