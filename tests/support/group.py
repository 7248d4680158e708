"""A member of a classic consumer group, by hand: every request on its own, nothing behind the test's back."""

import struct
import time
from typing import Any

from tests.support.raw import Connection

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
UNKNOWN_MEMBER_ID, MEMBER_ID_REQUIRED = 25, 79
SUBSCRIPTION = ASSIGNMENT = struct.pack(">hii", 0, 0, -1)  # of a consumer, version 0: no topics, no user data


class Member:
    """One member on its own connection. Methods return the response; `join` keeps id and generation."""

    def __init__(self, bootstrap: str, group: str, *, instance_id: str | None = None) -> None:
        self.connection = Connection(bootstrap)
        self.group, self.instance_id = group, instance_id
        self.member_id, self.generation = "", -1
        self.leader = False
        self.members: list[Any] = []
        self._wait_for_coordinator()

    def __enter__(self) -> "Member":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def _wait_for_coordinator(self, timeout_s: float = 30) -> None:
        deadline = time.monotonic() + timeout_s
        while True:
            answer = self.connection.call(
                FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": [self.group]}
            )
            code = int(answer.coordinators[0].error_code)
            if code == 0:
                probe = self.connection.call(HEARTBEAT, 4, {"group_id": self.group, "member_id": "probe"})
                code = int(probe.error_code)
            if code == UNKNOWN_MEMBER_ID:  # while it loads, Apache Kafka answers any heartbeat with NONE
                return
            assert time.monotonic() < deadline, f"no coordinator for {self.group}: {code}"
            time.sleep(0.05)

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }

    def join_values(self, **over: Any) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "session_timeout": 10_000,
            "rebalance_timeout": 10_000,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
            **over,
        }

    def send_join(self, version: int = 9, **over: Any) -> None:
        self.connection.send(JOIN_GROUP, version, self.join_values(**over))

    def receive_join(self, version: int = 9) -> Any:
        answer = self.connection.receive(JOIN_GROUP, version)
        if int(answer.error_code) in (0, MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
        if answer.error_code == 0:
            self.generation = answer.generation_id
            self.leader = answer.leader == answer.member_id
            self.members = list(answer.members)
        return answer

    def join(self, version: int = 9, **over: Any) -> Any:
        """Join, answering MEMBER_ID_REQUIRED as clients do."""
        self.send_join(version, **over)
        answer = self.receive_join(version)
        if int(answer.error_code) == MEMBER_ID_REQUIRED:
            self.send_join(version, **over)
            answer = self.receive_join(version)
        return answer

    def sync(self, assignments: dict[str, bytes] | None = None, version: int = 5, **over: Any) -> Any:
        values = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": m, "assignment": a} for m, a in (assignments or {}).items()],
            **over,
        }
        return self.connection.call(SYNC_GROUP, version, values)

    def heartbeat(self, version: int = 4, **over: Any) -> int:
        values = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            **over,
        }
        return int(self.connection.call(HEARTBEAT, version, values).error_code)

    def leave(self) -> Any:
        members = [{"member_id": self.member_id, "group_instance_id": self.instance_id}]
        return self.connection.call(LEAVE_GROUP, 5, {"group_id": self.group, "members": members})

    def stabilise(self) -> Any:
        """Join and sync as the only member."""
        answer = self.join()
        assert answer.error_code == 0, answer
        return self.sync({self.member_id: ASSIGNMENT})

    def commit(
        self, topic: str, offset: int, *, metadata: str | None = "", version: int = 9, **over: Any
    ) -> int:
        partitions = [
            {
                "partition_index": 0,
                "committed_offset": offset,
                "committed_leader_epoch": -1,
                "committed_metadata": metadata,
            }
        ]
        values = {
            "group_id": self.group,
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "topics": [{"name": topic, "partitions": partitions}],
            **over,
        }
        answer = self.connection.call(OFFSET_COMMIT, version, values)
        return int(answer.topics[0].partitions[0].error_code)

    def committed(self, topic: str, partition: int = 0) -> tuple[int, str | None, int]:
        """(offset, metadata, error code) as OffsetFetch v8 says it."""
        answer = self.connection.call(
            OFFSET_FETCH,
            8,
            {
                "groups": [
                    {"group_id": self.group, "topics": [{"name": topic, "partition_indexes": [partition]}]}
                ]
            },
        )
        group = answer.groups[0]
        assert group.error_code == 0
        row = group.topics[0].partitions[0]
        return row.committed_offset, row.metadata, int(row.error_code)
