"""The settings of Java's consumer and producer, as `kafka.NAME` in options: which have an effect here. Pure.

A job that moves over has some of them set. A setting that would change what is read or written is refused if
we do not have it. The rest only tunes Java's clients, and is ignored.
"""

from odradek.core.config.listeners import why_unsupported

CLIENT = (
    "auto.include.jmx.reporter",  # until 3.9, the clients of the official connector
    "client.dns.lookup",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)
CONSUMER = (
    *CLIENT,
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "check.crcs",
    "client.rack",
    "exclude.internal.topics",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "internal.throw.on.fetch.stable.offset.unsupported",
    "isolation.level",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "partition.assignment.strategy",
    "session.timeout.ms",
    "share.acknowledgement.mode",
    "share.acquire.mode",
)
PRODUCER = (
    *CLIENT,
    "acks",
    "batch.size",
    "buffer.memory",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "enable.idempotence",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "metadata.max.idle.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "retries",
)

_NO_JAVA = "there is no Java client to load classes into"
_REFUSED = {
    "config.providers": _NO_JAVA,
    "interceptor.classes": _NO_JAVA,
    "security.providers": _NO_JAVA,
}
REFUSED_CONSUMER = {
    **_REFUSED,
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "the query's checkpoint remembers the offsets",
    "key.deserializer": "keys and values are bytes: cast or decode the columns",
    "value.deserializer": "keys and values are bytes: cast or decode the columns",
}
REFUSED_PRODUCER = {
    **_REFUSED,
    "key.serializer": "keys and values are bytes or strings: encode the columns",
    "partitioner.class": f"{_NO_JAVA}: give the rows a column partition",
    "partitioner.ignore.keys": "keys go where Java's clients put them: give the rows a column partition",
    "transaction.timeout.ms": "what a task writes stays open until its batch is decided",
    "transaction.two.phase.commit.enable": "this sink does it where it has to: set delivery instead",
    "transactional.id": "this sink names its transactions itself: set prefix instead",
    "value.serializer": "keys and values are bytes or strings: encode the columns",
}
_REFUSED_FAMILIES = {f"kafka.{name.lower()}.": why_unsupported(name) for name in ("SASL", "SSL")}


def as_options(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"kafka.{name}" for name in names)


def why_refused(option: str, refused: dict[str, str]) -> str | None:
    """Of an option in lower case."""
    family = next((why for prefix, why in _REFUSED_FAMILIES.items() if option.startswith(prefix)), None)
    return family or (refused.get(option.removeprefix("kafka.")) if option.startswith("kafka.") else None)
