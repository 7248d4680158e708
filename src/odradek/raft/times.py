"""How long a replica of the quorum waits for what. Plain numbers; Apache Kafka's defaults."""

from typing import NamedTuple


class RaftTimes(NamedTuple):
    """`controller.quorum.*` by name; the longest wait of a fetch is a constant, as in Apache Kafka.

    election_timeout_ms      without a leader: stand after this and up to twice as long
    fetch_timeout_ms         without an answer of the leader: ask for pre-votes
    election_backoff_max_ms  a candidate that lost waits up to this
    request_timeout_ms       the driver reports Unanswered after this
    retry_backoff_ms         between a failed request and the next one to the same node
    append_linger_ms         a leader's records wait so long for more to share their flush
    fetch_max_wait_ms        how long a leader may park a fetch
    """

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    append_linger_ms: int = 0
    fetch_max_wait_ms: int = 500

    @property
    def check_quorum_ms(self) -> int:
        """A leader that heard of no majority for so long resigns."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_quorum_epoch_ms(self) -> int:
        """A leader says this often that it leads to voters that do not fetch."""
        return self.fetch_timeout_ms // 2

    @property
    def update_voter_ms(self) -> int:
        """A voter looks this often whether the recorded voters have its endpoints right."""
        return self.fetch_timeout_ms
