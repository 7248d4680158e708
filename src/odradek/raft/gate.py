"""What is held until it may leave. Pure, and the only place that orders what comes out of a step.

Nothing is sent or answered while a write of the quorum state that it may rest on is under way: the epoch, the
vote. One write at a time; changes meanwhile are one write afterwards. What is held leaves in the order in
which it was decided.
"""

from collections import deque

from odradek.raft.quorum_state import QuorumState
from odradek.raft.ready import NOTHING, Answer, Append, Ready, Send
from odradek.raft.roles import Role
from odradek.raft.snapshots import SnapshotId


class Gate:
    """`settled`: the quorum state as it stands is durable."""

    __slots__ = (
        "_answers",
        "_appends",
        "_dirty",
        "_generation",
        "_held",
        "_sends",
        "_writing",
        "begin_snapshot",
        "drop_snapshot",
        "finish_snapshot",
        "high_watermark",
        "may_vote",
        "reset",
        "role",
        "settled",
        "state",
        "truncate",
    )

    def __init__(self, state: QuorumState) -> None:
        self.state = state
        self.settled = True
        self._generation = 0
        self._writing: int | None = None
        self._held: deque[tuple[int, Send | Answer]] = deque()
        self._clear()

    def _clear(self) -> None:
        self._dirty = False
        self._appends: list[Append] = []
        self._sends: list[Send] = []
        self._answers: list[Answer] = []
        self.truncate: int | None = None
        self.reset: SnapshotId | None = None
        self.high_watermark: int | None = None
        self.role: Role | None = None
        self.begin_snapshot: SnapshotId | None = None
        self.finish_snapshot: SnapshotId | None = None
        self.drop_snapshot = False
        self.may_vote = False

    # --- what the moves put in ------------------------------------------------------------------------

    def want(self, state: QuorumState) -> None:
        """This must be durable before anything that is decided from now on leaves."""
        if state != self.state:
            assert state.leader_epoch >= self.state.leader_epoch, f"{state} after {self.state}"
            self.state = state
            self.settled = False
            self._generation += 1
            self._dirty = True

    def append(self, append: Append) -> None:
        self._appends.append(append)
        self._dirty = True

    def send(self, send: Send) -> None:
        self._put(send)

    def answer(self, answer: Answer) -> None:
        self._put(answer)

    def _put(self, item: Send | Answer) -> None:
        if not self.settled:
            self._held.append((self._generation, item))
            return
        self._dirty = True
        if isinstance(item, Send):
            self._sends.append(item)
        else:
            self._answers.append(item)

    def touch(self) -> None:
        """One of the other fields was set."""
        self._dirty = True

    def drop_sends(self) -> None:
        """The role ended: its requests that have not left are of no use. Answers are owed in any case."""
        if self._held:
            self._held = deque(held for held in self._held if isinstance(held[1], Answer))
        if self._sends:
            self._sends = []

    # --- what the driver reports ----------------------------------------------------------------------

    def persisted(self) -> None:
        assert self._writing is not None, "no write of the quorum state is under way"
        durable = self._writing
        self._writing = None
        self.settled = durable == self._generation
        held = self._held
        while held and held[0][0] <= durable:
            item = held.popleft()[1]
            if isinstance(item, Send):
                self._sends.append(item)
            else:
                self._answers.append(item)
        self._dirty = True

    def take(self) -> Ready:
        """What may leave now."""
        if not self._dirty:
            return NOTHING
        persist = None
        if not self.settled and self._writing is None:
            persist = self.state
            self._writing = self._generation
        ready = Ready(
            persist,
            self.truncate,
            self.reset,
            tuple(self._appends),
            tuple(self._sends),
            tuple(self._answers),
            self.high_watermark,
            self.role,
            self.begin_snapshot,
            self.finish_snapshot,
            self.drop_snapshot,
            self.may_vote,
        )
        self._clear()
        return ready
