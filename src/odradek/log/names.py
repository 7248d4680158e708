"""Names of files and directories in a log directory. All but one are Apache Kafka's. No I/O."""

import re
from typing import Final

from odradek.core.types import TopicPartition

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
UNFLUSHED_SUFFIX: Final = (
    ".unflushed"  # Odradek's own: a segment ended at this offset and was not durable yet
)
INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, *INDEX_SUFFIXES)

DELETE_DIR_SUFFIX: Final = "-delete"
STRAY_DIR_SUFFIX: Final = "-stray"
FUTURE_DIR_SUFFIX: Final = "-future"

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
LOCK: Final = ".lock"
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS: Final = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)

_MAX_NAME: Final = 255
_OFFSET_DIGITS: Final = 20
_PARTITION_DIR = re.compile(r"(.+)-(\d+)")
_MARKED_DIR = re.compile(r"(.+)-(\d+)\.([^.\s]+)(-delete|-stray|-future)")


def file_name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset in the name of a segment file or producer snapshot; None for any other file."""
    digits, dot, _ = name.partition(".")
    return int(digits) if dot and len(digits) == _OFFSET_DIGITS and digits.isdecimal() else None


def parse_partition_dir(name: str) -> tuple[TopicPartition, str] | None:
    """(partition, "" or the suffix -delete, -stray or -future); None for other names."""
    marked = _MARKED_DIR.fullmatch(name)
    if marked:
        return TopicPartition(marked[1], int(marked[2])), marked[4]
    plain = _PARTITION_DIR.fullmatch(name)
    if plain and not name.endswith((DELETE_DIR_SUFFIX, STRAY_DIR_SUFFIX, FUTURE_DIR_SUFFIX)):
        return TopicPartition(plain[1], int(plain[2])), ""
    return None


def set_aside_dir(topic_partition: TopicPartition, unique: str, suffix: str) -> str:
    """The name of a directory with such a suffix. A long topic name is cut to the limit of file systems."""
    tail = f"-{topic_partition.partition}.{unique}{suffix}"
    return topic_partition.topic[: _MAX_NAME - len(tail)] + tail
