"""Requests of the quorum from one replica to another, over the bytes of every version that both know."""

from typing import Any
from uuid import UUID

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import METADATA_TOPIC
from odradek.raft import messages as m
from odradek.raft.answering import request_of, response_of
from odradek.raft.asking import Asker
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voters import ReplicaKey, VoterEndpoint
from odradek.records.batch import build_batch
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_decoder, request_encoder, response_decoder, response_encoder

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
ASKER = Asker(CLUSTER, "CONTROLLER", max_fetch_bytes=1 << 20, max_snapshot_bytes=1 << 20)
HERE, THERE = ReplicaKey(1, UUID(int=101)), ReplicaKey(2, UUID(int=102))
ENDPOINTS = (VoterEndpoint("CONTROLLER", "localhost", 9093),)
SNAPSHOT = SnapshotId(100, 3)
E = ErrorCode.NONE

REQUESTS: dict[ApiKey, m.Request] = {
    ApiKey.VOTE: m.VoteRequest(5, HERE, THERE, 4, 77, True),
    ApiKey.BEGIN_QUORUM_EPOCH: m.BeginQuorumEpochRequest(1, 5, THERE, ENDPOINTS),
    ApiKey.END_QUORUM_EPOCH: m.EndQuorumEpochRequest(1, 5, (THERE, HERE), ENDPOINTS),
    ApiKey.FETCH: m.FetchRequest(HERE, 5, 77, 4, 500, 70, True),
    ApiKey.FETCH_SNAPSHOT: m.FetchSnapshotRequest(HERE, 5, SNAPSHOT, 4096),
    ApiKey.ADD_RAFT_VOTER: m.AddVoterRequest(THERE, ENDPOINTS, 1000, False),
    ApiKey.REMOVE_RAFT_VOTER: m.RemoveVoterRequest(THERE),
    ApiKey.UPDATE_RAFT_VOTER: m.UpdateVoterRequest(5, THERE, ENDPOINTS, 0, 1),
}
NEWEST = {
    ApiKey.VOTE: 2,
    ApiKey.BEGIN_QUORUM_EPOCH: 1,
    ApiKey.END_QUORUM_EPOCH: 1,
    ApiKey.FETCH: 18,
    ApiKey.FETCH_SNAPSHOT: 1,
    ApiKey.ADD_RAFT_VOTER: 1,
    ApiKey.REMOVE_RAFT_VOTER: 0,
    ApiKey.UPDATE_RAFT_VOTER: 0,
}
ANSWERS: dict[ApiKey, m.AnswerBody] = {
    ApiKey.VOTE: m.VoteAnswer(E, 2, 5, True, ENDPOINTS),
    ApiKey.BEGIN_QUORUM_EPOCH: m.EpochAnswer(ErrorCode.FENCED_LEADER_EPOCH, 2, 6, ENDPOINTS),
    ApiKey.END_QUORUM_EPOCH: m.EpochAnswer(E, 2, 5, ENDPOINTS),
    ApiKey.FETCH_SNAPSHOT: m.FetchSnapshotAnswer(E, 2, 5, SNAPSHOT, 9, 4, 5, ENDPOINTS, b"bytes"),
    ApiKey.ADD_RAFT_VOTER: m.VoterChangeAnswer(ErrorCode.DUPLICATE_VOTER, "it votes already"),
    ApiKey.REMOVE_RAFT_VOTER: m.VoterChangeAnswer(ErrorCode.VOTER_NOT_FOUND, "who?"),
    ApiKey.UPDATE_RAFT_VOTER: m.VoterChangeAnswer(E, None, 2, 5, ENDPOINTS),
}


def sent(api_key: ApiKey, version: int) -> Any:
    """What the other side gets to see of a request."""
    key, message = ASKER.message(REQUESTS[api_key])
    assert key is api_key
    return request_decoder(api_key, version)(request_encoder(api_key, version)(message), 0)[0]


def answered(api_key: ApiKey, version: int, answer: m.AnswerBody, data: bytes = b"") -> m.AnswerBody:
    encoded = response_encoder(api_key, version)(response_of(api_key, answer, data))
    return ASKER.answer(REQUESTS[api_key], response_decoder(api_key, version)(encoded, 0)[0])


@pytest.mark.parametrize("api_key", REQUESTS, ids=lambda key: key.name)
def test_a_request_arrives_as_it_was_sent(api_key: ApiKey) -> None:
    version = NEWEST[api_key]
    assert request_of(api_key, version, sent(api_key, version), CLUSTER) == REQUESTS[api_key]


@pytest.mark.parametrize("api_key", ANSWERS, ids=lambda key: key.name)
def test_an_answer_arrives_as_it_was_given(api_key: ApiKey) -> None:
    answer = ANSWERS[api_key]
    data = answer.data if isinstance(answer, m.FetchSnapshotAnswer) else b""
    assert answered(api_key, NEWEST[api_key], answer, data) == answer


def test_older_versions_lack_what_they_cannot_say() -> None:
    vote = request_of(ApiKey.VOTE, 0, sent(ApiKey.VOTE, 0), CLUSTER)
    assert vote == m.VoteRequest(5, ReplicaKey(1), None, 4, 77, False)
    end = request_of(ApiKey.END_QUORUM_EPOCH, 0, sent(ApiKey.END_QUORUM_EPOCH, 0), CLUSTER)
    assert end == m.EndQuorumEpochRequest(1, 5, (ReplicaKey(2), ReplicaKey(1)))
    fetch = request_of(ApiKey.FETCH, 17, sent(ApiKey.FETCH, 17), CLUSTER)
    assert fetch == m.FetchRequest(HERE, 5, 77, 4, 500)
    assert answered(ApiKey.VOTE, 0, ANSWERS[ApiKey.VOTE]) == m.VoteAnswer(E, 2, 5, True)


def test_fetched_records_arrive_batch_by_batch() -> None:
    first = bytes(build_batch([(7, None, b"a", ()), (7, None, b"b", ())], base_offset=77, leader_epoch=4))
    second = bytes(build_batch([(8, None, b"c", ())], base_offset=79, leader_epoch=5))
    found = answered(ApiKey.FETCH, 18, m.FetchAnswer(E, 2, 5, 80, 0, endpoints=ENDPOINTS), first + second)
    assert isinstance(found, m.FetchAnswer)
    assert found.batches == (m.BatchInfo(77, 79, 4, (), first), m.BatchInfo(79, 80, 5, (), second))
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (2, 5, 80)
    assert found.endpoints == ENDPOINTS


def test_a_fetch_may_be_answered_with_a_divergence_or_a_snapshot() -> None:
    diverging = m.FetchAnswer(E, 2, 5, 80, 0, diverging=m.EpochEnd(3, 60), endpoints=ENDPOINTS)
    assert answered(ApiKey.FETCH, 17, diverging) == diverging
    snapshot = m.FetchAnswer(E, 2, 5, 80, 0, snapshot_id=SNAPSHOT, endpoints=ENDPOINTS)
    assert answered(ApiKey.FETCH, 17, snapshot) == snapshot


@pytest.mark.parametrize("api_key", REQUESTS, ids=lambda key: key.name)
def test_another_clusters_request_is_refused(api_key: ApiKey) -> None:
    with pytest.raises(KafkaError) as refused:
        request_of(api_key, NEWEST[api_key], sent(api_key, NEWEST[api_key]), "another")
    assert refused.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_request_without_a_cluster_is_taken() -> None:
    request = sent(ApiKey.VOTE, 2)
    request.cluster_id = None
    assert request_of(ApiKey.VOTE, 2, request, CLUSTER) == REQUESTS[ApiKey.VOTE]


@pytest.mark.parametrize("api_key", [ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH])
def test_only_the_metadata_log_has_a_quorum(api_key: ApiKey) -> None:
    request = sent(api_key, NEWEST[api_key])
    request.topics[0].topic_name = "orders"
    with pytest.raises(KafkaError) as refused:
        request_of(api_key, NEWEST[api_key], request, CLUSTER)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert METADATA_TOPIC != "orders"


def test_a_fetch_by_name_is_refused_as_apache_refuses_it() -> None:
    with pytest.raises(KafkaError) as refused:
        request_of(ApiKey.FETCH, 12, sent(ApiKey.FETCH, 12), CLUSTER)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
