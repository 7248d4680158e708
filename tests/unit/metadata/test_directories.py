"""Directories of brokers as the controller knows them: assigned, failed, come back (KIP-858)."""

from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.metadata.image import DIR_UNASSIGNED
from odradek.metadata.records import FeatureLevelRecord
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness

A, B, OTHER = UUID(int=5000), UUID(int=5001), UUID(int=5002)


def with_two_directories(partitions: int = 2) -> Harness:
    h = Harness()
    h.register(log_dirs=[A, B])
    h.heartbeat()
    h.create("t", partitions)
    return h


def partitions(h: Harness) -> dict[int, tuple[int, tuple[UUID, ...]]]:
    return {i: (p.leader, p.directories) for i, p in h.image.topics_by_name["t"].partitions.items()}


def assign(h: Harness, where: dict[int, UUID], *, topic_id: UUID | None = None, **changes: int) -> list[int]:
    types = request_types(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
    topic_id = topic_id or h.image.topics_by_name["t"].id
    request = types.AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=h.image.brokers[1].epoch,
        directories=[
            types.DirectoryData(
                id_=directory,
                topics=[
                    types.TopicData(topic_id=topic_id, partitions=[types.PartitionData(partition_index=i)])
                ],
            )
            for i, directory in where.items()
        ],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    answer = h.call(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request)
    if answer.error_code:
        return [answer.error_code]
    return [p.error_code for d in answer.directories for t in d.topics for p in t.partitions]


def test_a_broker_with_two_directories_chooses_and_says_so() -> None:
    h = with_two_directories()
    assert partitions(h) == {0: (1, (DIR_UNASSIGNED,)), 1: (1, (DIR_UNASSIGNED,))}
    assert assign(h, {0: A, 1: B}) == [0, 0]
    assert partitions(h) == {0: (1, (A,)), 1: (1, (B,))}
    assert assign(h, {0: A}) == [0]
    assert h.records == [], "what is known is not said again"


def test_an_assignment_that_cannot_be_is_refused() -> None:
    h = with_two_directories()
    assert assign(h, {7: A}) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert assign(h, {0: A}, topic_id=UUID(int=9)) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert assign(h, {0: A}, broker_epoch=99) == [ErrorCode.STALE_BROKER_EPOCH]
    h.register(2, process=2)
    assert assign(h, {0: A}, broker_id=2, broker_epoch=h.image.brokers[2].epoch) == [
        ErrorCode.NOT_LEADER_OR_FOLLOWER
    ]
    assert partitions(h) == {0: (1, (DIR_UNASSIGNED,)), 1: (1, (DIR_UNASSIGNED,))}


def test_a_directory_that_failed_leads_nothing_any_more() -> None:
    h = with_two_directories()
    assign(h, {0: A, 1: B})
    h.heartbeat(offline_log_dirs=[B])
    assert partitions(h) == {0: (1, (A,)), 1: (-1, (B,))}
    assert h.image.brokers[1].log_dirs == (A,)
    h.heartbeat(offline_log_dirs=[B])
    assert h.records == [], "it is said with every heartbeat, and recorded once"


def test_a_directory_of_nobody_changes_nothing() -> None:
    h = with_two_directories()
    h.heartbeat(offline_log_dirs=[OTHER])
    assert h.records == []


def test_a_replica_assigned_to_a_failed_directory_does_not_lead() -> None:
    """The assignment was on its way when the directory failed."""
    h = with_two_directories()
    h.heartbeat(offline_log_dirs=[B])
    assert partitions(h)[1][0] == 1, "nobody knows yet where it lies"
    assign(h, {1: B})
    assert partitions(h)[1] == (-1, (B,))


def test_a_replica_that_is_assigned_to_no_directory_yet_leads_on() -> None:
    h = with_two_directories()
    assert assign(h, {0: A}) == [0]
    assert assign(h, {0: DIR_UNASSIGNED}) == [0]
    assert partitions(h)[0] == (1, (DIR_UNASSIGNED,))


def test_before_directories_were_known_none_is_assigned() -> None:
    h = with_two_directories()
    h.apply([FeatureLevelRecord(name="metadata.version", feature_level=16)])
    assert assign(h, {0: A}) == [ErrorCode.UNSUPPORTED_VERSION]


def test_a_restart_leads_what_its_directories_hold_and_nothing_else() -> None:
    h = with_two_directories()
    assign(h, {0: A, 1: B})
    h.heartbeat(want_shut_down=True)
    h.heartbeat(want_shut_down=True)
    h.register(process=2, log_dirs=[A])
    h.heartbeat()
    assert partitions(h) == {0: (1, (A,)), 1: (-1, (B,))}
    h.heartbeat(want_shut_down=True)
    h.heartbeat(want_shut_down=True)
    h.register(process=3, log_dirs=[A, B])
    h.heartbeat()
    assert partitions(h) == {0: (1, (A,)), 1: (1, (B,))}
