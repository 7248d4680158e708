"""The counters of a broker: plain integers that it increments while it works.

`http/` exports them. The exported names, and values that follow from the node's state (partitions, lags, open
connections), belong there.
"""

WINDOW_MS = 60_000
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
STALL_BOUNDS_US = (10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000)
_STEPS = 4  # buckets per power of two: a quantile is at most an eighth off
_BUCKETS = 40 * _STEPS


class TopicMetrics:
    """What went through one topic, as Kafka's BrokerTopicMetrics counts it."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
    )

    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = self.messages_in = 0
        self.produces = self.fetches = self.failed_produces = self.failed_fetches = 0


class TimeMetrics:
    """How often something was done, and how long it took.

    Times go into a histogram with logarithmic buckets. Quantiles cover the current window and the previous
    one, so that they show what is recent only.
    """

    __slots__ = ("_previous", "_window", "_window_start_ms", "count", "total_us")

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0
        self._window = [0] * _BUCKETS
        self._previous = [0] * _BUCKETS
        self._window_start_ms: int | None = None

    def add(self, elapsed_us: int) -> None:
        self.count += 1
        self.total_us += elapsed_us
        self._window[_bucket(elapsed_us)] += 1

    def roll(self, now_ms: int) -> None:
        """Begin a new window when the current one is old enough. The first call begins the first window."""
        if self._window_start_ms is None:
            self._window_start_ms = now_ms
        age_ms = now_ms - self._window_start_ms
        if age_ms >= WINDOW_MS:
            self._previous = self._window if age_ms < 2 * WINDOW_MS else [0] * _BUCKETS
            self._window = [0] * _BUCKETS
            self._window_start_ms = now_ms

    def quantile_us(self, q: float) -> float | None:
        """The time within which the share `q` of what is recent was done; None where nothing was."""
        counts = [a + b for a, b in zip(self._window, self._previous, strict=True)]
        total = sum(counts)
        if not total:
            return None
        rank = q * total
        for bucket, count in enumerate(counts):
            rank -= count
            if count and rank <= 0:
                return _middle_us(bucket)
        raise AssertionError("a rank within the total lies in a bucket")


class RequestMetrics(TimeMetrics):
    """How many requests one API got, at which versions, and how long they took."""

    __slots__ = ("versions",)

    def __init__(self) -> None:
        super().__init__()
        self.versions: dict[int, int] = {}

    def observe(self, version: int, elapsed_us: int, count: int = 1) -> None:
        self.count += count
        self.total_us += elapsed_us * count
        self.versions[version] = self.versions.get(version, 0) + count
        self._window[_bucket(elapsed_us)] += count


def _bucket(elapsed_us: int) -> int:
    if elapsed_us < _STEPS:
        return max(0, elapsed_us)
    bits = elapsed_us.bit_length()
    return min(_BUCKETS - 1, (bits - 2) * _STEPS + ((elapsed_us >> (bits - 3)) & (_STEPS - 1)))


def _middle_us(bucket: int) -> float:
    if bucket < _STEPS:
        return float(bucket)
    exponent, step = divmod(bucket, _STEPS)
    width = 1 << (exponent - 1)
    return (_STEPS + step) * width + width / 2 - 0.5


class StallMetrics:
    """How late the event loop ran its timers. Callers report delays above the smallest bound only."""

    __slots__ = ("count", "counts", "total_us")

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0
        self.counts = [0] * (len(STALL_BOUNDS_US) + 1)

    def observe(self, stall_us: int) -> None:
        self.count += 1
        self.total_us += stall_us
        slot = 0
        while slot < len(STALL_BOUNDS_US) and stall_us > STALL_BOUNDS_US[slot]:
            slot += 1
        self.counts[slot] += 1


class ConnectionMetrics:
    """The connections of one listener."""

    __slots__ = ("closed", "created")

    def __init__(self) -> None:
        self.created = self.closed = 0


class IsrMetrics:
    """Changes of ISRs that leaders of this node proposed: made, or refused."""

    __slots__ = ("expands", "failed_updates", "shrinks")

    def __init__(self) -> None:
        self.expands = self.shrinks = self.failed_updates = 0


class Metrics:
    """All counters of one node."""

    __slots__ = ("connections", "isr", "requests", "stalls", "topics")

    def __init__(self) -> None:
        self.topics: dict[str, TopicMetrics] = {}
        self.requests: dict[int, RequestMetrics] = {}
        self.stalls = StallMetrics()
        self.isr = IsrMetrics()
        self.connections: dict[str, ConnectionMetrics] = {}

    def topic(self, name: str) -> TopicMetrics:
        """The counters of a topic. Callers keep the object instead of looking it up each time."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicMetrics()
        return found

    def forget_topic(self, name: str) -> None:
        """The topic was deleted. A new topic of the same name starts at zero."""
        self.topics.pop(name, None)

    def listener(self, name: str) -> ConnectionMetrics:
        """The counters of a listener."""
        return self.connections.setdefault(name, ConnectionMetrics())

    def request(self, api_key: int) -> RequestMetrics:
        """The counters of an API. Callers keep the object instead of looking it up each time."""
        found = self.requests.get(api_key)
        if found is None:
            found = self.requests[api_key] = RequestMetrics()
        return found
