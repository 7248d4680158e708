"""What comes out of a step as lines of text, in the order in which a driver carries it out."""

from odradek.core.errors import ErrorCode
from odradek.raft import messages as m
from odradek.raft.quorum_records import KRaftVersion, LeaderChange, QuorumRecord
from odradek.raft.ready import Append, Ready
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voters import ReplicaKey, VoterSet


def render(ready: Ready) -> list[str]:
    lines = []
    if ready.persist is not None:
        state = ready.persist
        lines.append(f"persist epoch {state.leader_epoch} leader {state.leader_id} voted {state.voted_id}")
    if ready.truncate is not None:
        lines.append(f"truncate to {ready.truncate}")
    if ready.reset is not None:
        lines.append(f"reset to {_snapshot(ready.reset)}")
    lines += [_append(append) for append in ready.appends]
    lines += [f"send {send.to}: {_message(send.request)}" for send in ready.sends]
    lines += [f"answer {answer.token}: {_message(answer.answer)}" for answer in ready.answers]
    if ready.high_watermark is not None:
        lines.append(f"high watermark {ready.high_watermark}")
    if ready.begin_snapshot is not None:
        lines.append(f"begin snapshot {_snapshot(ready.begin_snapshot)}")
    if ready.finish_snapshot is not None:
        lines.append(f"finish snapshot {_snapshot(ready.finish_snapshot)}")
    if ready.drop_snapshot:
        lines.append("drop snapshot")
    if ready.may_vote:
        lines.append("may vote")
    return lines


def _append(append: Append) -> str:
    what = "fetched" if append.batch is not None else str(append.tag)
    if append.control:
        what = ", ".join(_record(record) for record in append.control)
    return f"append {append.base_offset}..{append.base_offset + append.records}@{append.epoch} {what}"


def _record(record: QuorumRecord) -> str:
    if isinstance(record, LeaderChange):
        return f"LeaderChange({record.leader_id} granted by {_ids(record.granting_voters)})"
    if isinstance(record, KRaftVersion):
        return f"KRaftVersion({record.level})"
    return f"Voters({_voters(record.voters)})"


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(str(n) for n in ids)


def _voters(voters: VoterSet) -> str:
    return ",".join(_key(voter.key) for voter in voters.voters)


def _key(key: ReplicaKey) -> str:
    number = key.directory_id.int
    return f"{key.id}" if number == key.id else f"{key.id}/{number or '-'}"


def _snapshot(snapshot_id: SnapshotId) -> str:
    return f"{snapshot_id.end_offset}:{snapshot_id.epoch}"


def _message(message: m.Request | m.AnswerBody) -> str:
    """Its name and the fields that say something; endpoints are left out."""
    name = type(message).__name__.removesuffix("Request").removesuffix("Answer")
    fields = [
        text
        for field, value in message._asdict().items()
        if field not in ("endpoints", "waits_for_high_watermark", "log_start_offset", "data")
        and (text := _field(field, value))
    ]
    return " ".join([name, *fields])


def _field(field: str, value: object) -> str:
    if isinstance(value, ErrorCode):
        return "" if value is ErrorCode.NONE else value.name
    if value is None or value is False or value == () or field in ("batches", "max_wait_ms"):
        return ""
    if isinstance(value, ReplicaKey):
        return f"{field}={_key(value)}"
    if isinstance(value, SnapshotId):
        return f"{field}={_snapshot(value)}"
    if isinstance(value, m.EpochEnd):
        return f"{field}={value.epoch}:{value.end_offset}"
    if isinstance(value, tuple):
        return f"{field}={','.join(_key(key) for key in value)}"
    return field if value is True else f"{field}={value!r}" if isinstance(value, str) else f"{field}={value}"
