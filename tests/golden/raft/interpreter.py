"""Scripts for the quorum's machine: a line is an event, what follows `----` is what came out of the step.

    new 1 voters=1,2,3 log=0..5 epochs=1@0,2@3      a replica and what its disk has
    tick 1000                                       time passes, then the machine is stepped
    receive a vote from=2 epoch=3 last=2 end=5      a request with the token `a`
    answer 2 granted=yes                            to the last request that was sent to node 2

Words are as in odradek.raft.messages; what is left out is what a well-behaved peer would say.
"""

from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import NO_LEADER, ZERO_UUID
from odradek.raft import events as e
from odradek.raft import messages as m
from odradek.raft.control import QuorumFacts
from odradek.raft.log_state import LogView
from odradek.raft.node import RaftNode
from odradek.raft.quorum_records import QuorumRecord, Voters
from odradek.raft.quorum_state import QuorumState
from odradek.raft.snapshots import SnapshotId
from odradek.raft.times import RaftTimes
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from tests.golden.raft.rendering import render

Words = dict[str, str]


def directory(node_id: int) -> UUID:
    return UUID(int=max(node_id, 0))


def key(text: str, *, known: bool = True) -> ReplicaKey:
    """`2`, or `2/9` for node 2 with another directory, or `2/-` for one that does not name it."""
    node, _, other = text.partition("/")
    if other == "-" or not known:
        return ReplicaKey(int(node))
    return ReplicaKey(int(node), directory(int(other or node)))


def endpoints(node_id: int) -> tuple[VoterEndpoint, ...]:
    return (VoterEndpoint("CONTROLLER", f"node{node_id}", 9093),)


def voter_set(text: str, kraft_version: int) -> VoterSet:
    keys = [key(part, known=kraft_version > 0) for part in text.split(",")]
    return VoterSet(Voter(k.id, k.directory_id, endpoints(k.id)) for k in keys)


def snapshot_id(text: str) -> SnapshotId:
    end, _, epoch = text.partition(":")
    return SnapshotId(int(end), int(epoch))


class Script:
    """One replica. Draws nothing: every random timeout is the shortest."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.node: RaftNode | None = None
        self._sent: dict[int, m.Request] = {}
        self._kraft_version = 0

    def line(self, text: str) -> str:
        verb, *rest = text.split()
        plain = [word for word in rest if "=" not in word]
        words = dict(word.split("=", 1) for word in rest if "=" in word)
        if verb == "new":
            self._new(int(plain[0]), words)
            return self._state()
        return self._step(self._event(verb, plain, words))

    def _new(self, node_id: int, w: Words) -> None:
        self._kraft_version = int(w.get("kraft", 0))
        voters = voter_set(w["voters"], self._kraft_version) if "voters" in w else None
        start, _, end = w.get("log", "0..0").partition("..")
        snapshot = snapshot_id(w["snapshot"]) if "snapshot" in w else None
        history = VoterHistory(None if self._kraft_version else voters)
        if self._kraft_version and voters is not None:
            history.reset(int(w.get("recorded", int(start) - 1)) + 1, QuorumFacts(1, voters))
        epochs = [part.split("@") for part in w.get("epochs", "").split(",") if part]
        voted = int(w.get("voted", -1))
        self.node = RaftNode(
            node_id,
            directory(int(w.get("directory", node_id))),
            state=QuorumState(
                int(w.get("leader", NO_LEADER)),
                int(w.get("epoch", 0)),
                voted,
                ZERO_UUID if voted < 0 else directory(voted),
            ),
            log=LogView(
                int(start),
                int(end),
                int(w.get("flushed", end)),
                tuple((int(a), int(b)) for a, b in epochs),
                snapshot.epoch if snapshot is not None and snapshot.end_offset == int(start) else 0,
                snapshot,
            ),
            history=history,
            times=RaftTimes(),
            draw=lambda n: 0,
            endpoints=endpoints(node_id) if w.get("endpoints") != "none" else (),
            bootstrap_servers=int(w.get("bootstrap", 0)),
            may_vote=w.get("may_vote", "yes") == "yes",
            auto_join=w.get("auto_join") == "yes",
        )

    def _step(self, event: e.Event) -> str:
        assert self.node is not None, "begin with `new`"
        try:
            ready = self.node.step(event, self.now_ms)
        except AssertionError as broken:
            return f"assertion: {broken}"
        for send in ready.sends:
            self._sent[send.to] = send.request
        lines = render(ready)
        return "\n".join([*lines, self._state()]) if ready.role is not None else "\n".join(lines) or "nothing"

    def _state(self) -> str:
        assert self.node is not None
        n = self.node
        hw = "-" if n.high_watermark is None else n.high_watermark
        return f"= {type(n.role).__name__} epoch {n.epoch} log {n.log_end_offset} high watermark {hw}"

    # --- events ---------------------------------------------------------------------------------------

    def _event(self, verb: str, plain: list[str], w: Words) -> e.Event:
        assert self.node is not None
        match verb:
            case "start":
                return e.Start()
            case "tick" | "stalled":
                self.now_ms += int(plain[0])
                return e.Tick(stalled=verb == "stalled")
            case "propose":
                return e.Propose(int(plain[0]), "proposal")
            case "appended":
                return e.Appended(int(plain[0]) if plain else self.node.log_end_offset)
            case "append-failed":
                return e.AppendFailed(int(plain[0]))
            case "flushed":
                return e.Flushed(int(plain[0]) if plain else self.node.log_end_offset)
            case "persisted":
                return e.Persisted()
            case "log-start":
                return e.LogStartAdvanced(int(plain[0]))
            case "snapshot-taken":
                return e.SnapshotTaken(snapshot_id(plain[0]))
            case "snapshot-rejected":
                return e.SnapshotRejected(snapshot_id(plain[0]))
            case "snapshot-fetched":
                voters = voter_set(w["voters"], 1) if "voters" in w else None
                return e.SnapshotFetched(snapshot_id(plain[0]), QuorumFacts(int(voters is not None), voters))
            case "connection-lost":
                return e.ConnectionLost(int(plain[0]))
            case "dial-refused":
                return e.DialRefused(int(plain[0]))
            case "abandoned":
                return e.Abandoned(plain[0])
            case "upgrade":
                return e.UpgradeKRaftVersion(plain[0], int(w["level"]), "validate" in plain)
            case "stop":
                return e.Stop()
            case "failed":
                return e.Failed()
            case "receive":
                return e.Received(plain[0], self._request(plain[1], plain, w))
            case "answer":
                return e.Answered(int(plain[0]), self._sent[int(plain[0])], self._answer(int(plain[0]), w))
            case "no-answer":
                return e.Unanswered(int(plain[0]), self._sent[int(plain[0])])
            case _:
                raise ValueError(f"unknown event: {verb}")

    def _request(self, kind: str, plain: list[str], w: Words) -> m.Request:
        assert self.node is not None
        n = self.node
        epoch = int(w.get("epoch", n.epoch))
        sender = key(w.get("from", "2"))
        voter = key(w["voter"]) if "voter" in w else None
        match kind:
            case "vote":
                last = int(w.get("last", n._r.log.epochs.last))
                end = int(w.get("end", n.log_end_offset))
                return m.VoteRequest(epoch, sender, voter, last, end, "pre" in plain)
            case "begin":
                return m.BeginQuorumEpochRequest(sender.id, epoch, voter, endpoints(sender.id))
            case "end":
                named = tuple(key(part) for part in w.get("successors", "").split(",") if part)
                return m.EndQuorumEpochRequest(sender.id, epoch, named, endpoints(sender.id))
            case "fetch":
                high_watermark = int(w.get("high_watermark", -1))
                return m.FetchRequest(
                    sender,
                    epoch,
                    int(w["offset"]),
                    int(w["last"]),
                    int(w.get("wait", 500)),
                    high_watermark,
                    "high_watermark" in w,
                )
            case "snapshot":
                return m.FetchSnapshotRequest(sender, epoch, snapshot_id(w["id"]), int(w.get("position", 0)))
            case "add":
                added = key(w["voter"])
                where = endpoints(added.id) if w.get("endpoints") != "none" else ()
                return m.AddVoterRequest(added, where, int(w.get("timeout", 2000)), "at-once" not in plain)
            case "remove":
                return m.RemoveVoterRequest(key(w["voter"]))
            case "update":
                low, high = int(w.get("min", 0)), int(w.get("max", 1))
                updated = key(w["voter"])
                where = endpoints(int(w.get("at", updated.id)))
                return m.UpdateVoterRequest(epoch, updated, where, low, high)
            case _:
                raise ValueError(f"unknown request: {kind}")

    def _answer(self, sender: int, w: Words) -> m.AnswerBody:
        assert self.node is not None
        n = self.node
        request = self._sent[sender]
        error = ErrorCode[w.get("error", "NONE")]
        epoch = int(w.get("epoch", n.epoch))
        leader_id = int(w.get("leader", n.leader_id))
        head = (error, leader_id, epoch)
        match request:
            case m.VoteRequest():
                return m.VoteAnswer(*head, w.get("granted") == "yes")
            case m.BeginQuorumEpochRequest() | m.EndQuorumEpochRequest():
                return m.EpochAnswer(*head)
            case m.SupportedVersionsRequest():
                return m.SupportedVersionsAnswer(error, int(w.get("min", 0)), int(w.get("max", 1)))
            case m.FetchSnapshotRequest():
                return m.FetchSnapshotAnswer(
                    *head,
                    snapshot_id(w["id"]) if "id" in w else request.snapshot_id,
                    int(w.get("size", 0)),
                    int(w.get("position", request.position)),
                    int(w.get("length", 0)),
                )
            case m.UpdateVoterRequest():
                return m.VoterChangeAnswer(error, None, leader_id, epoch)
            case m.AddVoterRequest() | m.RemoveVoterRequest():
                return m.VoterChangeAnswer(error)
        diverging = w.get("diverging")
        return m.FetchAnswer(
            *head,
            int(w.get("high_watermark", -1)),
            0,
            m.EpochEnd(*(int(part) for part in diverging.split(":"))) if diverging else None,
            snapshot_id(w["snapshot"]) if "snapshot" in w else None,
            batches=tuple(self._batch(part) for part in w.get("batches", "").split(";") if part),
        )

    def _batch(self, text: str) -> m.BatchInfo:
        """`5..8@3`, or `8..9@3/1,2,3` with the voters 1, 2 and 3."""
        offsets, _, rest = text.partition("@")
        epoch, _, voters = rest.partition("/")
        base, _, end = offsets.partition("..")
        records: tuple[QuorumRecord, ...] = (Voters(voter_set(voters, 1)),) if voters else ()
        return m.BatchInfo(int(base), int(end), int(epoch), records)


def play(text: str) -> str:
    """A script with what came out of every line now."""
    script, out = Script(), []
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        head = lines[: lines.index("----")] if "----" in lines else lines
        commands = [line for line in head if line and not line.startswith("#")]
        answers = [script.line(line) for line in commands]
        out.append("\n".join([*head, "----", *answers] if commands else head))
    return "\n\n".join(out) + "\n"
