"""The node's settings for compaction. Topics have their own settings in TopicConfig."""

from typing import Final, NamedTuple

from odradek.core.config.node import NodeConfig

_LEAST_CHUNK_BYTES: Final = 4096


class CleanerSettings(NamedTuple):
    """log.cleaner.*. Sizes are for the whole node: `threads` jobs share them."""

    enabled: bool
    threads: int
    dedupe_buffer_bytes: int
    load_factor: float
    io_buffer_bytes: int
    max_bytes_per_second: float
    backoff_ms: int

    @classmethod
    def from_node(cls, config: NodeConfig) -> "CleanerSettings":
        return cls(
            enabled=config.bool("log.cleaner.enable"),
            threads=config.int("log.cleaner.threads"),
            dedupe_buffer_bytes=config.int("log.cleaner.dedupe.buffer.size"),
            load_factor=config.float("log.cleaner.io.buffer.load.factor"),
            io_buffer_bytes=config.int("log.cleaner.io.buffer.size"),
            max_bytes_per_second=config.float("log.cleaner.io.max.bytes.per.second"),
            backoff_ms=config.int("log.cleaner.backoff.ms"),
        )

    @property
    def map_bytes(self) -> int:
        """The largest offset map of one job."""
        return self.dedupe_buffer_bytes // self.threads

    @property
    def chunk_bytes(self) -> int:
        """How much a job reads at once: half of its share. The other half is for writing."""
        return max(self.io_buffer_bytes // self.threads // 2, _LEAST_CHUNK_BYTES)
