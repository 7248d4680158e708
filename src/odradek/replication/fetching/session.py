"""FetchSession: the follower's side of an incremental fetch session (KIP-227). Pure.

The leader remembers the partitions of the session, so that a request names only those that changed or left.
"""

from odradek.core.errors import ErrorCode
from odradek.replication.fetching.responses import PartitionKey

NO_SESSION = 0
FIRST_EPOCH = 0
MAX_EPOCH = (1 << 31) - 1


class FetchSession:
    """`members` are the partitions that the leader has in this session.

    At epoch 0 a request is full: it names all partitions, asks for a new session, and closes the one whose id
    it has.
    """

    __slots__ = ("epoch", "id", "members")

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self.members: dict[PartitionKey, None] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request is full."""
        return self.epoch == FIRST_EPOCH

    def answered(self, session_id: int) -> None:
        """A request was answered without an error of the session."""
        if session_id == NO_SESSION:  # the leader has no room for a session: the next request is full, too
            self.id, self.epoch = NO_SESSION, FIRST_EPOCH
            return
        self.id = session_id
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def failed(self, code: ErrorCode | None = None) -> None:
        """The leader refused the request, or did not answer it (None)."""
        if code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.id = NO_SESSION
        self.epoch = FIRST_EPOCH
