"""The keys that act: changing one changes what the node does. A room that reads a key adds it here.

A broker key that only is the default of a topic key acts when that topic key does, and is not named.
`odradek cluster info --unsupported` lists the known keys that are missing here; a test holds that every
key named here is read somewhere.
"""

ACTING_BROKER_KEYS = frozenset(
    {
        "advertised.listeners",
        "auto.create.topics.enable",
        "broker.id",
        "broker.rack",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "default.replication.factor",
        "group.initial.rebalance.delay.ms",
        "group.max.session.timeout.ms",
        "group.max.size",
        "group.min.session.timeout.ms",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "node.id",
        "num.partitions",
        "offset.metadata.max.bytes",
        "offsets.commit.timeout.ms",
        "offsets.load.buffer.size",
        "offsets.retention.check.interval.ms",
        "offsets.retention.minutes",
        "process.roles",
        "socket.request.max.bytes",
    }
)

ACTING_TOPIC_KEYS = frozenset(
    {
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "index.interval.bytes",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.insync.replicas",
        "preallocate",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
    }
)
