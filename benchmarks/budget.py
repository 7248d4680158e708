"""What the benchmark measures and what it must reach: one row per number. No measuring here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A measured number, its budget, and what Apache Kafka 4.3.1 reached when the budget was set."""

    key: str
    label: str
    unit: str
    section: str
    apache_then: float | None = None
    budget: float | None = None
    lower_is_better: bool = True
    by_ratio_only: bool = False

    @property
    def budget_ratio(self) -> float | None:
        """The budget as a share of Apache's number: what holds on any machine."""
        if self.budget is None or self.apache_then is None:
            return None
        return self.budget / self.apache_then

    def reaches(self, value: float, target: float) -> bool:
        return value <= target if self.lower_is_better else value >= target

    def verdict(self, odradek: float, ratio: float | None) -> str:
        """Whether the budget is met, by the number itself or by the ratio to Apache in the same run."""
        if self.budget is None:
            return "no budget"
        by_value = not self.by_ratio_only and self.reaches(odradek, self.budget)
        by_ratio = None
        if ratio is not None and self.budget_ratio is not None:
            by_ratio = self.reaches(ratio, self.budget_ratio)
        if by_value and by_ratio is not False:
            return "met"
        if by_value:
            return "met by value"
        return "met by ratio" if by_ratio else "missed"


def _row(key: str, label: str, unit: str, then: float, budget: float, *, higher: bool = False) -> Row:
    return Row(key, label, unit, key.split(".")[0], then, budget, not higher)


def _seen(key: str, label: str, unit: str, *, higher: bool = False) -> Row:
    """A number that is reported beside Apache's without a budget of its own."""
    return Row(key, label, unit, key.split(".")[0], lower_is_better=not higher)


def _least(key: str, label: str, unit: str, budget: float) -> Row:
    """A number to be reached whatever Apache's is."""
    return Row(key, label, unit, key.split(".")[0], None, budget, lower_is_better=False)


def _most(key: str, label: str, unit: str, budget: float) -> Row:
    """A number to stay below whatever Apache's is."""
    return Row(key, label, unit, key.split(".")[0], None, budget)


def _beside(key: str, label: str, unit: str, *, higher: bool = False) -> Row:
    """A number that must be no worse than Apache's in the same run."""
    return Row(key, label, unit, key.split(".")[0], 1, 1, not higher, by_ratio_only=True)


def _third(key: str, label: str, unit: str) -> Row:
    """A number that must be at most a third of Apache's in the same run."""
    return Row(key, label, unit, key.split(".")[0], 3, 1, by_ratio_only=True)


def _share(key: str, label: str, unit: str, ratio: float) -> Row:
    """A number that must be at most so large a share of Apache's in the same run."""
    return Row(key, label, unit, key.split(".")[0], 1, ratio, by_ratio_only=True)


def _times(key: str, label: str, unit: str, ratio: float) -> Row:
    """A number that must be so many times the other's in the same run."""
    return Row(key, label, unit, key.split(".")[0], 1, ratio, lower_is_better=False, by_ratio_only=True)


# Apache's 1 MB throughput is bimodal (200-620 MB/s, 1.5-4.7 CPU s/GB): the middle of it stands here.
ROWS = (
    _row("produce.16K.cpu", "produce 16 KB batches, broker CPU", "s/GB", 10.7, 1.3),
    _row("produce.16K.rate", "produce 16 KB batches", "MB/s", 87, 500, higher=True),
    _row("produce.1M.cpu", "produce 1 MB batches, broker CPU", "s/GB", 3.1, 0.6),
    _row("produce.1M.rate", "produce 1 MB batches", "MB/s", 410, 1000, higher=True),
    _row("latency.p50", "produce latency, 1 in flight, p50", "us", 193, 40),
    _row("latency.p99", "produce latency, 1 in flight, p99", "us", 540, 120),
    _row("latency.tiny", "tiny requests, 5 in flight", "req/s", 6800, 45_000, higher=True),
    _row("fetch.1M.cpu", "fetch 1 MB from page cache, broker CPU", "s/GB", 0.50, 0.30),
    _row("fetch.8M.cpu", "fetch 8 MB from page cache, broker CPU", "s/GB", 0.36, 0.30),
    _seen("fetch.1M.rate", "fetch 1 MB from page cache", "MB/s", higher=True),
    _seen("fetch.8M.rate", "fetch 8 MB from page cache", "MB/s", higher=True),
    _row("start.empty", "process start to first ack", "ms", 3480, 350),
    _seen("start.again", "process start to first ack, after a clean stop", "ms"),
    _row("start.rss", "memory, idle", "MB", 386, 45),
    _row("partitions.rss", "memory with 1,000 partitions", "MB", 433, 90),
    _row("e2e.p50", "end to end at 1,000 records/s, p50", "us", 353, 100),
    _row("e2e.p99", "end to end at 1,000 records/s, p99", "us", 1743, 400),
    _seen("clients.librdkafka", "librdkafka, 100 B records", "records/s", higher=True),
    _seen("clients.librdkafka.cpu", "librdkafka, 100 B records, broker CPU", "s/GB"),
    _seen("clients.java", "Java producer-perf-test, 100 B records", "records/s", higher=True),
    _seen("clients.java.cpu", "Java producer-perf-test, 100 B records, broker CPU", "s/GB"),
    _row("txn.librdkafka.1", "librdkafka, transactions of 1 record", "txn/s", 225, 900, higher=True),
    _seen("txn.librdkafka.p50", "librdkafka, commit of 1 record, p50", "us"),
    _seen("txn.librdkafka.p99", "librdkafka, commit of 1 record, p99", "us"),
    _seen("txn.librdkafka.100", "librdkafka, transactions of 100 records", "txn/s", higher=True),
    _seen("txn.librdkafka.1000", "librdkafka, transactions of 1,000 records", "txn/s", higher=True),
    _least("txn.raw.1", "raw client, transactions of 1 record", "txn/s", 2000),
    _seen("txn.raw.p50", "raw client, commit of 1 record, p50", "us"),
    _seen("txn.raw.p99", "raw client, commit of 1 record, p99", "us"),
    _seen("txn.raw.100", "raw client, transactions of 100 records", "txn/s", higher=True),
    _seen("txn.raw.1000", "raw client, transactions of 1,000 records", "txn/s", higher=True),
    _beside("flush.1", "flush.messages=1, 1 producer", "acks/s", higher=True),
    _beside("flush.5", "flush.messages=1, 5 producers", "acks/s", higher=True),
    _beside("flush.50", "flush.messages=1, 50 producers", "acks/s", higher=True),
    _row("restart.killed", "kill -9 after 5 GB: restart to first ack", "ms", 12_900, 3000),
    _row("restart.1000.clean", "restart to first ack, 1,000 partitions, clean", "ms", 8000, 600),
    _row("restart.1000.killed", "restart to first ack, 1,000 partitions, killed", "ms", 13_800, 2000),
    _beside("many.rss", "memory with 10,000 partitions", "MB"),
    _beside("random.p50", "fetch at a random offset of 100 segments, p50", "us"),
    _beside("random.p99", "fetch at a random offset of 100 segments, p99", "us"),
    _beside("groups.classic", "50 members rebalance, classic protocol", "ms"),
    _beside("groups.consumer", "50 members rebalance, consumer protocol", "ms"),
    _beside("groups.commits", "offset commits, 5 in flight", "1/s", higher=True),
    _beside("groups.fetch", "OffsetFetch of 1,000 partitions", "us"),
    _beside("compaction.rate", "compaction, 100 B records, ten to a key", "MB/s", higher=True),
    _beside("compaction.p99", "produce latency while a log is compacted, p99", "us"),
    _third("quorum.failover", "three nodes: kill of the active controller to the next CreateTopics", "ms"),
    _third("quorum.start", "three nodes: start to the first ack", "ms"),
    _beside("quorum.create", "three nodes: topics created, one after another", "1/s", higher=True),
    _beside("quorum.led", "three nodes: until 1,000 partitions are led", "ms"),
    _beside("quorum.controller.rss", "memory of a controller, 10,000 partitions", "MB"),
    _beside("quorum.controller.restart", "kill and restart of a controller, 10,000 partitions", "ms"),
    _share("replication.16K.cpu", "three replicas: produce 16 KB batches, CPU of all nodes", "s/GB", 0.15),
    _seen("replication.16K.cpu.leader", "three replicas: produce 16 KB batches, CPU of the leader", "s/GB"),
    _seen("replication.16K.cpu.follower", "three replicas: produce 16 KB batches, CPU of a follower", "s/GB"),
    _times("replication.16K.rate", "three replicas: produce 16 KB batches", "MB/s", 5),
    _share("replication.1M.cpu", "three replicas: produce 1 MB batches, CPU of all nodes", "s/GB", 0.15),
    _seen("replication.1M.cpu.leader", "three replicas: produce 1 MB batches, CPU of the leader", "s/GB"),
    _seen("replication.1M.cpu.follower", "three replicas: produce 1 MB batches, CPU of a follower", "s/GB"),
    _times("replication.1M.rate", "three replicas: produce 1 MB batches", "MB/s", 5),
    _share("replication.p50", "three replicas: produce latency, 1 in flight, p50", "us", 0.6),
    _seen("replication.p99", "three replicas: produce latency, 1 in flight, p99", "us"),
    _share("replication.kill", "kill of the leader to the next ack", "ms", 0.1),
    _share("replication.kill_both", "kill of leader and active controller to the next ack", "ms", 0.25),
    _beside("replication.shutdown", "controlled shutdown of the leader to the next ack", "ms"),
    _beside("replication.catch_up", "a follower catches up", "MB/s", higher=True),
    _beside("replication.many.led", "1,000 partitions of three replicas: until they are led", "ms"),
    _beside("replication.many.failover", "kill of the leader of 1,000 partitions: until they are led", "ms"),
    Row(
        "replication.many.stall",
        "kill of the leader of 1,000 partitions: longest answer",
        "ms",
        "replication",
        None,
        500,
    ),
    _beside("replication.many.idle", "1,000 partitions of three replicas, idle: CPU of a node", "%"),
    _beside("replication.many.rss", "1,000 partitions of three replicas, idle: memory of a node", "MB"),
    _seen("spark.protocol.begin.p50", "protocol: a task begins its transaction, p50", "ms"),
    _seen("spark.protocol.begin.p99", "protocol: a task begins its transaction, p99", "ms"),
    _seen("spark.protocol.write.p50", "protocol: 200 records written and acknowledged, p50", "ms"),
    _seen("spark.protocol.write.p99", "protocol: 200 records written and acknowledged, p99", "ms"),
    _seen("spark.protocol.decide.p50", "protocol: a batch of two tasks decided and committed, p50", "ms"),
    _seen("spark.protocol.decide.p99", "protocol: a batch of two tasks decided and committed, p99", "ms"),
    _times("spark.read", "batch read, all columns", "rows/s", 2),
    _seen("spark.read.cpu", "batch read, all columns, CPU", "us/record"),
    _times("spark.count", "batch read, count", "rows/s", 2),
    _seen("spark.count.cpu", "batch read, count, CPU", "us/record"),
    _times("spark.write", "batch write, exactly once", "rows/s", 1),
    _seen("spark.write.cpu", "batch write, exactly once, CPU", "us/record"),
    _times("spark.pass", "topic to topic, passed through", "rows/s", 1.5),
    _seen("spark.pass.cpu", "topic to topic, passed through, CPU", "us/record"),
    _times("spark.json", "topic to topic, JSON in and out", "rows/s", 1),
    _seen("spark.json.cpu", "topic to topic, JSON in and out, CPU", "us/record"),
    _beside("spark.micro.p50", "micro-batch at 1,000 records/s, p50", "ms"),
    _seen("spark.micro.p99", "micro-batch at 1,000 records/s, p99", "ms"),
    _seen("spark.segments", "log directory read", "rows/s", higher=True),
    _seen("spark.segments.cpu", "log directory read, CPU", "us/record"),
)
SPARK, QUORUM, REPLICATION = "spark", "quorum", "replication"
SECTIONS = tuple(dict.fromkeys(row.section for row in ROWS))
